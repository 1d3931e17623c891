"""When to probe a container, and what so many answers in a row mean: the decisions of one probe, without any waiting.

A probe follows its container by name: when a new container takes the place of the old one it begins anew. The first
result (readiness: failure, liveness: success, startup: unknown) counts until enough answers have come. A liveness probe
that has failed, and a startup probe that has an answer, are silent until there is a new container.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final

from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Container, ContainerStatus, Pod, PodSpec, PodStatus, Probe
from pybernetes.api.times import parse_time

from .results import ProbeType, Result, Results, bare

RESTART_GRACE: Final = 10.0
"""Seconds before a kubelet's start: what ran then already was judged by the kubelet before. Upstream's number."""

_INITIAL: Final = {
    ProbeType.READINESS: Result.FAILURE,
    ProbeType.LIVENESS: Result.SUCCESS,
    ProbeType.STARTUP: Result.UNKNOWN,
}


class Next(enum.Enum):
    """The next step of a probe worker."""

    WAIT = "wait"
    """Until the pod's status changes."""
    PROBE = "probe"
    """At `Probing.not_before`, and then once a period."""
    END = "end"


def restart_grace(container_started: float, kubelet_started: float) -> bool:
    """Whether a container ran before this kubelet did."""
    return 0.0 < container_started < kubelet_started - RESTART_GRACE


@dataclass(slots=True)
class Probing:
    """The state of one probe of one container."""

    type: ProbeType
    pod: Pod
    container: Container
    spec: Probe
    results: Results
    kubelet_started: float

    container_id: str = ""
    not_before: float = 0.0
    """When the initial delay of the present container is over."""
    was_running: bool = False
    """Whether the container ran before this kubelet did."""
    _on_hold: bool = False
    _last: Result | None = None
    _run: int = 0
    """How many answers in a row were `_last`."""
    _uid: str = field(init=False)

    def __post_init__(self) -> None:
        self._uid = (self.pod.metadata.uid if self.pod.metadata else None) or ""

    @property
    def period(self) -> float:
        """Seconds between two probes."""
        return float(self.spec.period_seconds or 10)

    def look(self, status: PodStatus | None, now: float) -> Next:
        """The next step, given the pod's status now."""
        if status is None:
            return Next.WAIT
        if status.phase in ("Failed", "Succeeded"):
            return Next.END
        found = _find(status, self.container.name or "")
        if found is None or not found.container_id:
            return Next.WAIT
        running = found.state.running if found.state else None
        started_at = parse_time(running.started_at) if running and running.started_at else 0.0
        if bare(found.container_id) != self.container_id:
            self._begin(found, started_at, now)
        if self._on_hold:
            return Next.WAIT
        if running is None:
            self.results.set(self.container_id, Result.FAILURE, self._uid)
            return Next.WAIT
        if not self.not_before:
            # The status has whole seconds only: do not be early by the part that it leaves out.
            began = max(started_at, min(now, started_at + 1.0))
            self.not_before = began + (self.spec.initial_delay_seconds or 0)
        # Startup probes until the container has started, the others from then on.
        return Next.PROBE if bool(found.started) != (self.type is ProbeType.STARTUP) else Next.WAIT

    def _begin(self, found: ContainerStatus, started_at: float, now: float) -> None:
        if self.container_id:
            self.results.remove(self.container_id)
        self.container_id = bare(found.container_id or "")
        self.not_before = 0.0
        self._on_hold = False
        self.was_running = restart_grace(started_at, self.kubelet_started)
        if not self.was_running:
            self.results.set(self.container_id, _INITIAL[self.type], self._uid)
        elif self.type is ProbeType.STARTUP and found.started and self._is_sidecar():
            # Whether the containers behind a sidecar may start is asked of the results, not of the status.
            self.results.set(self.container_id, Result.SUCCESS, self._uid)

    def answer(self, result: Result) -> None:
        """Count an answer; enough of them become the result."""
        if result is self._last:
            self._run += 1
        else:
            self._last, self._run = result, 1
        needed = {
            Result.FAILURE: self.spec.failure_threshold or 3,
            Result.SUCCESS: self.spec.success_threshold or 1,
        }.get(result, 1)
        if self._run < needed:
            return
        self.results.set(self.container_id, result, self._uid)
        if self.type is ProbeType.STARTUP or (self.type is ProbeType.LIVENESS and result is Result.FAILURE):
            # What is being stopped is best left alone, and who has started need not be asked again.
            self._on_hold, self._run = True, 0

    @property
    def on_hold(self) -> bool:
        """Whether to ask no more until there is a new container."""
        return self._on_hold

    def forget(self) -> None:
        """The probe ends: its result is not true any more."""
        if self.container_id:
            self.results.remove(self.container_id)

    def _is_sidecar(self) -> bool:
        spec = self.pod.spec or PodSpec()
        return is_sidecar(self.container) and any(
            each.name == self.container.name for each in spec.init_containers or ()
        )


def _find(status: PodStatus, name: str) -> ContainerStatus | None:
    statuses = [*(status.container_statuses or ()), *(status.init_container_statuses or ())]
    return next((each for each in statuses if each.name == name), None)
