"""Records cluster events that happen while a pod is being scheduled.

An event that comes during an attempt may undo its refusal before it is even said. So events are kept, from the moment
the first pod is taken out of the queue until the last one is done, and a refused pod looks at those since its taking.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..framework.events import ClusterEvent


class Happened(NamedTuple):
    """An event and its objects."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    """Pods that are being placed, and the events since the oldest of them was taken."""

    def __init__(self) -> None:
        self._events: list[Happened] = []
        self._start = 0
        """The position of the first event kept."""
        self._pods: dict[str, int] = {}
        """The position at which each pod was taken, by uid. In the order of taking, so the first is the lowest."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def take(self, uid: str) -> None:
        """A pod is being placed now."""
        self._pods[uid] = self._start + len(self._events)

    def note(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Something happened."""
        if self._pods:
            self._events.append(Happened(event, old, new))

    def since(self, uid: str) -> list[Happened] | None:
        """The events since the pod was popped; None if it never was."""
        position = self._pods.get(uid)
        return None if position is None else self._events[position - self._start :]

    def done(self, uid: str) -> None:
        """The pod is placed, or back in the queue."""
        if self._pods.pop(uid, None) is None:
            return
        if not self._pods:
            self._start += len(self._events)
            self._events.clear()
            return
        unneeded = next(iter(self._pods.values())) - self._start
        if unneeded > 256:  # not at every turn: it moves all that is left
            del self._events[:unneeded]
            self._start += unneeded
