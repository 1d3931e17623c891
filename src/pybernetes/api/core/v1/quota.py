"""core/v1: quota.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ...base import Kind, Struct
from ...types import Always, Enum, ListType, MapType, Quantity, Required


class LimitRange(Kind):
    """Bounds and defaults for what one pod, container or claim in a namespace may ask for."""

    spec: Annotated[LimitRangeSpec | None, Always({})] = None


class LimitRangeSpec(Struct):
    limits: Annotated[list[LimitRangeItem] | None, Required, Always(None), ListType("atomic")] = None


class LimitRangeItem(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    max: dict[str, Quantity] | None = None
    min: dict[str, Quantity] | None = None
    default: dict[str, Quantity] | None = None
    default_request: dict[str, Quantity] | None = None
    max_limit_request_ratio: dict[str, Quantity] | None = None


class ResourceQuota(Kind):
    """The sum of what a namespace may use."""

    spec: Annotated[ResourceQuotaSpec | None, Always({})] = None
    status: Annotated[ResourceQuotaStatus | None, Always({})] = None


class ResourceQuotaSpec(Struct):
    hard: dict[str, Quantity] | None = None
    scopes: Annotated[
        list[str] | None,
        Enum(
            "BestEffort",
            "CrossNamespacePodAffinity",
            "NotBestEffort",
            "NotTerminating",
            "PriorityClass",
            "Terminating",
            "VolumeAttributesClass",
        ),
        ListType("atomic"),
    ] = None
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Struct):
    hard: dict[str, Quantity] | None = None
    used: dict[str, Quantity] | None = None


class ScopeSelector(Struct):
    map_type: ClassVar = MapType("atomic")

    match_expressions: Annotated[list[ScopedResourceSelectorRequirement] | None, ListType("atomic")] = None


class ScopedResourceSelectorRequirement(Struct):
    scope_name: Annotated[
        str | None,
        Required,
        Always(""),
        Enum(
            "BestEffort",
            "CrossNamespacePodAffinity",
            "NotBestEffort",
            "NotTerminating",
            "PriorityClass",
            "Terminating",
            "VolumeAttributesClass",
        ),
    ] = None
    operator: Annotated[str | None, Required, Always(""), Enum("DoesNotExist", "Exists", "In", "NotIn")] = None
    values: Annotated[list[str] | None, ListType("atomic")] = None
