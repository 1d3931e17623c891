"""The configuration of ResourceQuota: resources that may only be used where a quota covers them."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.base import Struct
from pybernetes.api.core.v1 import ScopedResourceSelectorRequirement

from .configuration import check_kind

_VERSIONS = (
    "apiserver.config.k8s.io/v1",
    "resourcequota.admission.k8s.io/v1",
    "resourcequota.admission.k8s.io/v1beta1",
    "resourcequota.admission.k8s.io/v1alpha1",
)


class LimitedResource(Struct):
    """A resource that needs a quota: for the names that contain a text, or within scopes."""

    api_group: str = ""
    resource: str = ""
    match_contains: list[str] = []
    match_scopes: list[ScopedResourceSelectorRequirement] = []


class _Configuration(Struct):
    limited_resources: list[LimitedResource] = []


def read_configuration(configuration: Any) -> list[LimitedResource]:
    """The limited resources. Raises ValueError."""
    if configuration is None:
        return []
    kind = configuration.get("kind") if isinstance(configuration, dict) else None
    wanted = kind if kind in ("ResourceQuotaConfiguration", "Configuration") else "ResourceQuotaConfiguration"
    fields = check_kind(configuration, wanted, _VERSIONS, "ResourceQuota")
    if "limitedResources" in fields and fields["limitedResources"] is None:
        del fields["limitedResources"]
    try:
        limited = msgspec.convert(fields, _Configuration).limited_resources
    except msgspec.ValidationError as error:
        raise ValueError(f"ResourceQuota: {error}") from None
    for index, each in enumerate(limited):
        if not each.resource:
            raise ValueError(f"ResourceQuota: limitedResources[{index}].resource: Required value")
    return limited
