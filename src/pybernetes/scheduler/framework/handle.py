"""The parts of the scheduler that a plugin may use: `self.handle`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Pod
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.informer import Informer

from .extender import Extender
from .podinfo import PodInfo
from .state import CycleState
from .status import Status

if TYPE_CHECKING:
    from ..metrics import Metrics
    from ..nominated import NominatedSums
    from ..snapshot.snapshot import Snapshot
    from .plugin import FilterPlugin

K = TypeVar("K", bound=Kind)


class Nominator(Protocol):
    """Pods for which preemption makes room on a node."""

    followers: list[Callable[[int, PodInfo, str], None]]
    """Called for each pod that is nominated to a node (1) or no more (-1)."""

    def add(self, pod: PodInfo, node_name: str) -> None:
        """Note that the pod is to get this node."""
        ...

    def remove(self, uid: str) -> None:
        """Forget it."""
        ...

    def on_node(self, node_name: str) -> Sequence[PodInfo]:
        """The pods nominated to this node."""
        ...

    def nodes(self) -> Sequence[str]:
        """All nodes with nominated pods."""
        ...

    def node_of(self, uid: str) -> str | None:
        """Which node a pod is nominated to."""
        ...


class Recorder(Protocol):
    """Where events about pods go."""

    def event(
        self,
        obj: Kind,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "Scheduling",
        related: Kind | None = None,
    ) -> None:
        """Something happened to the object. `action` is what the scheduler was doing, `related` who else has a part."""
        ...


class WaitingPod(Protocol):
    """A pod that a Permit plugin lets wait."""

    pod: PodInfo
    node_name: str

    @property
    def pending_plugins(self) -> list[str]:
        """The plugins that have not allowed it yet."""
        ...

    def allow(self, plugin: str) -> None:
        """This plugin lets it go."""
        ...

    def reject(self, plugin: str, message: str) -> bool:
        """It shall not go."""
        ...

    def preempt(self, plugin: str, message: str) -> bool:
        """It must make room, and is tried again."""
        ...


class Handle(Protocol):
    """The scheduler as plugins see it."""

    profile_name: str
    snapshot: Snapshot
    """Live columns. Does not change during a scheduling cycle; do not read it in `pre_bind` and later, nor in hints."""
    client: Client
    clock: Clock
    random: random.Random
    recorder: Recorder
    """Events of the profile's name: `recorder.event(pod, "Warning", reason, message)`."""
    metrics: Metrics
    nominator: Nominator
    nominated: NominatedSums
    """The requests of nominated pods, as columns."""
    extenders: Sequence[Extender]

    @property
    def filters(self) -> Sequence[FilterPlugin]:
        """The profile's filters, in the order of running."""
        ...

    def informer(self, kind: type[K]) -> Informer[K]:
        """The shared cache of a kind. Ask in `__init__`: it is filled before the first pod is looked at.

        Its objects must not be changed. Cluster events of kinds that plugins register for are followed by the core.
        """
        ...

    def waiting_pods(self) -> Iterable[WaitingPod]:
        """All pods that wait for a permit."""
        ...

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """One of them."""
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods now, wherever they are in the queue."""
        ...

    def run_filters(self, state: CycleState, pod: PodInfo, row: int, *, nominated: bool = True) -> Status | None:
        """Whether the pod may go to one row as the snapshot is now, also during a what-if.

        With `nominated`, pods of at least its priority that are nominated to the node count as being there.
        """
        ...

    def run_add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, row: int) -> Status | None:
        """Tell all PreFilter plugins: what if `added` were there? (`WhatIf` changes the snapshot, this the state.)"""
        ...

    def run_remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, row: int) -> Status | None:
        """Tell all PreFilter plugins: what if `removed` were not there?"""
        ...
