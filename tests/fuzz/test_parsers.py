"""Every reader of text takes it or says what is wrong with it, in the one way that its callers expect."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from fuzz import wild
from fuzz.budget import attempt, effort
from fuzz.journey import refused
from hypothesis import strategies as st

from pybernetes.api import addresses, fields, intstr, labels, names, normalize, pem, quantity, times
from pybernetes.api.batch import cron
from pybernetes.api.errors import APIError
from pybernetes.api.gocompat import gojson, quote
from pybernetes.api.yaml import YAMLProblem, json_to_yaml, yaml_to_json
from pybernetes.apiserver import negotiation
from pybernetes.apiserver.pipeline import options
from pybernetes.apiserver.requestinfo import request_info


def pieces(*parts: str) -> st.SearchStrategy[str]:
    """Text that is nearly what a parser expects: its words in any order."""
    return st.lists(st.sampled_from([*parts, "", " ", "é", "9" * 30]), max_size=8).map("".join)


def written(error: Exception) -> None:
    """Check that the words of an error can be sent."""
    assert str(error).encode()


def read_labels(text: str) -> None:
    selector = labels.parse(text)
    selector.matches({"a": "b"})
    assert str(labels.parse(str(selector))) == str(selector)


def read_fields(text: str) -> None:
    selector = fields.parse(text)
    assert set(fields.parse(str(selector)).requirements) == set(selector.requirements)


def read_quantity(text: str) -> None:
    canonical = quantity.canonicalize(text)
    assert quantity.canonicalize(canonical) == canonical
    found = quantity.parse(text)
    if abs(found.value()) >= quantity.MAX_INT64:
        return  # upstream has no suffix beyond E, and prints such numbers without any
    assert not found < quantity.parse(canonical)
    assert not quantity.parse(canonical) < found


def read_time(text: str) -> None:
    canonical = times.canonical_time(text)
    if canonical is not None:
        assert times.canonical_time(canonical) == canonical
        assert math.isfinite(times.parse_time(canonical))


def read_micro_time(text: str) -> None:
    canonical = times.canonical_micro_time(text)
    if canonical is not None:
        assert times.canonical_micro_time(canonical) == canonical
        assert math.isfinite(times.parse_time(canonical))


def read_duration(text: str) -> None:
    nanos = times.parse_duration(text)
    assert times.parse_duration(times.format_duration(nanos)) == nanos


def read_schedule(text: str) -> None:
    cron.parse(text)


def read_location(text: str) -> None:
    cron.load_location(text)


def read_base64(text: str) -> None:
    assert normalize.canonical_base64(normalize.canonical_base64(text)) == normalize.canonical_base64(text)


def read_int_or_string(text: str) -> None:
    intstr.scaled_value(intstr.parse(text), 10, True)


def read_address(text: str) -> None:
    for read in (addresses.is_valid_ip, addresses.is_valid_cidr, addresses.is_valid_interface_address):
        for error in read("a", text):
            assert error.message()
    addresses.warnings_for_ip("a", text)
    addresses.warnings_for_cidr("a", text)


def read_names(text: str) -> None:
    for name, check in vars(names).items():
        if name.startswith("is_") and check.__annotations__.get("value") == "str":
            assert all(isinstance(problem, str) for problem in check(text))


def read_pem(text: str) -> None:
    for block in pem.blocks(text.encode()):
        pem.check_certificate(block.data)


def print_text(text: str) -> None:
    quote.quote(text).encode()


SELECTOR = pieces("a", "a.b/c", "=", "==", "!=", "in", "notin", " in ", "(", ")", ",", "!", ">", "<", "1", "-", "\\")
TIME = pieces("2020", "-", "01", "31", "T", "t", ":", "00", "59", "60", "Z", "+", "23:59", ".", "123456789", "99999")
DURATION = pieces("1", "0", ".", "h", "m", "s", "ms", "us", "µs", "ns", "-", "+", "9223372036", "99999999999999999999")
QUANTITY = pieces("1", "0", ".", "-", "+", "e", "E", "k", "Ki", "Ei", "m", "n", "u", "e400", "e-400", "999999999999")
CRON = pieces("*", "/", ",", "-", "0", "59", "60", " ", "  ", "?", "JAN", "sun", "@every", "@daily", "1h", "TZ=", "UTC")
BASE64 = pieces("YQ", "=", "==", "\n", "\r", "YWJj", "-", "_", "A")
PEM = pieces("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----", "\n", "YQ==", "A: b", "MIIB", "-----")

READERS: dict[Callable[[str], None], tuple[st.SearchStrategy[str], type[Exception]]] = {
    read_labels: (SELECTOR, labels.SelectorError),
    read_fields: (SELECTOR, fields.FieldSelectorError),
    read_quantity: (QUANTITY, quantity.QuantityError),
    read_time: (TIME, times.TimeError),
    read_micro_time: (TIME, times.TimeError),
    read_duration: (DURATION, ValueError),
    read_schedule: (CRON, cron.CronError),
    read_location: (pieces("UTC", "/", "..", "Europe", "Berlin", "\0", "Local"), cron.CronError),
    read_base64: (BASE64, ValueError),
    read_int_or_string: (pieces("1", "%", "-", "+"), ValueError),
    read_address: (pieces("1", "255", "256", ".", ":", "::", "ffff", "/", "32", "128", "%", "eth0"), APIError),
    read_names: (pieces("a", "A", "-", ".", "/", "_", "*"), APIError),
    read_pem: (PEM, pem.PEMError),
    print_text: (st.one_of(st.text(), st.sampled_from(wild.SURROGATES)), APIError),
}


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@effort
def test_text_is_read_or_refused(read: Callable[[str], None], effort: int) -> None:
    likely, refusal = READERS[read]

    def check(text: str) -> None:
        try:
            read(text)
        except refusal as error:
            written(error)

    for text in wild.TEXTS:
        check(text)
    attempt(check, st.one_of(likely, wild.texts), examples=120, effort=effort)


# -- JSON and YAML ------------------------------------------------------------------------------------------------


@effort
def test_json_as_go_reads_it(effort: int) -> None:
    def check(body: bytes) -> None:
        try:
            found = gojson.plain(gojson.loads(body))
        except gojson.SyntaxProblem as problem:
            return written(problem)
        if b"\\u" not in body and len(body) < 1000:
            assert gojson.syntax_problem(body) is None
            assert json.dumps(found) is not None

    attempt(check, wild.wild_bytes, examples=200, effort=effort)


YAML_LINES = st.lists(
    st.sampled_from(
        [
            "a: b",
            "a: 1",
            "  b: &x [1, 2]",
            "c: *x",
            "<<: *x",
            "- a",
            "- - b",
            "? c",
            ": d",
            "e: |",
            "  text",
            "f: !!binary x",
            "g: !!int a",
            "h: 0x_",
            "i: 1e999",
            "j: .nan",
            "k: 18446744073709551616",
            "1.5: a",
            "l: 1e20",
            "~: m",
            "{a: b, [c]: d}",
            "&y n: *y",
            "---",
            "...",
            "%YAML 1.1",
            "\t",
            "o: 'p",
            'q: "\\ud800"',
            "r: !t u",
            "s: 2020-01-01",
            "=: =",
            "t: !!float 1",
            "u: !!timestamp x",
            "v: 0o7",
            "w: 1_000",
            "x: +",
            "y: -",
            "z: .",
            "# c",
        ]
    ),
    max_size=8,
).map(lambda lines: "\n".join(lines).encode())


@effort
def test_yaml(effort: int) -> None:
    def check(body: bytes) -> None:
        try:
            found, repeated = yaml_to_json(body)
        except YAMLProblem as problem:
            return written(problem)
        assert all(isinstance(line, str) for line in repeated)
        again, _ = yaml_to_json(json_to_yaml(found))
        assert json.loads(again) == json.loads(found)

    attempt(check, st.one_of(YAML_LINES, wild.wild_bytes), examples=250, effort=effort)


# -- requests -----------------------------------------------------------------------------------------------------


@effort
def test_paths_and_queries_are_taken_apart_or_refused(effort: int) -> None:
    paths = pieces(
        "/", "api", "apis", "v1", "apps", "namespaces", "pods", "a", "watch", "%2e", "%", "%zz", "..", "status"
    )
    query = pieces("a", "=", "&", ";", "%", "%ff", "watch", "true", "labelSelector", "%ud800", "+")

    def check(method: str, path: str, text: str) -> None:
        try:
            info = request_info(method, "/" + path, text)
        except APIError as error:
            return refused(error)
        assert all(isinstance(value, str) for value in info.query.values())

    attempt(check, st.sampled_from(("GET", "POST", "FOO", "")), paths, query, examples=200, effort=effort)


@effort
def test_media_types_are_negotiated_or_refused(effort: int) -> None:
    media = pieces(
        "application/json", "application/yaml", "*/*", "text/*", ";", ",", "q=", "0.5", "1e400", "nan", "as=Table",
        "g=meta.k8s.io", "v=v1", "pretty=1", '"', "=", "charset=utf-8", "application/vnd.kubernetes.protobuf",
    )  # fmt: skip

    def check(text: str, pretty: str) -> None:
        for use in (
            lambda: negotiation.output_format({"accept": text}, {"pretty": pretty}, transforms=("Table",)),
            lambda: negotiation.body_media({"content-type": text}),
            lambda: negotiation.patch_type({"content-type": text}, custom=False),
            lambda: negotiation.patch_type({"content-type": text}, custom=True),
        ):
            try:
                use()
            except APIError as error:
                refused(error)

    attempt(check, media, wild.texts, examples=200, effort=effort)


@effort
def test_options_are_read_or_refused(effort: int) -> None:
    def check(value: str, name: str, manager: str) -> None:
        for use in _options(value, name, manager):
            try:
                use()
            except APIError as error:
                refused(error)

    name = st.sampled_from(("dryRun", "fieldManager", "fieldValidation", "force", "x"))
    attempt(check, wild.texts, name, wild.texts, examples=200, effort=effort)


def _options(value: str, name: str, manager: str) -> list[Callable[[], Any]]:
    return [
        lambda: options.parse_resource_version(value),
        lambda: options.write_options({name: value, "fieldManager": manager}, "PatchOptions"),
        lambda: options.decode_continue(value, "/registry/pods/"),
        lambda: options.decode_continue(_base64(value), "/registry/pods/"),
    ]


def _base64(value: str) -> str:
    token = json.dumps({"v": "meta.k8s.io/v1", "rv": 5, "start": value})
    return base64.urlsafe_b64encode(token.encode()).decode()
