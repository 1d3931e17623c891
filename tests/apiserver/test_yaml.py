"""YAML as upstream reads and writes it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import msgspec
import pytest
import yaml
from apiserver.client import Client

from pybernetes.api.yaml import YAMLProblem, _KubernetesDumper, json_to_yaml, yaml_to_json
from pybernetes.apiserver.negotiation import YAML, Format
from pybernetes.apiserver.pipeline.respond import YamlResponse, write


def read(text: str) -> Any:
    return msgspec.json.decode(yaml_to_json(text.encode())[0])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("1", 1),
        ("+1", 1),
        ("012", 10),
        ("08", 8),
        ("0o14", 12),
        ("0x10", 16),
        ("0b11", 3),
        ("1_000", 1000),
        ("1e5", 100000),
        ("5.", 5),
        (".5", 0.5),
        ("99999999999999999999", 100000000000000000000),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("1e400", "1e400"),
        ("'y'", "y"),
        ("!!str 1", "1"),
        ("!!int '1'", 1),
        ("!!binary aGk=", "hi"),
        ("!mine x", "x"),
        ("<<", "<<"),
        ("|\n  a\n  b", "a\nb"),
    ],
)
def test_what_a_scalar_means(text: str, value: Any) -> None:
    assert read(f"a: {text}") == {"a": value}


@pytest.mark.parametrize(("key", "name"), [("y", "true"), ("1", "1"), ("1e3", "1000"), ("null ", None)])
def test_keys_become_text(key: str, name: str | None) -> None:
    if name is None:
        with pytest.raises(YAMLProblem, match="unsupported map key"):
            read(f"{key}: a")
    else:
        assert read(f"{key}: a") == {name: "a"}


def test_merge_keys_and_aliases() -> None:
    assert read("x: &x {a: b, c: d}\ny1: {<<: *x, c: e}\nz: *x") == {
        "x": {"a": "b", "c": "d"},
        "y1": {"a": "b", "c": "e"},
        "z": {"a": "b", "c": "d"},
    }


def test_only_the_first_document_counts() -> None:
    assert read("---\na: 1\n---\nb: 2\n") == {"a": 1}


def test_keys_given_twice_are_reported_with_their_line() -> None:
    json, repeated = yaml_to_json(b"a: 1\nb: 2\na: 3\n")
    assert msgspec.json.decode(json) == {"a": 3, "b": 2}
    assert repeated == ['line 3: key "a" already set in map']


def test_the_line_of_a_key_given_twice_is_that_of_its_value_and_inner_keys_come_first() -> None:
    _, repeated = yaml_to_json(b"a: 1\na:\n  b: 2\n  b:\n  - 3\n")
    assert repeated == ['line 5: key "b" already set in map', 'line 3: key "a" already set in map']


def test_unknown_fields_are_reported_in_the_order_of_names(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"
    made = client.post(path, b"z: 1\nmetadata: {name: a, x: 1, Labels: {}}\n", Content_Type="application/yaml")
    assert [each.split('\\"')[1] for each in made.warnings] == ["metadata.Labels", "metadata.x", "z"]


def test_options_of_a_delete_that_cannot_be_read(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/a"
    answer = client.delete(path, b"a: b: c", Content_Type="application/yaml")
    assert (answer.status, answer.message) == (400, "yaml: mapping values are not allowed in this context")


def test_a_failed_merge_of_an_apply_is_reported_before_its_repeated_keys(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/a?fieldManager=m&fieldValidation=Strict"
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    wrong = client.patch(path, f"{head}data: {{a: b, a: [1]}}\n".encode(), "apply")
    assert "failed to create typed patch object" in wrong.message
    refused = client.patch(path, f"{head}data: {{a: b, a: c}}\n".encode(), "apply")
    assert 'line 4: key "a" already set in map' in refused.message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a:\n\tb: c", "yaml: line 2: found character that cannot start any token"),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: &a [*a]", "yaml: anchor value contains itself"),
        ("a: !!null x", "yaml: cannot decode !!str `x` as a !!null"),
        ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
    ],
)
def test_documents_that_cannot_be_read(text: str, problem: str) -> None:
    with pytest.raises(YAMLProblem) as raised:
        read(text)
    assert str(raised.value) == problem


def test_aliases_do_not_blow_up() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(YAMLProblem, match="excessive aliasing"):
        read("\n".join(lines))


@pytest.mark.parametrize(
    "text", ["y", "1e5", "", "a\nb\n", "0o14", "2020-01-01", "1:30", "null", "- a", "a: b", " a", "#"]
)
def test_what_is_written_reads_the_same(text: str) -> None:
    assert read(json_to_yaml(msgspec.json.encode({text or "k": text})).decode()) == {text or "k": text}


def test_repeated_keys_follow_field_validation(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All&fieldValidation="
    body = b"metadata: {name: a}\ndata: {a: b, a: c}\n"
    warned = client.post(path + "Warn", body, Content_Type="application/yaml")
    assert warned.status == 201
    assert warned.warnings == [r'299 - "line 2: key \"a\" already set in map"']
    assert client.post(path + "Ignore", body, Content_Type="application/yaml").warnings == []
    refused = client.post(path + "Strict", body, Content_Type="application/yaml")
    assert (refused.status, refused.message) == (
        400,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'yaml: unmarshal errors:\n  line 2: key "a" already set in map',
    )


def test_a_large_body_does_not_hold_up_others(client: Client, namespace: str) -> None:
    lines = "".join(f"  key-{number}: value-{number}\n" for number in range(30_000))
    body = f"metadata:\n  name: large\ndata:\n{lines}".encode()
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made: list[int] = []

    def create() -> None:
        made.append(client.post(path, body, Content_Type="application/yaml").status)

    thread = threading.Thread(target=create)
    thread.start()
    answered = 0
    while thread.is_alive():
        assert client.get("/version").status == 200
        answered += 1
    assert made == [201]
    assert answered > 3, "others were answered meanwhile"
    assert len(client.get(f"{path}/large").json["data"]) == 30_000
    bad = client.post(path, body + b"oops: [", Content_Type="application/yaml")
    assert (bad.status, bad.json["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []},
        {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": None},
        {"kind": "A", "apiVersion": "v1", "items": [1, "y", [], {}, None, [[1], {"a": "b\nc\n"}]], "zone": {"a": [1]}},
        {"items": [{"metadata": {"name": "a"}, "data": {"x": " a\n b\n", "y": "x" * 200}}, {"a": ["b" * 50] * 3}]},
    ],
)
def test_the_items_of_a_list_are_written_as_the_whole_document_would_be(document: dict[str, Any]) -> None:
    whole = yaml.dump(
        document,
        Dumper=_KubernetesDumper,
        encoding="utf-8",
        allow_unicode=True,
        default_flow_style=False,
    )
    assert json_to_yaml(msgspec.json.encode(document)) == whole


async def test_the_event_loop_goes_on_while_a_long_answer_is_written() -> None:
    """3,000 pods as YAML held up the server for two seconds of its processor's time."""
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": f"c{number}"} for number in range(20)]}}
    raw = msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "items": [pod] * 300})
    response = write(raw, Format(media=YAML))
    assert isinstance(response, YamlResponse)
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await response.complete()
    counting.cancel()
    assert rounds > 20
    assert response.body == json_to_yaml(raw)


def test_a_long_list_is_answered_in_yaml(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(5):
        assert client.post(path, {"metadata": {"name": f"a{number}"}, "data": {"a": "x" * 5000}}).status == 201
    answer = client.get(path, accept="application/yaml")
    assert [each["metadata"]["name"] for each in read(answer.body.decode())["items"]] == [f"a{n}" for n in range(5)]
