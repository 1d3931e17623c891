"""Defaults for a CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .v1 import (
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
)

WEBHOOK_PORT: Final = 443


def default_custom_resource_definition(definition: CustomResourceDefinition) -> None:
    """Names from the kind, no conversion, and the first storage version as the stored one."""
    spec = definition.spec
    if spec is None:
        spec = definition.spec = CustomResourceDefinitionSpec()
    _default_names(spec)
    if spec.conversion is None:
        spec.conversion = CustomResourceConversion(strategy="None")
    client = spec.conversion.webhook.client_config if spec.conversion.webhook else None
    if client is not None and client.service is not None and client.service.port is None:
        client.service.port = WEBHOOK_PORT
    status = definition.status
    if status is None:
        status = definition.status = CustomResourceDefinitionStatus()
    if not status.stored_versions:
        stored = next((each.name or "" for each in spec.versions or () if each.storage), None)
        status.stored_versions = None if stored is None else [stored]


def _default_names(spec: CustomResourceDefinitionSpec) -> None:
    names = spec.names
    if names is None:
        names = spec.names = CustomResourceDefinitionNames()
    if names.kind:
        names.singular = names.singular or names.kind.lower()
        names.list_kind = names.list_kind or f"{names.kind}List"


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"CustomResourceDefinition": default_custom_resource_definition}
