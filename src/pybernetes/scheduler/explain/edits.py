"""Copies of pods and nodes with something changed: what is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from pybernetes.api.core.v1 import Node, NodeStatus, Pod
from pybernetes.api.core.v1.affinity import Taint
from pybernetes.api.quantity import Quantity
from pybernetes.client.keys import copy

from ..framework.podinfo import PodInfo

Edit = tuple[str, Callable[[Node], None]]
"""A change of a node: its description, and the function that makes it."""


def edited(node: Node, edits: Iterable[Edit]) -> Node:
    """The node after these changes."""
    variant = copy(node)
    for _, edit in edits:
        edit(variant)
    return variant


def uncordon(node: Node) -> None:
    """Let pods come again."""
    assert node.spec is not None
    node.spec.unschedulable = None


def untaint(taint: Taint, node: Node) -> None:
    """Take a taint away."""
    assert node.spec is not None
    node.spec.taints = [each for each in node.spec.taints or () if each != taint]


def add_label(key: str, value: str, node: Node) -> None:
    """Give it a label."""
    assert node.metadata is not None
    node.metadata.labels = {**(node.metadata.labels or {}), key: value}


def enlarge(allocatable: dict[str, str], node: Node) -> None:
    """Let it have so much of some resources."""
    node.status = node.status or NodeStatus()
    node.status.allocatable = {**(node.status.allocatable or {}), **allocatable}


def reduced(pod: Pod, resource: str, by: int) -> Pod | None:
    """The pod asking for so much less, taken from its containers one after the other; None if that cannot be done."""
    variant = copy(pod)
    assert variant.spec is not None
    before = PodInfo(pod).requests.get(resource, 0)
    for container in variant.spec.containers or ():
        requests = container.resources.requests if container.resources else None
        if not requests or resource not in requests or by <= 0:
            continue
        assert container.resources is not None
        has = PodInfo(Pod(metadata=pod.metadata, spec=msgspec.structs.replace(variant.spec, containers=[container])))
        mine = has.requests.get(resource, 0)
        taken = min(mine, by)
        container.resources.requests = {**requests, resource: quantity(resource, mine - taken)}
        by -= taken
    return variant if by <= 0 and PodInfo(variant).requests.get(resource, 0) < before else None


def quantity(resource: str, amount: int) -> str:
    """An amount as the API writes it."""
    return f"{amount}m" if resource == "cpu" else str(amount)


def amount_text(resource: str, amount: int) -> str:
    """As people write it: `500m`, `2`, `1536Mi`."""
    if resource == "cpu":
        return str(Quantity.milli(amount))
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
            if amount % size == 0:
                return f"{amount // size}{unit}"
    return str(amount)
