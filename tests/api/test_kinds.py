"""Every class says what the published schemas say, and what is decoded comes back as it was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybernetes.api import schema, scheme
from pybernetes.api.base import Kind, Struct
from pybernetes.api.resources import RESOURCES
from pybernetes.api.schema import FieldInfo

kubernetes_validate = pytest.importorskip("kubernetes_validate")

PREFIXES = {
    "io.k8s.apimachinery.pkg.apis.meta.v1": "meta.v1",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1": "apiextensions.v1",
    "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1": "apiregistration.v1",
}
# Types with a name on the wire, and lists, which are put together from bytes.
NOT_CLASSES = re.compile(
    r"\.(FieldsV1|JSON|JSONSchemaPropsOr\w+|MicroTime|Patch|Time)$|(?<!\.APIGroup)(?<!\.APIResource)List$"
)
WIRE_TYPES = {"string": "string", "integer": "int", "boolean": "bool", "number": "float", "object": "any"}
REFERENCES = {
    "Quantity": ("string", "quantity"),
    "IntOrString": ("string", "int-or-string"),
    "Time": ("string", "date-time"),
    "MicroTime": ("string", "micro-time"),
    "FieldsV1": ("any", "fields-v1"),
    "RawExtension": ("any", "raw-extension"),
    "JSON": ("any", "json"),
}


def definitions() -> dict[str, tuple[str, str, dict[str, Any]]]:
    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema/v1.36.0-local"
    found = {}
    for name, definition in json.loads((folder / "_definitions.json").read_text())["$defs"].items():
        prefix, _, short = name.rpartition(".")
        match = re.fullmatch(r"io\.k8s\.api\.([a-z]+)\.(v\d)", prefix)
        module = PREFIXES.get(prefix) or (match and f"{match[1]}.{match[2]}")
        if module and not NOT_CLASSES.search(name):
            found[name] = (module, short, definition)
    return found


DEFINITIONS = definitions()


def class_of(module: str, name: str) -> type[Struct]:
    found: type[Struct] = getattr(__import__(f"pybernetes.api.{module}", fromlist=[name]), name)
    return found


def type_of(definition: dict[str, Any]) -> str:
    kind = definition.get("type", "object")
    return next(each for each in kind if each != "null") if isinstance(kind, list) else kind


def agrees(info: FieldInfo, definition: dict[str, Any]) -> bool:
    if reference := definition.get("$ref"):
        name = reference.rpartition(".")[2]
        if name in REFERENCES:
            return (info.kind, info.format) == REFERENCES[name]
        if name.startswith("JSONSchemaPropsOr"):
            return info.kind == "any"
        return info.kind == "struct" and info.struct is not None and info.struct.__name__ == name
    if type_of(definition) == "array":
        return info.kind == "list" and info.items is not None and agrees(info.items, definition["items"])
    if "additionalProperties" in definition:
        element = definition["additionalProperties"]
        return info.kind == "map" and info.items is not None and agrees(info.items, element)
    return info.kind == WIRE_TYPES[type_of(definition)] and info.format == definition.get("format")


def test_the_schemas_are_those_of_all_stable_groups() -> None:
    modules = {module for module, _, _ in DEFINITIONS.values()}
    assert {f"{each.package}.{each.version}" for each in RESOURCES} | {"meta.v1"} == modules
    assert len(DEFINITIONS) > 480


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_class_has_the_fields_of_its_definition(name: str) -> None:
    module, short, definition = DEFINITIONS[name]
    cls = class_of(module, short)
    fields = schema.fields_by_wire(cls)
    properties = definition.get("properties", {})
    assert fields.keys() == properties.keys()
    required = set(definition.get("required", ()))
    for wire, described in properties.items():
        info = fields[wire]
        assert agrees(info, described), wire
        assert info.required == (wire in required), wire
        assert info.list_type == described.get("x-kubernetes-list-type"), wire
        assert list(info.list_map_keys) == described.get("x-kubernetes-list-map-keys", []), wire
        assert info.patch_strategy == described.get("x-kubernetes-patch-strategy"), wire
        assert info.patch_merge_key == described.get("x-kubernetes-patch-merge-key"), wire
        if "x-kubernetes-map-type" in described:
            assert info.map_type == described["x-kubernetes-map-type"], wire
    map_type = getattr(cls, "map_type", None)
    assert (map_type and map_type.name) == definition.get("x-kubernetes-map-type")
    union = schema.union_of(cls)
    assert (union is None) == ("x-kubernetes-unions" not in definition)


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: f"{each.fullname}/{each.version}")
def test_a_resource_has_a_kind_that_can_be_decoded(resource: Any) -> None:
    assert issubclass(resource.type, Kind)
    value = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {"name": "a"}}
    text = msgspec.json.encode(value)
    assert scheme.encoder.encode(scheme.decoder(resource).decode(text)) == text


def test_an_object_begins_with_kind_api_version_and_metadata() -> None:
    pods = scheme.resource("", "v1", "pods")
    assert pods is not None
    text = b'{"spec":{"nodeName":"n"},"metadata":{"namespace":"b","name":"a"},"apiVersion":"v1","kind":"Pod"}'
    assert scheme.encoder.encode(scheme.decoder(pods).decode(text)) == (
        b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b"},"spec":{"nodeName":"n"}}'
    )


@pytest.mark.parametrize(
    "text",
    [
        b'{"spec":{"nodename":"n"}}',
        b'{"spec":{"priority":2147483648}}',
        b'{"spec":{"hostNetwork":"yes"}}',
        b'{"spec":{"containers":[{"name":1}]}}',
    ],
)
def test_the_decoder_refuses_unknown_fields_and_wrong_types(text: bytes) -> None:
    pods = scheme.resource("", "v1", "pods")
    assert pods is not None
    with pytest.raises(msgspec.ValidationError):
        scheme.decoder(pods).decode(text)


def test_names_on_the_wire_keep_their_acronyms() -> None:
    service = schema.fields_by_wire(class_of("core.v1", "ServiceSpec"))
    assert service["clusterIPs"].name == "cluster_ips"
    assert schema.fields_by_wire(class_of("core.v1", "PodSpec"))["setHostnameAsFQDN"].name == "set_hostname_as_fqdn"
    assert schema.fields_by_wire(class_of("networking.v1", "NetworkPolicyIngressRule"))["from"].name == "from_"
    assert schema.fields_by_wire(class_of("apiextensions.v1", "JSONSchemaProps"))["$ref"].name == "ref"


TEXT = st.text(max_size=4)
FORMATS: dict[str, st.SearchStrategy[Any]] = {
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "quantity": st.sampled_from(["1", "100m", "1Gi", 2, 0.5]),
    "int-or-string": st.one_of(st.integers(0, 9), TEXT),
}
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "int": st.integers(-9, 9),
    "bool": st.booleans(),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "any": st.fixed_dictionaries({"a": st.integers(0, 9)}),
}


def values(info: FieldInfo, depth: int) -> st.SearchStrategy[Any]:
    if info.struct is not None:
        return objects(info.struct, depth - 1)
    if info.items is not None:
        elements = values(info.items, depth)
        if info.kind == "list":
            return st.lists(elements, max_size=2)
        return st.dictionaries(TEXT, elements, max_size=2)
    if info.kind == "any" and info.format is None:
        return st.just({})
    return FORMATS.get(info.format or "", KINDS[info.kind])


def objects(cls: type[Struct], depth: int) -> st.SearchStrategy[dict[str, Any]]:
    """Some fields of a class with values of their types, in their order on the wire."""
    if depth == 0:
        return st.just({})

    @st.composite
    def draw_object(draw: st.DrawFn) -> dict[str, Any]:
        chosen = draw(st.sets(st.sampled_from(every), max_size=4)) if every else set()
        return {info.wire: draw(values(info, depth)) for info in every if info in chosen}

    every = [info for info in schema.fields(cls) if info.items is None or info.items.kind != "any"]
    return draw_object()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_what_is_decoded_comes_back_as_it_was(data: st.DataObject) -> None:
    resource = data.draw(st.sampled_from(RESOURCES))
    value = data.draw(objects(resource.type, 5))
    text = msgspec.json.encode(value)
    assert scheme.encoder.encode(scheme.decoder(resource).decode(text)) == text
