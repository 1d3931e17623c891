"""Quantities in resource lists: written the canonical way, with nothing finer than a thousandth."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...quantity import canonicalize, parse
from ..v1.compute import ResourceRequirements

_MILLI = -3


def default_resource_list(resources: dict[str, Any] | None) -> None:
    """Round every quantity up to a thousandth. Raises QuantityError for what is no quantity."""
    if resources:
        for name, value in resources.items():
            resources[name] = _rounded(value)


def default_resource_requirements(resources: ResourceRequirements) -> None:
    """The same for limits and requests."""
    if resources.limits:
        default_resource_list(resources.limits)
    if resources.requests:
        default_resource_list(resources.requests)


@lru_cache(4096, typed=True)
def _rounded(value: Any) -> str:
    text = canonicalize(value)
    return str(parse(text).round_up(_MILLI))
