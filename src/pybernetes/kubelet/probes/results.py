"""Keeps the results of probes, one for each container, and notifies the kubelet of changes."""

from __future__ import annotations

import enum
from collections.abc import Callable


class ProbeType(enum.StrEnum):
    """The three questions, with the words that events use for them."""

    LIVENESS = "Liveness"
    READINESS = "Readiness"
    STARTUP = "Startup"


class Result(enum.IntEnum):
    """The answer; the numbers are those of upstream's metrics."""

    UNKNOWN = -1
    SUCCESS = 0
    FAILURE = 1


Changed = Callable[[str, ProbeType, str, Result], None]
"""(uid of the pod, which probe, id of the container, new result)."""


class Results:
    """The last result for each container, by its id (without the runtime's name in front)."""

    def __init__(self, type: ProbeType, changed: Changed) -> None:
        self._type = type
        self._changed = changed
        self._results: dict[str, Result] = {}

    def get(self, container_id: str) -> Result | None:
        """The result; None if there is none, or no probe."""
        return self._results.get(bare(container_id))

    def set(self, container_id: str, result: Result, uid: str) -> None:
        """Keep a result; tells if it is a new one."""
        if self._results.get(container_id) != result:
            self._results[container_id] = result
            self._changed(uid, self._type, container_id, result)

    def remove(self, container_id: str) -> None:
        """Forget a container."""
        self._results.pop(container_id, None)


def bare(container_id: str) -> str:
    """A container's id as the runtime knows it: without `containerd://`."""
    return container_id.rpartition("://")[2]
