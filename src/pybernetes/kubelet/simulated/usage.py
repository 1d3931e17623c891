"""Computes a simulated container's usage of CPU and memory, and when it exceeds its memory limit. Pure.

CPU is cut off at the limit, as the kernel does it; who has more memory than its limit is killed.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.podresources import quantity

from ..runtime.types import ObservedContainer
from .curves import Curve, Moved, constant
from .settings import Behaviour

CPU: Final = 0.01
MEMORY: Final = 16.0 * (1 << 20)
"""Cores and bytes that a container uses of which nothing else is known."""


def cpu(container: AnyContainer, wanted: Behaviour, found: ObservedContainer) -> Curve | Moved:
    """Cores, by the container's age."""
    curve = _placed(wanted.cpu or constant(_asked(container, "cpu") or CPU), found)
    limit = _limit(container, "cpu")
    return curve if limit is None else curve.capped(limit)


def memory(container: AnyContainer, wanted: Behaviour, found: ObservedContainer) -> Curve | Moved:
    """Bytes, by the container's age."""
    return _placed(wanted.memory or constant(_asked(container, "memory") or MEMORY), found)


def memory_limit(container: AnyContainer) -> int | None:
    """Bytes that a container may have."""
    limit = _limit(container, "memory")
    return None if limit is None else int(limit)


def killed_at(container: AnyContainer, wanted: Behaviour, found: ObservedContainer, now: float) -> float | None:
    """When it will have too much memory, from now on; None: never."""
    limit = memory_limit(container)
    if wanted.memory is None or limit is None:
        return None
    age = memory(container, wanted, found).first_above(limit, max(0.0, now - found.started_at))
    return None if age is None else found.started_at + age


def _placed(curve: Curve, found: ObservedContainer) -> Curve | Moved:
    """A curve that wanders begins at a place that is the container's own."""
    if not curve.wanders:
        return curve
    return curve.moved(int(found.id[:8] or "0", 16) / (1 << 32) * curve.period)


def _asked(container: AnyContainer, resource: str) -> float:
    """The amount it requests, else its limit, as the API's defaulting has it."""
    resources = container.resources
    for each in (resources.requests, resources.limits) if resources else ():
        if each and resource in each:
            return float(quantity(each[resource]).decimal())
    return 0.0


def _limit(container: AnyContainer, resource: str) -> float | None:
    limits = (container.resources.limits if container.resources else None) or {}
    return float(quantity(limits[resource]).decimal()) if resource in limits else None
