"""The conditions of a pod that belong to the kubelet. Pure; times are put in by the status manager."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Container, ContainerStatus, Pod, PodCondition, PodStatus
from pybernetes.api.gocompat.quote import quote

from ..pod.actions import sandbox_changed
from ..pod.restarts import ALL_CONTAINERS_RESTARTING, all_removed, should_restart_all
from ..runtime.types import ObservedPod
from .phase import FAILED, SUCCEEDED

SCHEDULED: Final = "PodScheduled"
READY: Final = "Ready"
INITIALIZED: Final = "Initialized"
CONTAINERS_READY: Final = "ContainersReady"
READY_TO_START_CONTAINERS: Final = "PodReadyToStartContainers"
RESIZE_PENDING: Final = "PodResizePending"
RESIZE_IN_PROGRESS: Final = "PodResizeInProgress"
DISRUPTION_TARGET: Final = "DisruptionTarget"

BY_KUBELET: Final = frozenset(
    {
        SCHEDULED,
        READY,
        INITIALIZED,
        CONTAINERS_READY,
        READY_TO_START_CONTAINERS,
        RESIZE_PENDING,
        RESIZE_IN_PROGRESS,
        ALL_CONTAINERS_RESTARTING,
    }
)
"""Only the kubelet writes these; it leaves all others as they are."""

POD_COMPLETED, POD_FAILED = "PodCompleted", "PodFailed"
_TERMINAL_REASON = {SUCCEEDED: POD_COMPLETED, FAILED: POD_FAILED}


def containers_ready(pod: Pod, statuses: Sequence[ContainerStatus], phase: str) -> PodCondition:
    """Whether all containers are ready."""
    spec = pod.spec
    assert spec is not None
    wanted = [each for each in spec.init_containers or () if is_sidecar(each)] + list(spec.containers or ())
    if not statuses:
        return PodCondition(type=CONTAINERS_READY, status="False", reason="UnknownContainerStatuses")
    by_name = {each.name: each for each in statuses}
    unknown = [each.name or "" for each in wanted if each.name not in by_name]
    unready = [each.name or "" for each in wanted if each.name in by_name and not by_name[each.name].ready]
    if phase == FAILED or (phase == SUCCEEDED and not unknown):
        return terminal(CONTAINERS_READY, phase)
    message = _lists({"unknown": unknown, "unready": unready})
    if message:
        return PodCondition(type=CONTAINERS_READY, status="False", reason="ContainersNotReady", message=message)
    return PodCondition(type=CONTAINERS_READY, status="True")


def ready(
    pod: Pod, conditions: Iterable[PodCondition], statuses: Sequence[ContainerStatus], phase: str
) -> PodCondition:
    """Whether the pod is ready: all containers are, and all readiness gates are open."""
    assert pod.spec is not None
    containers = containers_ready(pod, statuses, phase)
    if containers.status != "True":
        containers.type = READY
        return containers
    found = {each.type: each for each in conditions}
    problems = []
    for gate in pod.spec.readiness_gates or ():
        condition = found.get(gate.condition_type)
        name = quote(gate.condition_type or "")
        if condition is None:
            problems.append(f"corresponding condition of pod readiness gate {name} does not exist.")
        elif condition.status != "True":
            problems.append(f'the status of pod readiness gate {name} is not "True", but {condition.status}')
    if problems:
        message = ", ".join(problems)
        return PodCondition(type=READY, status="False", reason="ReadinessGatesNotReady", message=message)
    return PodCondition(type=READY, status="True")


def initialized(pod: Pod, old: PodStatus, statuses: Sequence[ContainerStatus], phase: str) -> PodCondition:
    """Whether all init containers are done (sidecars: have started). Once true it stays true."""
    spec = pod.spec
    assert spec is not None
    inits = spec.init_containers or []
    if not statuses and inits:
        return PodCondition(type=INITIALIZED, status="False", reason="UnknownContainerStatuses")
    by_name = {each.name: each for each in statuses}
    unknown = [each.name or "" for each in inits if each.name not in by_name]
    incomplete = [each.name or "" for each in inits if each.name in by_name and not _is_done(each, by_name[each.name])]
    if phase == SUCCEEDED and not unknown:
        return PodCondition(type=INITIALIZED, status="True", reason=POD_COMPLETED)
    if any(_has_started(by_name.get(each.name)) for each in spec.containers or ()):
        return PodCondition(type=INITIALIZED, status="True")
    message = _lists({"unknown": unknown, "incomplete": incomplete})
    if message and not any(each.type == INITIALIZED and each.status == "True" for each in old.conditions or ()):
        return PodCondition(type=INITIALIZED, status="False", reason="ContainersNotInitialized", message=message)
    return PodCondition(type=INITIALIZED, status="True")


def ready_to_start_containers(pod: Pod, observed: ObservedPod) -> PodCondition:
    """Whether there is a sandbox, with its network."""
    return PodCondition(type=READY_TO_START_CONTAINERS, status="False" if sandbox_changed(pod, observed)[0] else "True")


def all_containers_restarting(pod: Pod, observed: ObservedPod, old: PodStatus, phase: str) -> PodCondition:
    """Whether all containers are being removed in order to start over."""
    if phase in _TERMINAL_REASON:
        return terminal(ALL_CONTAINERS_RESTARTING, phase)
    if not should_restart_all(pod, observed, old) or all_removed(pod, observed):
        return PodCondition(type=ALL_CONTAINERS_RESTARTING, status="False")
    return PodCondition(
        type=ALL_CONTAINERS_RESTARTING,
        status="True",
        reason="RestartAllContainersStarted",
        message="container exited with restart policy rule",
    )


def terminal(type: str, phase: str) -> PodCondition:
    """A condition that is False because the pod has ended."""
    return PodCondition(type=type, status="False", reason=_TERMINAL_REASON.get(phase))


def _is_done(container: Container, status: ContainerStatus) -> bool:
    return bool(status.started if is_sidecar(container) else status.ready)


def _has_started(status: ContainerStatus | None) -> bool:
    return bool(status and status.state and (status.state.running or status.state.terminated))


def _lists(names: dict[str, list[str]]) -> str:
    """The names as Go prints a list of them, in one sentence."""
    return ", ".join(f"containers with {kind} status: [{' '.join(each)}]" for kind, each in names.items() if each)
