"""Defaults for LimitRanges and ResourceQuotas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..v1.quota import LimitRange, LimitRangeItem, LimitRangeSpec, ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus
from .resources import default_resource_list


def default_limit_range(obj: LimitRange) -> None:
    """For containers: a default limit from the maximum, a default request from the limit or the minimum."""
    if obj.spec is None:
        obj.spec = LimitRangeSpec()
    for item in obj.spec.limits or ():
        if item.type is None:
            item.type = ""
        for resources in (item.max, item.min, item.default, item.default_request, item.max_limit_request_ratio):
            default_resource_list(resources)
        if item.type == "Container":
            _default_container(item)


def _default_container(item: LimitRangeItem) -> None:
    limits = {**(item.max or {}), **(item.default or {})}
    item.default = limits or None
    item.default_request = {**(item.min or {}), **limits, **(item.default_request or {})} or None


def default_resource_quota(obj: ResourceQuota) -> None:
    """Quantities are rounded up to thousandths."""
    if obj.spec is None:
        obj.spec = ResourceQuotaSpec()
    default_resource_list(obj.spec.hard)
    if obj.status is None:
        obj.status = ResourceQuotaStatus()
    default_resource_list(obj.status.hard)
    default_resource_list(obj.status.used)


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {
    "LimitRange": default_limit_range,
    "ResourceQuota": default_resource_quota,
}
