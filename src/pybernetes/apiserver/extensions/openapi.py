"""The custom resources that are served, as the OpenAPI documents want to know them."""

from __future__ import annotations

from functools import partial

import msgspec

from ..openapi.handler import Custom
from ..openapi.kinds import CustomKind
from ..registry.registry import Registry
from .resource import CustomResource

_encode = msgspec.json.Encoder().encode


def custom_kinds(registry: Registry) -> Custom:
    """The kinds of each group and version, described only if somebody asks."""
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
        msgspec.Raw(_encode(custom.schema)),
        custom.preserves,
        [(field.json_path or "").removeprefix(".") for field in custom.defined.selectable_fields or ()],
    )
