"""The record of an attempt to schedule a pod, handed to a recorder that explains it later.

Everything is *borrowed*: arrays belong to the framework and change with the next attempt. A recorder copies what it
keeps (masks are one byte a row, normalised scores fit into one) and returns quickly; with no recorder nothing is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from .plugin import Mask, RowArray, Scores
from .podinfo import PodInfo
from .status import Status

if TYPE_CHECKING:
    from .diagnosis import Diagnosis
    from .runtime import Framework
    from .state import CycleState

SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt to place one pod."""

    pod: PodInfo
    framework: Framework
    """The profile it was made with: `framework.profile_name`, its plugins, `framework.handle`."""
    state: CycleState
    number: int
    """Which attempt for this pod, from 1."""
    started: float
    """The clock's now()."""
    seconds: float
    result: str
    node_name: str = ""
    """Where it goes, if anywhere."""
    nominated_node_name: str = ""
    """Where preemption makes room for it."""
    status: Status | None = None
    """Why not."""
    names: list[str] = field(default_factory=list)
    """Node names by row; may be kept."""
    size: int = 0
    """The snapshot's number of rows; masks are as long."""
    alive: Mask | None = None
    masks: dict[str, Mask] = field(default_factory=dict)
    """By filter plugin, in the order of running: False = refused. Later plugins were not asked about rows that an
    earlier one refused. Plugins that had nothing to say (skipped) are not in it."""
    diagnosis: Diagnosis | None = None
    """If it fits nowhere: rows by reason. Otherwise `framework.diagnose(attempt)` works it out while you are called"""
    feasible: RowArray | None = None
    """The rows that were scored; None when there was but one, which needs no score."""
    scores_at: Callable[[RowArray | slice], dict[str, Scores]] = lambda positions: {}
    """Normalised scores, 0..100, by plugin, of these positions of `feasible`. To gather all costs more than to choose
    the node: ask for what you keep."""
    weights: dict[str, int] = field(default_factory=dict)
    total: Scores | None = None
    """The sum of scores times weights, aligned with `feasible`."""


class AttemptRecorder(Protocol):
    """Records attempts."""

    def record(self, attempt: Attempt) -> None:
        """An attempt has ended (in the scheduling cycle; what binding brings comes by `bound`)."""
        ...

    def bound(self, pod: PodInfo, node_name: str, status: Status | None) -> None:
        """The binding cycle has ended, well if the status is None."""
        ...

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        ...
