"""The documents are complete, consistent, and say what the published schemas and generated clients say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes.client
import kubernetes_validate
import msgspec
import openapi_spec_validator
import pytest

from pybernetes.api.resources import GROUPS, RESOURCES
from pybernetes.apiserver.openapi import documents
from pybernetes.apiserver.registry.registry import strategy_for


def plain(document: Any) -> Any:
    """As a client reads it."""
    return msgspec.json.decode(msgspec.json.encode(document))


V2 = plain(documents.v2())
V3 = plain(documents.v3())
METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
SCHEMAS = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema/v1.36.0-local/_definitions.json"
PUBLISHED = json.loads(SCHEMAS.read_text())["$defs"]


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from nodes(each)
    elif isinstance(value, list):
        for each in value:
            yield from nodes(each)


def resolves(document: Any, reference: str) -> bool:
    found = document
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part)
        if found is None:
            return False
    return True


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in V2["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


@pytest.mark.parametrize("document", [V2, *V3.values()], ids=["v2", *V3])
def test_every_reference_leads_somewhere(document: Any) -> None:
    references = {node["$ref"] for node in nodes(document) if isinstance(node.get("$ref"), str)}
    assert references
    assert {each for each in references if not resolves(document, each)} == set()


def test_version_2_is_valid() -> None:
    openapi_spec_validator.validate(V2)


@pytest.mark.parametrize("path", V3)
def test_version_3_is_valid(path: str) -> None:
    # Defaults that are zero, whatever is required or enumerated, are upstream's habit; this validator minds them.
    document = plain(V3[path])
    for node in nodes(document):
        if node.get("default") in ({}, ""):
            del node["default"]
    openapi_spec_validator.validate(document)


def test_there_is_a_document_for_each_group_and_version() -> None:
    versions = {f"apis/{group.name}/{version}" for group in GROUPS if group.name for version in group.versions}
    groups = {f"apis/{group.name}" for group in GROUPS if group.name}
    assert V3.keys() == {"api", "api/v1", "apis", "version"} | versions | groups


def test_both_versions_have_the_same_paths_operations_and_definitions() -> None:
    paths = {path: item for document in V3.values() for path, item in document["paths"].items()}
    assert paths.keys() == V2["paths"].keys()
    for path, method, operation in operations():
        assert paths[path][method]["operationId"] == operation["operationId"]
    definitions = {name for document in V3.values() for name in document["components"]["schemas"]}
    assert definitions == V2["definitions"].keys()


@pytest.mark.parametrize("name", V2["definitions"])
def test_a_definition_says_what_the_published_schema_says(name: str) -> None:
    ours, published = V2["definitions"][name], PUBLISHED[name]
    assert set(ours.get("required", ())) == set(published.get("required", ()))
    assert ours.get("x-kubernetes-map-type") == published.get("x-kubernetes-map-type")
    assert ours.get("x-kubernetes-unions") == published.get("x-kubernetes-unions")
    if not name.endswith((".DeleteOptions", ".WatchEvent")):  # they belong to every version, and fewer are served
        kinds = "x-kubernetes-group-version-kind"
        assert ours.get(kinds) == published.get(kinds)
    properties, expected = ours.get("properties", {}), published.get("properties", {})
    assert properties.keys() == expected.keys()
    for field, schema in properties.items():
        assert type_of(schema) == type_of(expected[field]), field
        extensions = {key: value for key, value in schema.items() if key.startswith("x-")}
        assert extensions == {key: value for key, value in expected[field].items() if key.startswith("x-")}, field


def type_of(schema: dict[str, Any]) -> Any:
    """The type of a field, however deep, without the `null` that the published schemas allow."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    kind = schema.get("type")
    kind = next(each for each in kind if each != "null") if isinstance(kind, list) else kind
    inner = schema.get("items") or schema.get("additionalProperties")
    return kind, schema.get("format"), type_of(inner) if isinstance(inner, dict) else None


def test_every_kind_and_its_list_has_a_definition() -> None:
    kinds = {
        (kind["group"], kind["version"], kind["kind"])
        for definition in V2["definitions"].values()
        for kind in definition.get("x-kubernetes-group-version-kind", ())
    }
    for resource in RESOURCES:
        assert (resource.group, resource.version, resource.kind) in kinds
        assert "list" not in resource.verbs or (resource.group, resource.version, resource.list_kind) in kinds


def test_version_3_has_defaults_enumerations_and_true_types() -> None:
    schemas = V3["apis/apps/v1"]["components"]["schemas"]
    port = schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]
    assert (port["protocol"]["default"], port["protocol"]["enum"]) == ("TCP", ["SCTP", "TCP", "UDP"])
    spec = schemas["io.k8s.api.apps.v1.Deployment"]["properties"]["spec"]
    assert spec["default"] == {}
    assert spec["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}]
    assert schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["oneOf"] == [
        {"type": "integer"},
        {"type": "string"},
    ]
    options = schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]["x-kubernetes-group-version-kind"]
    assert [(each["group"], each["version"]) for each in options] == [("", "v1"), ("apps", "v1")]


def test_version_2_has_no_defaults_but_extensions_beside_references() -> None:
    assert not any("default" in schema for schema in V2["definitions"].values())
    strategy = V2["definitions"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"]
    assert strategy["$ref"].endswith(".DeploymentStrategy")
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    claim = V2["definitions"]["io.k8s.api.core.v1.PersistentVolumeSpec"]["properties"]["claimRef"]
    assert claim["x-kubernetes-map-type"] == "granular"


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids)) > 800


def test_parameters_of_paths_are_declared() -> None:
    for path, item in V2["paths"].items():
        shared = V2["parameters"]
        given = [shared.get(each.get("$ref", "").rpartition("/")[2], each) for each in item.get("parameters", ())]
        names = {each["name"] for each in given if each["in"] == "path"}
        assert names == set(re.findall(r"\{(\w+)\}", path)), path


def test_operations_have_the_names_of_the_official_client() -> None:
    missing = []
    for path, _, operation in operations():
        if operation.get("x-kubernetes-action", "").startswith("watch"):  # the client has a way of its own
            continue
        owner = "".join(part[:1].upper() + part[1:] for part in operation["tags"][0].split("_"))
        name = operation["operationId"].replace(owner, "", 1)
        method = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
        if not hasattr(getattr(kubernetes.client, f"{owner}Api"), method):
            missing.append((path, operation["operationId"], method))
    assert missing == []


def test_what_a_delete_answers_is_what_the_strategies_say() -> None:
    shown = {each.plural for each in RESOURCES if strategy_for(each).returns_deleted}
    assert shown - {"namespaces"} <= documents.RETURNS_DELETED
    pod = V2["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["delete"]["responses"]["200"]["schema"]
    config_map = V2["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["delete"]["responses"]["200"]["schema"]
    assert pod["$ref"].endswith(".Pod")
    assert config_map["$ref"].endswith(".Status")


def test_custom_kinds_are_merged() -> None:
    custom = {"paths": {"/apis/example.org/v1/": {"get": {}}}, "definitions": {"org.example.v1.Widget": {}}}
    merged = documents.v2([custom])
    assert "/apis/example.org/v1/" in merged["paths"]
    assert "org.example.v1.Widget" in merged["definitions"]
    assert merged["paths"].keys() > V2["paths"].keys()
