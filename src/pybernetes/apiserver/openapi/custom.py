"""The parts of custom resources in the documents: their schemas and operations, one part for each group and version.

Version 2 knows less than what a definition may say: alternatives are left out, and what may be null or hold unknown
fields is said to be anything, as clients of that version would refuse it otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from pybernetes.api.meta.v1 import ListMeta, ObjectMeta
from pybernetes.api.resources import Resource, Subresource

from .definitions import Definitions
from .descriptions import Descriptions
from .documents import INFO, SECURITY, Document, Named, WriterV2, WriterV3
from .kinds import CustomKind
from .operations import Path, resource_paths

_VERBS = ("get", "patch", "update")


@dataclass(frozen=True, eq=False)
class _Documented(Resource):
    list_name: str = ""

    @cached_property
    def list_kind(self) -> str:
        return self.list_name

    @cached_property
    def type(self) -> Any:
        return Named(_name(self.group, self.version, self.kind))


def _name(group: str, version: str, kind: str) -> str:
    return f"{'.'.join(reversed(group.split('.')))}.{version}.{kind}"


def part_v2(kinds: list[CustomKind]) -> Document:
    """The paths and definitions that the kinds of a group and version add to the one document."""
    writer = WriterV2(Definitions(2, [(kinds[0].group, kinds[0].version)], Descriptions()), share=False)
    paths = dict(sorted(writer.path(path) for kind in kinds for path in _paths(kind)))
    definitions: Document = {}
    for kind in kinds:
        definitions |= _schemas(kind, "#/definitions/", 2)
    return {"paths": paths, "definitions": definitions}


def part_v3(kinds: list[CustomKind]) -> Document:
    """The document of a group and version."""
    definitions = Definitions(3, [(kinds[0].group, kinds[0].version)], Descriptions())
    writer = WriterV3(definitions)
    paths = dict(sorted(writer.path(path) for kind in kinds for path in _paths(kind)))
    definitions.reference(ObjectMeta)
    definitions.reference(ListMeta)
    for kind in kinds:
        definitions.schemas |= _schemas(kind, "#/components/schemas/", 3)
    components = {"schemas": dict(sorted(definitions.schemas.items())), "securitySchemes": SECURITY}
    return {"openapi": "3.0.0", "info": INFO, "paths": paths, "components": components}


def _paths(kind: CustomKind) -> Iterator[Path]:
    subresources = [Subresource("status", _VERBS)] if kind.status else []
    if kind.scale:
        subresources.append(Subresource("scale", _VERBS, "Scale", "autoscaling", "v1"))
    verbs = ("create", "delete", "deletecollection", "get", "list", "patch", "update")
    resource = _Documented(
        kind.group,
        kind.version,
        kind.plural,
        kind.kind,
        kind.namespaced,
        verbs=verbs,
        subresources=tuple(subresources),
        list_name=kind.list_kind,
    )
    return resource_paths(resource)


def _schemas(kind: CustomKind, prefix: str, version: int) -> Document:
    """The schemas of a kind and of its list."""
    name = _name(kind.group, kind.version, kind.kind)
    metadata = {"$ref": f"{prefix}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    list_metadata = {"$ref": f"{prefix}io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}
    own = _own(kind, metadata, version)
    own["x-kubernetes-group-version-kind"] = [_gvk(kind, kind.kind)]
    if kind.selectable:
        own["x-kubernetes-selectable-fields"] = [{"fieldPath": each} for each in kind.selectable]
    properties = {
        "apiVersion": _text("APIVersion defines by which version of the schema the list is written."),
        "items": {
            "description": f"All {kind.plural}.",
            "type": "array",
            "items": {"$ref": prefix + name},
        },
        "kind": _text("Kind is the name of the type of the list."),
        "metadata": _referring(list_metadata, "What is said of the list as a whole.", version),
    }
    listed = {
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [_gvk(kind, kind.list_kind)],
    }
    return {name: own, _name(kind.group, kind.version, kind.list_kind): listed}


def _own(kind: CustomKind, metadata: Document, version: int) -> Document:
    schema: Document | None = msgspec.json.decode(kind.schema)
    if schema is None:
        return {"type": "object"}
    if version == 2:
        if kind.preserves or schema.get("x-kubernetes-preserve-unknown-fields"):
            return {"type": "object"}  # with properties, clients would take them for all there may be
        schema = _as_v2(schema)
    if b"x-kubernetes-embedded-resource" in bytes(kind.schema):
        schema = _with_embedded(schema, metadata, version)
    schema["properties"] = {
        "apiVersion": _text("APIVersion defines by which version of the schema the object is written."),
        "kind": _text("Kind is the name of the type of the object."),
        "metadata": _referring(metadata, "Standard object's metadata: what every object says of itself.", version),
        **{key: each for key, each in schema.get("properties", {}).items() if key not in _TYPE},
    }
    return schema


_TYPE = ("apiVersion", "kind", "metadata")


def _gvk(kind: CustomKind, name: str) -> dict[str, str]:
    return {"group": kind.group, "kind": name, "version": kind.version}


def _text(description: str) -> Document:
    return {"description": description, "type": "string"}


def _referring(reference: Document, description: str, version: int) -> Document:
    """A reference with a description; beside one, version 3 allows nothing."""
    if version == 2:
        return {"description": description, **reference}
    return {"description": description, "allOf": [reference]}


def _with_embedded(schema: Document, metadata: Document, version: int) -> Document:
    """The schema with the type and metadata of every object inside."""
    result = _map(schema, lambda each: _with_embedded(each, metadata, version))
    if version == 2 and result.get("x-kubernetes-preserve-unknown-fields"):
        return result
    if result.get("x-kubernetes-embedded-resource"):
        result["properties"] = {
            **result.get("properties", {}),
            "apiVersion": _text("APIVersion defines by which version of the schema the object is written."),
            "kind": _text("Kind is the name of the type of the object."),
            "metadata": _referring(metadata, "Standard object's metadata: what every object says of itself.", version),
        }
        result["required"] = list(dict.fromkeys([*result.get("required", ()), "kind", "apiVersion"]))
    return result


def _as_v2(schema: Document) -> Document:
    """The schema without what version 2 has no word for."""
    result = {key: each for key, each in schema.items() if key not in _NOT_IN_V2}
    nullable = bool(result.pop("nullable", False))
    if nullable:
        result.pop("type", None)
    preserves = bool(result.get("x-kubernetes-preserve-unknown-fields"))
    if nullable or preserves:
        result.pop("items", None)
        result.pop("properties", None)
    if result.get("type") == "array" and "items" not in result:
        del result["type"]
    if preserves and result.get("type") == "object":
        del result["type"]
    maybe = [key for key, each in result.get("properties", {}).items() if each.get("nullable")]
    required = [each for each in result.get("required", ()) if each not in maybe]
    others = result.get("additionalProperties")
    if not required or (isinstance(others, dict) and others.get("nullable")):
        result.pop("required", None)
    else:
        result["required"] = required
    return _map(result, _as_v2)


_NOT_IN_V2 = frozenset({"allOf", "oneOf", "anyOf", "not", "default", "x-kubernetes-validations"})


def _map(schema: Document, change: Any) -> Document:
    """The schema with every schema below it changed."""
    result = dict(schema)
    if "properties" in result:
        result["properties"] = {key: change(each) for key, each in result["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = change(result[key])
    return result
