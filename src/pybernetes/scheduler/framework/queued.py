"""A pod in the queue, and what has happened to it so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from pybernetes.trace.recorder import CURRENT, Cause
from pybernetes.trace.span import CAUSES

from .podinfo import PodInfo


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """A pod that waits for a node. Times are the queue's `now()`, seconds since 1970."""

    info: PodInfo
    timestamp: float
    """When it came into the queue it is in; what orders pods of one priority."""
    attempts: int = 0
    initial_attempt_timestamp: float | None = None
    backoff_expiration: float = 0.0
    unschedulable_count: int = 0
    """How many attempts in a row were refused; the back-off doubles with each."""
    consecutive_errors: int = 0
    """How many attempts in a row ended in errors."""
    unschedulable_plugins: set[str] = field(default_factory=set)
    """The plugins that rejected the pod last time; only events they registered wake it. Empty = an error: any event."""
    pending_plugins: set[str] = field(default_factory=set)
    """Those of them who said PENDING: their events skip the back-off."""
    gating_plugin: str = ""
    """The PreEnqueue plugin that keeps it out of the queue."""
    was_flushed_from_unschedulable: bool = False
    causes: list[Cause] = field(default_factory=list)
    """Why it is tried (again), where that is recorded: CAUSES at most."""

    def because(self) -> None:
        """Record the current cause as a reason to try the pod."""
        cause = CURRENT.get()
        if cause is not None and len(self.causes) < CAUSES and cause not in self.causes:
            self.causes.append(cause)

    @property
    def gated(self) -> bool:
        """Whether a PreEnqueue plugin keeps it out."""
        return bool(self.gating_plugin)
