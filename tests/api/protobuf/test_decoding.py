"""Protobuf in, JSON out: by hand for what is special, at random for all the rest."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from api.protobuf.encoder import MESSAGES, SCHEMA, encode, envelope, qualified, sized, varint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybernetes.api import normalize, scheme
from pybernetes.api.gocompat import goencoder
from pybernetes.api.protobuf import Envelope, ProtobufError, as_json, open_envelope
from pybernetes.api.times import format_duration

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text())
"""Objects as upstream's server wrote them, in both forms."""


def decoded(api_version: str, kind: str, raw: bytes) -> Any:
    found = as_json(open_envelope(envelope(api_version, kind, raw)))
    assert found is not None
    value = json.loads(found)
    assert (value.pop("kind"), value.pop("apiVersion")) == (kind, api_version)
    return value


@pytest.mark.parametrize(
    "case", RECORDED, ids=lambda case: f"{case['json']['kind']}-{case['json']['metadata']['name']}"
)
def test_upstreams_protobuf_says_what_its_json_says(case: dict[str, Any]) -> None:
    group, version = scheme.split_api_version(case["json"]["apiVersion"])
    resource = scheme.resource_for_kind(group, version, case["json"]["kind"])
    assert resource is not None
    found = as_json(open_envelope(base64.b64decode(case["protobuf"])))
    assert found is not None

    def canonical(body: bytes) -> Any:
        obj = scheme.decoder(resource).decode(body)
        normalize.normalizer(resource.type)(obj)
        return json.loads(goencoder.encode(obj))

    assert canonical(found) == canonical(json.dumps(case["json"]).encode())


# --- At random

TEXT = st.text(max_size=8)
TIMES = st.datetimes().map(lambda moment: f"{moment.replace(microsecond=0, year=max(moment.year, 1900)).isoformat()}Z")
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "bytes": st.binary(max_size=8).map(lambda raw: base64.b64encode(raw).decode()),
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "quantity": st.sampled_from(["0", "100m", "1Gi", "-3", "1e3"]),
    "duration": st.integers(-(2**63), 2**63 - 1).map(format_duration),
    "date-time": TIMES,
    "micro-time": st.tuples(TIMES, st.integers(0, 999_999)).map(lambda each: f"{each[0][:-1]}.{each[1]:06d}Z"),
    "int-or-string": st.integers(-(2**31), 2**31 - 1) | TEXT,
    "json": st.dictionaries(TEXT, st.integers(0, 9) | TEXT | st.lists(TEXT, max_size=2), max_size=2) | st.just([]),
    "texts": st.lists(TEXT, max_size=3),
}


@st.composite
def values(draw: st.DrawFn, message: str, depth: int = 3) -> dict[str, Any]:
    found: dict[str, Any] = {}
    known = MESSAGES[message]
    for label in draw(st.lists(st.sampled_from(sorted(known)), max_size=4, unique=True)) if known else ():
        kind = known[label][1]
        if label == ".":
            found |= draw(values(qualified(kind, message), depth))
        elif (element := _element(kind, message, depth)) is not None:
            found[label] = draw(element)
    return found


def _element(kind: str, message: str, depth: int) -> st.SearchStrategy[Any] | None:
    if kind[:2] in ("[]", "{}"):
        element = _element(kind[2:], message, depth)
        if element is None:
            return None
        if kind[0] == "[":
            return st.lists(element, min_size=1, max_size=3)
        return st.dictionaries(TEXT, element, min_size=1, max_size=3)
    if kind in PLAIN:
        return PLAIN[kind]
    if not depth:
        return None
    if kind.startswith("schema-or-"):
        schema = values(SCHEMA, depth - 1)
        others: dict[str, st.SearchStrategy[Any]] = {
            "schema-or-bool": st.booleans(),
            "schema-or-list": st.lists(schema, min_size=1, max_size=2),
            "schema-or-texts": st.lists(TEXT, min_size=1, max_size=2),
        }
        return schema | others[kind]
    return values(qualified(kind, message), depth - 1)


SERVED = sorted(name for name in MESSAGES if not name.startswith("meta/"))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_what_is_written_is_read(data: st.DataObject) -> None:
    message = data.draw(st.sampled_from(SERVED))
    value = data.draw(values(message))
    section, _, kind = message.rpartition(".")
    raw = encode(message, value)
    found = as_json(Envelope("", "", raw), section.removeprefix("core/"), kind)
    assert found is not None
    assert json.loads(found) == value


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(RECORDED), st.data())
def test_damaged_bytes_are_refused_or_read_but_never_crash(case: dict[str, Any], data: st.DataObject) -> None:
    body = bytearray(base64.b64decode(case["protobuf"]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(4, len(body) - 1))
        match data.draw(st.sampled_from(["change", "cut", "insert"])):
            case "change":
                body[at] = data.draw(st.integers(0, 255))
            case "cut":
                del body[at : at + data.draw(st.integers(1, 40))]
            case _:
                body[at:at] = data.draw(st.binary(max_size=12))
        if len(body) < 6:
            break
    try:
        found = as_json(open_envelope(bytes(body)))
    except ProtobufError:
        return
    assert found is None or json.loads(found) is not None


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_or_read(raw: bytes) -> None:
    try:
        as_json(Envelope("v1", "Pod", raw))
        as_json(open_envelope(b"k8s\0" + raw))
    except ProtobufError:
        pass


# --- By hand


def test_negative_numbers_take_ten_bytes_and_keep_their_sign() -> None:
    raw = b"\x0a\x03\x0a\x01p" + b"\x10" + b"\xfe" + b"\xff" * 8 + b"\x01"  # PriorityClass.value
    assert decoded("scheduling.k8s.io/v1", "PriorityClass", raw) == {"metadata": {"name": "p"}, "value": -2}


def test_pointers_to_zero_are_kept() -> None:
    raw = sized(2, varint(8) + varint(0))  # Deployment.spec.replicas
    assert decoded("apps/v1", "Deployment", raw) == {"spec": {"replicas": 0}}


def test_a_zero_time_is_absent_and_the_epoch_is_not() -> None:
    assert decoded("v1", "ConfigMap", sized(1, sized(8, b""))) == {"metadata": {}}
    epoch = sized(1, sized(8, b"\x08\x00\x10\x00"))
    assert decoded("v1", "ConfigMap", epoch) == {"metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"}}


def test_a_field_that_comes_twice_is_more_of_the_same() -> None:
    raw = sized(1, sized(1, b"a")) + sized(1, sized(3, b"ns")) + sized(1, sized(1, b"b"))
    assert decoded("v1", "ConfigMap", raw) == {"metadata": {"name": "b", "namespace": "ns"}}


def test_map_entries_without_a_value_have_a_zero_one() -> None:
    raw = sized(2, sized(1, b"k")) + sized(3, sized(1, b"k")) + sized(2, sized(2, b"no key"))
    assert decoded("v1", "ConfigMap", raw) == {"data": {"k": "", "": "no key"}, "binaryData": {"k": ""}}


def test_lists_of_numbers_may_be_packed() -> None:
    ids = [1000, -1, 2**40]
    packed = sized(4, b"".join(map(varint, ids)))
    unpacked = b"".join(varint(4 << 3) + varint(each) for each in ids)
    for raw in (packed, unpacked):
        pod = sized(2, sized(14, raw))  # Pod.spec.securityContext.supplementalGroups
        assert decoded("v1", "Pod", pod)["spec"]["securityContext"]["supplementalGroups"] == ids


def test_what_is_inline_in_json_is_not_nested() -> None:
    volume = sized(1, b"v") + sized(2, sized(2, b""))
    assert decoded("v1", "Pod", sized(2, sized(1, volume))) == {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}


def test_unknown_fields_are_skipped() -> None:
    unknown = varint(900 << 3) + varint(7) + varint(900 << 3 | 1) + bytes(8) + varint(900 << 3 | 5) + bytes(4)
    unknown += sized(900, b"x" * 300) + varint(900 << 3 | 3) + varint(8) + varint(1) + varint(900 << 3 | 4)
    assert decoded("v1", "ConfigMap", unknown + sized(1, sized(1, b"a")) + unknown) == {"metadata": {"name": "a"}}


def test_text_that_is_not_utf8_becomes_replacement_characters() -> None:
    assert decoded("v1", "ConfigMap", sized(2, sized(1, b"k") + sized(2, b"a\xffb"))) == {"data": {"k": "a\ufffdb"}}


def test_objects_within_objects_may_have_an_envelope_of_their_own() -> None:
    inner = envelope("v1", "ConfigMap", sized(1, sized(1, b"in")))
    revision = sized(1, sized(1, b"r")) + sized(2, sized(1, inner)) + varint(24) + varint(1)
    expected = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "in"}}
    found = decoded("apps/v1", "ControllerRevision", revision)
    assert found == {"metadata": {"name": "r"}, "data": expected, "revision": 1}


@pytest.mark.parametrize("raw", [b'{"a":', b'1},"metadata":{"name":"x"}', b"'", b"[" * 100_000])
def test_embedded_json_must_be_json(raw: bytes) -> None:
    with pytest.raises(ProtobufError, match="json"):
        decoded("apps/v1", "ControllerRevision", sized(2, sized(1, raw)))


def test_depth_is_bounded() -> None:
    schema = b""
    for _ in range(5000):
        schema = sized(28, schema)  # not
    version = sized(1, b"v1") + sized(4, sized(1, schema))
    with pytest.raises(ProtobufError, match="nested too deeply"):
        decoded("apiextensions.k8s.io/v1", "CustomResourceDefinition", sized(2, sized(7, version)))


@pytest.mark.parametrize("kind", ["DeleteOptions", "Status"])
def test_some_kinds_are_known_in_every_version(kind: str) -> None:
    assert decoded("apps/v1", kind, b"") == {}


@pytest.mark.parametrize(
    ("api_version", "kind"), [("v1", "Gadget"), ("example.com/v1", "Widget"), ("apps/v9", "Deployment")]
)
def test_nothing_is_made_of_kinds_that_have_no_numbers(api_version: str, kind: str) -> None:
    assert as_json(Envelope(api_version, kind, b"")) is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty data"),
        (b"k8s\0", "empty body"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\0garbage", "proto: illegal wireType 7"),
        (b"k8s\0\x0a\xff", "unexpected EOF"),
        (envelope("v1", "ConfigMap", b"\x0a\x7f"), "unexpected EOF"),
        (envelope("v1", "ConfigMap", b"\x0a\x02\x0a\x01"), "unexpected EOF"),
        (envelope("v1", "ConfigMap", b"\x08\x7f"), "proto: wrong wireType = 0 for field ObjectMeta"),
        (envelope("v1", "ConfigMap", b"\x0f"), "proto: wrong wireType = 7 for field ObjectMeta"),
        (envelope("v1", "ConfigMap", b"\x00"), "proto: ConfigMap: illegal tag 0 (wire type 0)"),
        (envelope("v1", "ConfigMap", b"\x0c"), "proto: ConfigMap: wiretype end group for non-group"),
        (envelope("v1", "ConfigMap", b"\xff" * 12), "proto: integer overflow"),
        (
            envelope("v1", "ConfigMap", b"\x0a" + b"\xff" * 9 + b"\x01"),
            "proto: negative length found during unmarshaling",
        ),
    ],
)
def test_what_is_wrong_is_said_in_gos_words(body: bytes, words: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        as_json(open_envelope(body))
    assert str(caught.value) == words
