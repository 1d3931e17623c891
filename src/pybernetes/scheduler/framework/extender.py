"""The interface of an extender: a webhook that filters, scores or binds after our own plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pybernetes.api.core.v1 import Node, Pod

from .podinfo import PodInfo


@dataclass(slots=True)
class ExtenderFilterResult:
    """The nodes that are left, and why the others are not; names of nodes everywhere."""

    feasible: Sequence[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    failed_and_unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Victims:
    """The victims on one node."""

    pods: list[PodInfo]
    num_pdb_violations: int = 0


class ExtenderError(Exception):
    """An extender could not be asked, or answered with an error."""


class Extender(Protocol):
    """One of `extenders:` in the configuration. Raises `ExtenderError`."""

    name: str
    ignorable: bool
    """Whether the pod may be placed without it when it fails."""
    weight: int
    is_filter: bool
    is_prioritizer: bool
    is_binder: bool
    supports_preemption: bool
    ignored_resources: frozenset[str]
    """Extended resources that NodeResourcesFit shall leave to this extender."""

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether it wants to be asked about this pod."""
        ...

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> ExtenderFilterResult:
        """Which of the nodes the pod may go to."""
        ...

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        """0..10 for each node, before it is multiplied by `weight` (and by ten, to be on the plugins' scale)."""
        ...

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod in our place."""
        ...

    async def process_preemption(
        self, pod: Pod, victims: Mapping[str, Victims], pods_on: Callable[[str], Iterable[PodInfo]]
    ) -> Mapping[str, Victims]:
        """Which of the nodes' victims it agrees with; it may name others of the node's pods (`pods_on`)."""
        ...
