"""A definition without its schemas, which are most of it: those stay bytes until the kind is used.

A cluster has dozens of definitions with thousands of fields each, and most of its kinds are hardly ever used.
"""

from __future__ import annotations

import msgspec

from pybernetes.api import scheme, strict
from pybernetes.api.apiextensions.v1 import (
    CustomResourceColumnDefinition,
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    CustomResourceValidation,
    JSONSchemaProps,
    SelectableField,
)
from pybernetes.api.gocompat import goencoder
from pybernetes.api.meta.v1 import ObjectMeta


class _Version(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: msgspec.Raw = msgspec.Raw(b"")
    subresources: CustomResourceSubresources | None = None
    additional_printer_columns: list[CustomResourceColumnDefinition] | None = None
    selectable_fields: list[SelectableField] | None = None


class _Spec(msgspec.Struct, rename="camel", gc=False):
    group: str = ""
    names: CustomResourceDefinitionNames | None = None
    scope: str = ""
    versions: list[_Version] | None = None
    conversion: CustomResourceConversion | None = None
    preserve_unknown_fields: bool = False


class _Whole(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: msgspec.Raw
    status: CustomResourceDefinitionStatus | None = None


_whole = msgspec.json.Decoder(_Whole).decode
_spec = msgspec.json.Decoder(_Spec).decode
_validation = msgspec.json.Decoder(CustomResourceValidation).decode


def _definition(raw: bytes) -> CustomResourceDefinition:
    resource = scheme.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert resource is not None
    found: CustomResourceDefinition = scheme.stored_decoder(resource)(raw)
    return found


class Outline(msgspec.Struct, gc=False):
    """`definition` has versions without schemas; `schemas` has these as they are written, by version."""

    definition: CustomResourceDefinition
    schemas: dict[str, bytes | msgspec.Raw]
    spec: msgspec.Raw
    """All that is asked for, as it is written: two that are equal ask for the same."""


def outline(raw: bytes) -> Outline:
    """The outline of a stored definition; fields that a later version of this program wrote are left out."""
    try:
        whole = _whole(raw)
        spec = _spec(whole.spec)
    except msgspec.ValidationError:
        whole = _whole(goencoder.encode(_definition(raw)))
        spec = _spec(whole.spec)
    schemas: dict[str, bytes | msgspec.Raw] = {}
    versions = []
    for each in spec.versions or ():
        if bytes(each.schema) not in (b"", b"null"):
            schemas[each.name] = each.schema
        versions.append(
            CustomResourceDefinitionVersion(
                name=each.name,
                served=each.served,
                storage=each.storage,
                deprecated=each.deprecated,
                deprecation_warning=each.deprecation_warning,
                subresources=each.subresources,
                additional_printer_columns=each.additional_printer_columns,
                selectable_fields=each.selectable_fields,
            )
        )
    made = CustomResourceDefinitionSpec(
        group=spec.group,
        names=spec.names,
        scope=spec.scope,
        versions=versions,
        conversion=spec.conversion,
        preserve_unknown_fields=spec.preserve_unknown_fields or None,
    )
    return Outline(
        CustomResourceDefinition(metadata=whole.metadata, spec=made, status=whole.status), schemas, whole.spec
    )


def read_schema(raw: bytes | msgspec.Raw | None) -> JSONSchemaProps | None:
    """The schema of a version."""
    if raw is None:
        return None
    try:
        return _validation(raw).open_apiv_3_schema
    except msgspec.ValidationError:
        return strict.convert(CustomResourceValidation, msgspec.json.decode(raw))[0].open_apiv_3_schema
