"""Pods that may run for so long and no longer (`spec.activeDeadlineSeconds`). Pure."""

from __future__ import annotations

from pybernetes.api.core.v1 import Pod, PodStatus
from pybernetes.api.times import parse_time

from ..status.pod_status import Eviction

EXCEEDED = Eviction("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")


def seconds_left(pod: Pod, status: PodStatus | None, now: float) -> float | None:
    """How long the pod may still run; zero or less: not any more; None: as long as it likes."""
    deadline = pod.spec.active_deadline_seconds if pod.spec else None
    start = status.start_time if status else None
    if deadline is None or not start:
        return None
    return parse_time(start) + deadline - now
