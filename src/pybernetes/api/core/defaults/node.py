"""Defaults for Nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..v1.node import Node
from .resources import default_resource_list


def default_node(obj: Node) -> None:
    """Without allocatable amounts, the capacity is allocatable."""
    spec = obj.spec
    if spec is not None:
        # Old clients know one block only; what they say counts.
        if spec.pod_cidr:
            if not spec.pod_cidrs or spec.pod_cidrs[0] != spec.pod_cidr:
                spec.pod_cidrs = [spec.pod_cidr]
        elif spec.pod_cidrs:
            spec.pod_cidr = spec.pod_cidrs[0]
    status = obj.status
    if status is not None:
        if not status.allocatable and status.capacity is not None:
            status.allocatable = dict(status.capacity)
        default_resource_list(status.capacity)
        default_resource_list(status.allocatable)


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"Node": default_node}
