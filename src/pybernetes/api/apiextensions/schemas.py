"""Walking over a JSON schema, and the canonical place of what all versions of a definition share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..equality import semantically_equal
from .v1 import (
    CustomResourceColumnDefinition,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    CustomResourceValidation,
    JSONSchemaProps,
    SelectableField,
)


def subschemas(schema: JSONSchemaProps | None) -> Iterator[JSONSchemaProps]:
    """A schema and all schemas inside it."""
    if schema is None:
        return
    yield schema
    inner: list[Any] = [schema.not_, *(schema.all_of or ()), *(schema.any_of or ()), *(schema.one_of or ())]
    inner += schema.items if isinstance(schema.items, list) else [schema.items]
    for mapping in (schema.properties, schema.pattern_properties, schema.definitions, schema.dependencies):
        inner += (mapping or {}).values()
    inner += [schema.additional_properties, schema.additional_items]
    for each in inner:
        if isinstance(each, JSONSchemaProps):
            yield from subschemas(each)


def has_rules(schema: JSONSchemaProps | None) -> bool:
    """Whether a schema has rules (`x-kubernetes-validations`) anywhere."""
    return any(each.x_kubernetes_validations for each in subschemas(schema))


def schema_of(version: CustomResourceDefinitionVersion) -> JSONSchemaProps | None:
    """The schema of a version, if it has one."""
    return version.schema.open_apiv_3_schema if version.schema else None


def all_subschemas(spec: CustomResourceDefinitionSpec) -> Iterator[JSONSchemaProps]:
    """Every schema in every version."""
    for version in spec.versions or ():
        yield from subschemas(schema_of(version))


class Shared(NamedTuple):
    """The fields that all versions share; errors about them name a path above the versions, as upstream's do."""

    schema: CustomResourceValidation | None
    subresources: CustomResourceSubresources | None
    columns: list[CustomResourceColumnDefinition] | None
    selectable_fields: list[SelectableField] | None
    versions: list[CustomResourceDefinitionVersion]
    """The versions without what they share."""


_SHARED = ("schema", "subresources", "additional_printer_columns", "selectable_fields")


def shared(spec: CustomResourceDefinitionSpec) -> Shared:
    """Split a spec into what its versions share and what they do not."""
    versions = spec.versions or []
    if not versions:
        return Shared(None, None, None, None, [])
    common: dict[str, Any] = {}
    for name in _SHARED:
        first = getattr(versions[0], name)
        if all(semantically_equal(getattr(each, name), first) for each in versions):
            common[name] = first
    rest = []
    for version in versions:
        fields = {name: getattr(version, name) for name in version.__struct_fields__ if name not in common}
        rest.append(CustomResourceDefinitionVersion(**fields))
    return Shared(
        common.get("schema"),
        common.get("subresources"),
        common.get("additional_printer_columns"),
        common.get("selectable_fields"),
        rest,
    )
