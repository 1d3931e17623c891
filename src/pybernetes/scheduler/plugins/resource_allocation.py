"""Shared by the two plugins that score by resources: a node's usage with the pod on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybernetes.api.core.podrequests import pod_requests
from pybernetes.api.quantity import Quantity

from ..framework import PodInfo, Rows
from ..framework.podinfo import DEFAULT_MEMORY, DEFAULT_MILLI_CPU, as_requests

if TYPE_CHECKING:
    from ..config.v1.args import ResourceSpec
    from ..snapshot.snapshot import Int64, Snapshot

_PLAIN = ("cpu", "memory", "ephemeral-storage")
_MISSING = {"cpu": Quantity.milli(DEFAULT_MILLI_CPU), "memory": Quantity(DEFAULT_MEMORY)}


class Share(NamedTuple):
    """One resource on some rows: what there is, what is in use, what the pod adds, how much it counts."""

    allocatable: Int64
    allocated: Int64
    request: int
    weight: int


Wanted = tuple[tuple[str, int, int], ...]
"""For each resource that counts: its name, its weight and what the pod asks for."""


def wanted(resources: Sequence[ResourceSpec], requests: dict[str, int]) -> Wanted:
    """The pod's requests of the scored resources; extended ones that it does not request are left out."""
    found = []
    for each in resources:
        name = each.name or ""
        request = requests.get(name, 0)
        if request or name in _PLAIN:
            found.append((name, each.weight or 0, request))
    return tuple(found)


def scoring_requests(pod: PodInfo) -> dict[str, int]:
    """The requests by which NodeResourcesFit scores a pod: its containers', with a default for those without.

    Upstream looks at containers only, even when the pod as a whole says what it wants.
    """
    if pod.spec.resources is None and not (pod.pod.status and pod.pod.status.container_statuses):
        cpu, memory = pod.nonzero_requests
        return {**pod.requests, "cpu": cpu, "memory": memory}
    bare = msgspec.structs.replace(pod.pod, spec=msgspec.structs.replace(pod.spec, resources=None))
    return as_requests(pod_requests(bare, use_status=False, missing=_MISSING))


def allocated_column(snapshot: Snapshot, name: str, *, nonzero: bool) -> Int64:
    """The column of a resource's usage. `nonzero` counts pods without requests by scoring's default."""
    if nonzero and name == "cpu":
        return snapshot.nonzero_cpu
    if nonzero and name == "memory":
        return snapshot.nonzero_memory
    return snapshot.requested(name)


def shares(snapshot: Snapshot, wanted: Wanted, rows: Rows, *, nonzero: bool) -> list[Share]:
    """The resources that count, on these rows."""
    return [
        Share(
            snapshot.allocatable(name)[rows],
            allocated_column(snapshot, name, nonzero=nonzero)[rows],
            request,
            weight,
        )
        for name, weight, request in wanted
    ]
