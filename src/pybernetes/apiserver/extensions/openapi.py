"""The custom resources that are served, as the OpenAPI documents want to know them."""

from __future__ import annotations

from functools import partial

import msgspec

from ..openapi.handler import Custom
from ..openapi.kinds import CustomKind
from ..registry.registry import Registry
from .resource import CustomResource


def custom_kinds(registry: Registry) -> Custom:
    """The kinds of each group and version, described on request only."""
    groups: dict[str, list[CustomResource]] = {}
    for resource in registry.custom_resources():
        if isinstance(resource, CustomResource):
            groups.setdefault(resource.path.strip("/"), []).append(resource)
    return {path: (resources, partial(_described, resources)) for path, resources in groups.items()}


def _described(resources: list[CustomResource]) -> list[CustomKind]:
    return [_kind(resource) for resource in resources]


def _kind(resource: CustomResource) -> CustomKind:
    custom = resource.custom
    return CustomKind(
        resource.group,
        resource.version,
        resource.plural,
        resource.kind,
        resource.list_kind,
        resource.namespaced,
        custom.has_status,
        custom.scale is not None,
        _schema(resource),
        custom.preserves,
        [(field.json_path or "").removeprefix(".") for field in custom.defined.selectable_fields or ()],
    )


class _Validation(msgspec.Struct, gc=False):
    schema: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"null"), name="openAPIV3Schema")


def _schema(resource: CustomResource) -> msgspec.Raw:
    """The schema as it is written, not decoded."""
    written = resource.schema
    return _Validation().schema if written is None else msgspec.json.decode(written, type=_Validation).schema
