"""Pods: how many containers are ready, and the one word that says what the pod is at.

The word is the phase, unless something more telling is found: first an init container that is not done, then the
containers (the first one in the list wins), last the deletion. Pods come in thousands, so only the fields that are
printed are decoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from .. import duration
from ..printer import AGE, NAME, NONE, Cells, Condition, Printer, text, wide


class Shape(msgspec.Struct, rename="camel", gc=False):
    """A part of a pod with the fields that are printed; others are skipped."""


class _Metadata(Shape):
    name: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class _Container(Shape):
    pass


class _InitContainer(Shape):
    name: str = ""
    restart_policy: str | None = None


class _ReadinessGate(Shape):
    condition_type: str = ""


class _Spec(Shape):
    containers: list[_Container] | None = None
    init_containers: list[_InitContainer] | None = None
    node_name: str = ""
    readiness_gates: list[_ReadinessGate] | None = None


class _Waiting(Shape):
    reason: str = ""


class _Running(Shape):
    pass


class _Terminated(Shape):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    finished_at: str | None = None

    def why(self) -> str:
        """The reason; without one the signal or the exit code."""
        return self.reason or (f"Signal:{self.signal}" if self.signal else f"ExitCode:{self.exit_code}")


class _State(Shape):
    waiting: _Waiting | None = None
    running: _Running | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(Shape):
    name: str = ""
    state: _State = msgspec.field(default_factory=_State)
    last_state: _State = msgspec.field(default_factory=_State)
    ready: bool = False
    restart_count: int = 0
    started: bool | None = None


class _PodCondition(Shape):
    type: str = ""
    status: str = ""
    reason: str = ""


class _PodIP(Shape):
    ip: str = ""


class _Status(Shape):
    phase: str = ""
    reason: str = ""
    conditions: list[_PodCondition] | None = None
    nominated_node_name: str = ""
    pod_ips: list[_PodIP] | None = msgspec.field(default=None, name="podIPs")
    init_container_statuses: list[_ContainerStatus] | None = None
    container_statuses: list[_ContainerStatus] | None = None


class Pod(Shape):
    """A pod, reduced to what is printed."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Restarts(NamedTuple):
    """How often containers were started again, and when one of them last ended."""

    total: int = 0
    last: str = ""

    def of(self, statuses: Iterable[_ContainerStatus]) -> _Restarts:
        total, last = self
        for status in statuses:
            total += status.restart_count
            ended = status.last_state.terminated
            if ended is not None and ended.finished_at and ended.finished_at > last:
                last = ended.finished_at  # stored times have one form, so text compares as time does
        return _Restarts(total, last)


class _Progress(NamedTuple):
    """The columns of a pod that its group of containers determines."""

    reason: str
    ready: int
    restarts: _Restarts


def _cells(pod: Pod, now: float) -> Cells:
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    sidecars = [each.name for each in spec.init_containers or () if each.restart_policy == "Always"]
    reason, ready, restarts = _progress(pod, sidecars)
    restarted = f"{restarts.total}"
    if restarts.total and restarts.last:
        restarted = f"{restarted} ({duration.since(restarts.last, now)} ago)"
    return [
        metadata.name,
        f"{ready}/{len(spec.containers or ()) + len(sidecars)}",
        _deletion(pod) or reason,
        restarted,
        duration.since(metadata.creation_timestamp, now),
        (status.pod_ips[0].ip if status.pod_ips else "") or NONE,
        spec.node_name or NONE,
        status.nominated_node_name or NONE,
        _gates(pod) if spec.readiness_gates else NONE,
    ]


def _progress(pod: Pod, sidecars: list[str]) -> _Progress:
    reason = pod.status.reason or pod.status.phase
    if any(each.type == "PodScheduled" and each.reason == "SchedulingGated" for each in pod.status.conditions or ()):
        reason = "SchedulingGated"
    sidecar_restarts, ready = _Restarts(), 0
    if pod.status.init_container_statuses:
        init = _initializing(pod, sidecars)
        if init.reason and _condition(pod, "Initialized") != "True":
            return init
        reason, ready = init.reason or reason, init.ready
        sidecar_restarts = _Restarts().of(_seen(pod, sidecars, only_sidecars=True))
    running = _running(pod, reason)
    restarts = sidecar_restarts.of(pod.status.container_statuses or ())
    return _Progress(running.reason, ready + running.ready, restarts)


def _initializing(pod: Pod, sidecars: list[str]) -> _Progress:
    """The init containers; the reason is empty if none holds the pod up."""
    ready = 0
    reason = ""
    for index, status in enumerate(pod.status.init_container_statuses or ()):
        if not _holds_up(status, sidecars):
            ended = status.state.terminated is not None and status.state.terminated.exit_code == 0
            ready += status.ready and not ended
            continue
        terminated, waiting = status.state.terminated, status.state.waiting
        if terminated is not None:
            reason = f"Init:{terminated.why()}"
        elif waiting is not None and waiting.reason and waiting.reason != "PodInitializing":
            reason = f"Init:{waiting.reason}"
        else:
            reason = f"Init:{index}/{len(pod.spec.init_containers or ())}"
        break
    return _Progress(reason, ready, _Restarts().of(_seen(pod, sidecars)))


def _holds_up(status: _ContainerStatus, sidecars: list[str]) -> bool:
    """Whether the init containers after this one have to wait: it has not succeeded and is no sidecar that started."""
    if status.state.terminated is not None and status.state.terminated.exit_code == 0:
        return False
    return not (status.name in sidecars and status.started)


def _seen(pod: Pod, sidecars: list[str], *, only_sidecars: bool = False) -> Iterable[_ContainerStatus]:
    """The init containers up to the one that holds the pod up: those after it have not had their turn."""
    for status in pod.status.init_container_statuses or ():
        if not only_sidecars or status.name in sidecars:
            yield status
        if _holds_up(status, sidecars):
            return


def _running(pod: Pod, reason: str) -> _Progress:
    """The containers; from last to first, so that the first one decides."""
    ready = 0
    failure = ""
    for status in reversed(pod.status.container_statuses or ()):
        waiting, terminated = status.state.waiting, status.state.terminated
        if waiting is not None and waiting.reason:
            reason = waiting.reason
        elif terminated is not None:
            reason = terminated.why()
            if terminated.exit_code:
                failure = reason
        elif status.ready and status.state.running is not None:
            ready += 1
    if reason == "Completed":  # one container is done, but is the pod?
        if ready and _condition(pod, "Ready") == "True":
            reason = "Running"
        else:
            reason = failure or ("NotReady" if ready else reason)
    return _Progress(reason, ready, _Restarts())


def _deletion(pod: Pod) -> str:
    if pod.metadata.deletion_timestamp is None:
        return ""
    if pod.status.reason == "NodeLost":
        return "Unknown"
    return "" if pod.status.phase in ("Succeeded", "Failed") else "Terminating"


def _condition(pod: Pod, type: str) -> str:
    return next((each.status for each in pod.status.conditions or () if each.type == type), "")


def _gates(pod: Pod) -> str:
    gates = pod.spec.readiness_gates or ()
    return f"{sum(_condition(pod, each.condition_type) == 'True' for each in gates)}/{len(gates)}"


_SUCCEEDED: Final = (Condition("Completed", "True", "Succeeded", "The pod has completed successfully."),)
_FAILED: Final = (Condition("Completed", "True", "Failed", "The pod failed."),)


def _conditions(pod: Pod) -> tuple[Condition, ...]:
    match pod.status.phase:
        case "Succeeded":
            return _SUCCEEDED
        case "Failed":
            return _FAILED
    return ()


POD: Final = Printer(
    (
        NAME,
        text("Ready", "Containers that are ready, of all"),
        text("Status", "What the pod is at"),
        text("Restarts", "How often containers were started again, and when last"),
        AGE,
        wide("IP", "First address of the pod"),
        wide("Node", "Where the pod runs"),
        wide("Nominated Node", "Where room is being made for the pod"),
        wide("Readiness Gates", "Gates that are open, of all"),
    ),
    _cells,
    shape=Pod,
    conditions=_conditions,
)
