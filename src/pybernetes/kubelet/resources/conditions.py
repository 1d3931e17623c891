"""The conditions PodResizePending and PodResizeInProgress of each pod, with upstream's rules about when they change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pybernetes.api.core.v1 import Pod, PodCondition
from pybernetes.api.times import Clock, rfc3339

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
INFEASIBLE: Final = "Infeasible"
DEFERRED: Final = "Deferred"
ERROR: Final = "Error"


@dataclass(slots=True)
class _Pod:
    pending: PodCondition | None = None
    in_progress: PodCondition | None = None


class ResizeConditions:
    """By uid."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, _Pod] = {}

    def list(self, uid: str) -> list[PodCondition]:
        """Those that hold."""
        pod = self._pods.get(uid)
        return [each for each in (pod.pending, pod.in_progress) if each is not None] if pod else []

    def pending_reason(self, uid: str) -> str:
        """Deferred, Infeasible, or nothing."""
        pod = self._pods.get(uid)
        return (pod.pending.reason or "") if pod and pod.pending else ""

    def pending(self) -> dict[str, int]:
        """How many resizes wait, by reason."""
        found: dict[str, int] = {}
        for pod in self._pods.values():
            if pod.pending is not None:
                reason = pod.pending.reason or ""
                found[reason] = found.get(reason, 0) + 1
        return found

    def in_progress(self) -> int:
        """How many resizes are under way."""
        return sum(each.in_progress is not None for each in self._pods.values())

    def pending_since(self, uid: str) -> str | None:
        """When the node first said that it cannot."""
        pod = self._pods.get(uid)
        return pod.pending.last_transition_time if pod and pod.pending else None

    def set_pending(self, uid: str, reason: str, message: str, generation: int) -> bool:
        """The node cannot; whether it says something new. Whatever is not infeasible may be possible later."""
        if reason != INFEASIBLE:
            reason = DEFERRED
        pod = self._pods.setdefault(uid, _Pod())
        old = pod.pending
        pod.pending = self._condition(PENDING, old, reason, message, generation)
        return old is None or old.reason != reason or (old.observed_generation or 0) != generation

    def clear_pending(self, uid: str) -> None:
        """Nothing waits."""
        if pod := self._pods.get(uid):
            pod.pending = None

    def set_in_progress(self, uid: str, generation: int, reason: str = "", message: str = "") -> tuple[int, bool]:
        """The node is at it; the generation that it is about, and whether that is something new.

        What was said before stays until it is cleared: its generation, and an error if none is given.
        """
        pod = self._pods.setdefault(uid, _Pod())
        old = pod.in_progress
        if old is not None:
            generation = old.observed_generation or 0
            if not reason and not message:
                reason, message = old.reason or "", old.message or ""
        pod.in_progress = self._condition(IN_PROGRESS, old, reason, message, generation)
        new = old is None or (old.reason or "", old.message or "") != (reason, message)
        return generation, new

    def clear_in_progress(self, uid: str) -> int | None:
        """Done; the generation that it was about, None if nothing was."""
        pod = self._pods.get(uid)
        if pod is None or pod.in_progress is None:
            return None
        generation, pod.in_progress = pod.in_progress.observed_generation or 0, None
        return generation

    def backfill(self, pod: Pod) -> None:
        """After a restart: what the pod's status says, the API server has remembered it for us."""
        assert pod.metadata is not None
        for each in (pod.status.conditions if pod.status else None) or ():
            if each.type in (PENDING, IN_PROGRESS):
                mine = self._pods.setdefault(pod.metadata.uid or "", _Pod())
                condition = self._condition(
                    each.type, None, each.reason or "", each.message or "", each.observed_generation or 0
                )
                if each.type == PENDING:
                    mine.pending = condition
                else:
                    mine.in_progress = condition

    def remove(self, uid: str) -> None:
        """Forget a pod."""
        self._pods.pop(uid, None)

    def _condition(
        self, kind: str, old: PodCondition | None, reason: str, message: str, generation: int
    ) -> PodCondition:
        now = rfc3339(self._clock.now())
        turned = now if old is None or (old.reason or "") != reason else old.last_transition_time
        return PodCondition(
            type=kind,
            status="True",
            last_probe_time=now,
            last_transition_time=turned,
            observed_generation=generation or None,
            reason=reason or None,
            message=message or None,
        )
