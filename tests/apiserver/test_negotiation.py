"""The form of answers: media types, transformations, pretty printing; paths that are not quite right."""

from __future__ import annotations

import json

import pytest
from apiserver.client import Client

CONFIG_MAP = {"metadata": {"name": "a"}, "data": {"n": "y", "lines": "one\ntwo", "number": "1e5", "empty": ""}}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture
def path(client: Client, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert client.post(path, CONFIG_MAP).status == 201
    return path


def test_an_unsupported_media_type_is_refused_by_name(client: Client, path: str) -> None:
    answer = client.get(f"{path}/a", Accept="text/plain")
    assert answer.status == 406
    assert answer.message == "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"
    assert answer.json["details"] == {}


@pytest.mark.parametrize("quality", ["0", "x"])
def test_an_odd_quality_is_accepted(client: Client, path: str, quality: str) -> None:
    assert client.get(f"{path}/a", Accept=f"application/json;q={quality}").status == 200


def test_a_transformation_that_does_not_fit_is_reported_after_the_object_was_looked_for(
    client: Client, path: str
) -> None:
    one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    many = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    answer = client.get(path, Accept=one)
    assert (answer.status, answer.message) == (
        406,
        "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
    )
    answer = client.get(f"{path}/a", Accept=many)
    assert (answer.status, answer.message) == (
        406,
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
    )
    assert client.get(f"{path}/nope", Accept=many).status == 404
    assert client.get(f"{path}?fieldSelector=metadata.name=nope", Accept=many).json["items"] is None


def test_failures_come_in_the_form_that_was_asked_for(client: Client, path: str) -> None:
    answer = client.get(f"{path}/nope", Accept="application/yaml")
    assert answer.status == 404
    assert answer.headers["Content-Type"] == "application/yaml"
    assert b'message: configmaps "nope" not found\n' in answer.body
    assert client.get(f"{path}/nope?pretty=true").body.startswith(b'{\n  "kind": "Status",\n')


@pytest.mark.parametrize(
    ("value", "pretty"),
    [("1", True), ("t", True), ("True", True), ("0", False), ("false", False), ("", False), ("yes", False)],
)
def test_pretty(client: Client, path: str, value: str, pretty: bool) -> None:
    body = client.get(f"{path}/a?pretty={value}").body
    assert body.startswith(b'{\n  "kind"') == pretty
    assert body.endswith(b"}\n") != pretty  # upstream ends a line, but not an indented document


def test_yaml_quotes_what_could_be_taken_for_something_else(client: Client, path: str) -> None:
    body = client.get(f"{path}/a", Accept="application/yaml").body.decode()
    assert body.startswith(
        'apiVersion: v1\ndata:\n  empty: ""\n'
        '  lines: |-\n    one\n    two\n  "n": "y"\n  number: "1e5"\nkind: ConfigMap\n'
    )


@pytest.mark.parametrize(
    "accept",
    [
        AGGREGATED,
        f"application/json,{AGGREGATED}",
        AGGREGATED.replace(";", " ; "),
        AGGREGATED.replace("json", "yaml"),
        f"{AGGREGATED};profile=nopeer",
    ],
)
def test_aggregated_discovery_wins_wherever_it_stands(client: Client, accept: str) -> None:
    answer = client.get("/apis", Accept=accept)
    media = "application/yaml" if "yaml" in accept else "application/json"
    assert answer.headers["Content-Type"] == f"{media};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert b"APIGroupDiscoveryList" in answer.body[:80] or media == "application/yaml"


def test_aggregated_discovery_in_a_version_that_is_gone(client: Client) -> None:
    old = AGGREGATED.replace("v2", "v2beta1")
    assert client.get("/apis", Accept=old).status == 406
    assert client.get("/apis", Accept=f"{old},application/json").json["kind"] == "APIGroupList"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "//api/v1/namespaces", 404),
        ("GET", "//", 404),
        ("GET", "/apis//v1/pods", 404),
        ("GET", "/api/v1/namespaces/", 200),
        ("GET", "/api/v1/namespaces/default/namespaces", 404),
        ("GET", "/api/v1/namespaces/default/namespaces/default2", 404),
        ("GET", "/%61pi/v1", 200),
        ("GET", "/healthz/", 404),
        ("GET", "/healthz/ping", 200),
        ("GET", "/livez/etcd", 200),
        ("GET", "/metrics/", 404),
        ("GET", "/version/", 200),
        ("GET", "/api/v1/namespaces/%zz", 400),
        ("GET", "/api/v1/namespaces?limit=%zz", 200),
        ("GET", "/api/v1/namespaces?limit=a;b", 200),
        ("HEAD", "/api/v1/namespaces", 405),
        ("HEAD", "/api/v1/namespaces/default", 405),
        ("POST", "/api/v1/bindings", 404),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews/x", 404),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews", 405),
    ],
)
def test_paths(client: Client, method: str, path: str, status: int) -> None:
    assert client(method, path).status == status


@pytest.mark.parametrize("name", [".", "..", "%2e%2e"])
def test_names_that_are_no_path_segments(client: Client, path: str, name: str) -> None:
    plain = name.replace("%2e", ".")
    answer = client.get(f"{path}/{name}")
    assert (answer.status, answer.message) == (400, f"Name parameter invalid: \"{plain}\": may not be '{plain}'")


def test_a_name_with_a_percent_sign(client: Client, path: str) -> None:
    answer = client.delete(f"{path}/a%25b")
    assert (answer.status, answer.message) == (400, "Name parameter invalid: \"a%b\": may not contain '%'")


def test_component_statuses_are_deprecated(client: Client) -> None:
    answer = client.get("/api/v1/componentstatuses/nope")
    assert answer.warnings == ['299 - "v1 ComponentStatus is deprecated in v1.19+"']
    assert answer.message == 'componentstatus "nope" not found'
    assert json.loads(client.get("/api/v1/componentstatuses").body)["kind"] == "ComponentStatusList"


@pytest.mark.parametrize("path", ["/version", "/healthz", "/api/v1/namespaces", "/api/v1/namespaces/nope"])
def test_answers_may_not_be_kept_by_caches(client: Client, path: str) -> None:
    assert client.get(path).headers["Cache-Control"] == "no-cache, private"


@pytest.mark.parametrize(
    "accept", ["application/*", "application/JSON", "application/json;v=v1", "application/json;g=apps"]
)
def test_what_asks_for_half_a_kind_or_a_family_of_types_is_refused(client: Client, accept: str) -> None:
    assert client.get("/api/v1/namespaces/default", Accept=accept).status == 406
