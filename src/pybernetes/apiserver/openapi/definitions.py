"""Schemas of the kinds, made from what their classes say (`api/schema.py`).

Version 3 says more than version 2: defaults, and what an int-or-string really is. A version 3 schema with `$ref` may
have nothing beside it, hence the `allOf`; version 2 documents always had siblings, and clients rely on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any

from msgspec import UNSET

from pybernetes.api.base import Kind, Struct
from pybernetes.api.meta.v1 import (
    APIGroup,
    APIGroupList,
    APIResourceList,
    APIVersions,
    DeleteOptions,
    GroupVersionForDiscovery,
    ListMeta,
    ServerAddressByClientCIDR,
    Status,
    WatchEvent,
)
from pybernetes.api.resources import Resource
from pybernetes.api.schema import ANY, LIST, MAP, FieldInfo, fields, union_of
from pybernetes.api.types import Always, MapType, Required

from .descriptions import Descriptions
from .names import META, NAMED_FORMATS, definition_name

Schema = dict[str, Any]
GroupVersion = tuple[str, str]

_TYPES = {"string": "string", "int": "integer", "bool": "boolean", "float": "number", "any": "object"}
_JSON = NAMED_FORMATS["json"]
# The types of JSONSchemaProps' fields that are one thing or another, by the name of the field.
_ONE_OR_OTHER = {
    "items": f"{_JSON}SchemaPropsOrArray",
    "additionalItems": f"{_JSON}SchemaPropsOrBool",
    "additionalProperties": f"{_JSON}SchemaPropsOrBool",
    "dependencies": f"{_JSON}SchemaPropsOrStringArray",
}
_NOT_CLASSES: dict[str, Schema] = {
    NAMED_FORMATS["quantity"]: {"type": "string"},
    NAMED_FORMATS["int-or-string"]: {"type": "string", "format": "int-or-string"},
    NAMED_FORMATS["raw-extension"]: {"type": "object"},
    NAMED_FORMATS["date-time"]: {"type": "string", "format": "date-time"},
    NAMED_FORMATS["micro-time"]: {"type": "string", "format": "date-time"},
    NAMED_FORMATS["fields-v1"]: {"type": "object"},
    f"{META}.Patch": {"type": "object"},
    _JSON: {},
    **{name: {} for name in _ONE_OR_OTHER.values()},
}
_NOT_CLASSES_V3: dict[str, Schema] = {
    NAMED_FORMATS["quantity"]: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    NAMED_FORMATS["int-or-string"]: {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
}
# What every group and version knows, and what only v1 does.
_EVERYWHERE = (DeleteOptions, WatchEvent)
# Their fields have no markers, but upstream's schemas have defaults.
_DISCOVERY = (APIGroup, GroupVersionForDiscovery, ServerAddressByClientCIDR)
_ZEROES: dict[str, Any] = {"string": "", "struct": {}}
_ONLY_CORE = (APIGroup, APIGroupList, APIResourceList, APIVersions, Status)


_Text = Annotated[str | None, Required, Always("")]


class Info(Struct):
    """The response of `/version`."""

    definition_name = "io.k8s.apimachinery.pkg.version.Info"

    major: _Text = None
    minor: _Text = None
    emulation_major: str | None = None
    emulation_minor: str | None = None
    min_compatibility_major: str | None = None
    min_compatibility_minor: str | None = None
    git_version: _Text = None
    git_commit: _Text = None
    git_tree_state: _Text = None
    build_date: _Text = None
    go_version: _Text = None
    compiler: _Text = None
    platform: _Text = None


class Definitions:
    """The schemas of one document. What is asked for is added with everything it refers to."""

    def __init__(self, version: int, group_versions: Iterable[GroupVersion], descriptions: Descriptions) -> None:
        self.schemas: dict[str, Schema] = {}
        self._v3 = version == 3
        self._prefix = "#/components/schemas/" if self._v3 else "#/definitions/"
        self._group_versions = sorted({("", "v1"), *group_versions})
        self._descriptions = descriptions

    def reference(self, cls: type[Struct]) -> Schema:
        """A reference to a class."""
        name = definition_name(cls)
        if name not in self.schemas:
            self.schemas[name] = {}  # first, because classes refer to themselves
            self.schemas[name] = self._class(name, cls)
        return {"$ref": self._prefix + name}

    def elsewhere(self, name: str) -> Schema:
        """A reference to a schema that is not made here."""
        return {"$ref": self._prefix + name}

    def list_reference(self, resource: Resource) -> Schema:
        """A reference to the list of a resource."""
        if isinstance(resource.type, str):
            return self.elsewhere(resource.type.removesuffix(resource.kind) + resource.list_kind)
        name = f"{definition_name(resource.type)}List"
        if name not in self.schemas:
            described, of_fields = self._descriptions.of(name)
            item: Schema = self.reference(resource.type)
            items: Schema = {"type": "array", "items": self._wrapped(item | {"default": {}})}
            properties: dict[str, Schema] = {
                "apiVersion": {"type": "string"},
                "items": items,
                "kind": {"type": "string"},
                "metadata": self._wrapped(self.reference(ListMeta) | {"default": {}}),
            }
            self.schemas[name] = {
                **({"description": described} if described else {}),
                "type": "object",
                "required": ["items"],
                "properties": {
                    wire: self._described(each, of_fields.get(wire, "")) for wire, each in properties.items()
                },
                "x-kubernetes-group-version-kind": [_kind(resource.group, resource.version, resource.list_kind)],
            }
        return {"$ref": self._prefix + name}

    def named(self, name: str) -> Schema:
        """A reference to a type that is not a class."""
        if name not in self.schemas:
            schema = dict(_NOT_CLASSES[name])
            if self._v3:
                schema = dict(_NOT_CLASSES_V3.get(name, schema))
            described, _ = self._descriptions.of(name)
            self.schemas[name] = {"description": described, **schema} if described else schema
        return {"$ref": self._prefix + name}

    def _class(self, name: str, cls: type[Struct]) -> Schema:
        described, of_fields = self._descriptions.of(name)
        described = described or " ".join((cls.__doc__ or "").split())
        schema: Schema = {**({"description": described} if described else {}), "type": "object"}
        infos = sorted(fields(cls), key=lambda info: info.wire)
        if required := [info.wire for info in fields(cls) if info.required]:
            schema["required"] = required
        if infos:
            if cls in _DISCOVERY:
                infos = [each if each.wire in ("kind", "apiVersion") else _zero(each) for each in infos]
            schema["properties"] = {info.wire: self._field(info, of_fields.get(info.wire, "")) for info in infos}
        if kinds := self._kinds(cls):
            schema["x-kubernetes-group-version-kind"] = kinds
        if map_type := _own_map_type(cls):
            schema["x-kubernetes-map-type"] = map_type
        if union := union_of(cls):
            discriminated: dict[str, Any] = {"fields-to-discriminateBy": dict(sorted(union.fields.items()))}
            if union.discriminator:
                discriminated = {"discriminator": union.discriminator, **discriminated}
            schema["x-kubernetes-unions"] = [discriminated]
        return schema

    def _kinds(self, cls: type[Struct]) -> list[dict[str, str]]:
        if cls in _EVERYWHERE:
            return [_kind(group, version, cls.__name__) for group, version in self._group_versions]
        if cls in _ONLY_CORE:
            return [_kind("", "v1", cls.__name__)]
        if not issubclass(cls, Kind):
            return []
        package, version = cls.__module__.split(".")[2:4]
        return [_kind(group_of_package(package), version, cls.__name__)]

    def _field(self, info: FieldInfo, described: str) -> Schema:
        schema = self._type(info, info.wire)
        if info.list_type:
            schema["x-kubernetes-list-type"] = info.list_type
        if info.list_map_keys:
            schema["x-kubernetes-list-map-keys"] = list(info.list_map_keys)
        if info.map_type and info.map_type != _own_map_type(info.struct):
            schema["x-kubernetes-map-type"] = info.map_type
        if info.patch_strategy:
            schema["x-kubernetes-patch-strategy"] = info.patch_strategy
        if info.patch_merge_key:
            schema["x-kubernetes-patch-merge-key"] = info.patch_merge_key
        return self._described(self._wrapped(schema), described)

    def _type(self, info: FieldInfo, wire: str) -> Schema:
        schema = self._plain_type(info, wire)
        if info.enum:
            schema["enum"] = sorted(info.enum)
        if info.default is not UNSET:
            schema["default"] = info.default
        return schema

    def _plain_type(self, info: FieldInfo, wire: str) -> Schema:
        if info.struct is not None:
            return self.reference(info.struct)
        if info.kind == LIST and info.items:
            return {"type": "array", "items": self._wrapped(self._type(info.items, wire))}
        if info.kind == MAP and info.items:
            return {"type": "object", "additionalProperties": self._wrapped(self._type(info.items, wire))}
        if info.format in NAMED_FORMATS:
            return self.named(NAMED_FORMATS[info.format])
        if info.kind == ANY and wire in _ONE_OR_OTHER:
            return self.named(_ONE_OR_OTHER[wire])
        schema: Schema = {"type": _TYPES[info.kind]}
        if info.format:
            schema["format"] = info.format
        return schema

    def _wrapped(self, schema: Schema) -> Schema:
        """As the version allows a reference and a default to stand."""
        if not self._v3:
            schema.pop("default", None)
        elif "$ref" in schema and len(schema) > 1:
            return {"allOf": [{"$ref": schema.pop("$ref")}], **schema}
        return schema

    def _described(self, schema: Schema, described: str) -> Schema:
        return self._wrapped({"description": described, **schema}) if described else schema


def _zero(info: FieldInfo) -> FieldInfo:
    return replace(info, default=_ZEROES.get(info.kind, info.default))


def _own_map_type(cls: type[Struct] | None) -> str | None:
    map_type: MapType | None = getattr(cls, "map_type", None)
    return map_type.name if map_type else None


def _kind(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "kind": kind, "version": version}


def group_of_package(package: str) -> str:
    """`rbac` -> `rbac.authorization.k8s.io`."""
    from pybernetes.api.resources import GROUPS

    return next((each.name for each in GROUPS if (each.name.partition(".")[0] or "core") == package), "")
