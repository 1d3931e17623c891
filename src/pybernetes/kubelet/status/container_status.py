"""The API's ContainerStatus, from what the runtime has, what was reported before, and why a start failed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pybernetes.api.core.containers import AnyContainer
from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    ContainerUser,
    LinuxContainerUser,
    Pod,
    ResourceRequirements,
    VolumeMountStatus,
)
from pybernetes.api.times import rfc3339
from pybernetes.client.keys import copy

from ..pod.actions import any_container_created
from ..pod.restarts import should_be_restarted
from ..runtime.types import ContainerState as State
from ..runtime.types import ObservedContainer, ObservedPod
from .phase import RESTARTING_ALL_CONTAINERS

CONTAINER_CREATING: Final = "ContainerCreating"
POD_INITIALIZING: Final = "PodInitializing"
STATUS_UNKNOWN: Final = "ContainerStatusUnknown"
KILLED: Final = 137
"""The exit code of a container whose end the kubelet did not see."""
_REMOVED: Final = "The container is removed because RestartAllContainers in place"


@dataclass(frozen=True, slots=True)
class StartFailure:
    """Why a container could not be started: the reason and message of its waiting state."""

    reason: str
    message: str


Resources = Callable[[AnyContainer, ObservedContainer, ContainerStatus | None], ResourceRequirements | None]
"""The resources that a container really has."""


@dataclass(frozen=True, slots=True)
class Reporting:
    """The inputs for the statuses of one pod's containers."""

    pod: Pod
    observed: ObservedPod
    runtime: str
    """The name in front of ids: `containerd`."""
    failures: Mapping[str, StartFailure]
    restarting_all: bool = False
    resources: Resources | None = None
    recursive_read_only: bool = False
    """Whether the runtime can make mounts read-only all the way down."""


def container_statuses(
    reporting: Reporting, containers: Sequence[AnyContainer], previous: Sequence[ContainerStatus], *, init: bool = False
) -> list[ContainerStatus]:
    """The statuses of these containers, in their order."""
    old = {each.name or "": each for each in previous}
    return [_status(reporting, each, old.get(each.name or ""), init) for each in containers]


def _status(reporting: Reporting, container: AnyContainer, old: ContainerStatus | None, init: bool) -> ContainerStatus:
    pod, observed = reporting.pod, reporting.observed
    found = [each for each in observed.containers if each.name == container.name][:2]
    if found:
        status = _of_runtime(reporting, container, found[0], old)
        if len(found) > 1:
            status.last_state = _of_runtime(reporting, container, found[1], old).state
    else:
        status = _of_nothing(reporting, container, old)
    if init:
        if found and found[0].exited and found[0].exit_code == 0:
            return status
        if not found and _was_surely_done(pod, observed, container) and status.state and status.state.waiting:
            message = (
                "Unable to get init container status from container runtime and pod has been initialized, "
                "treat it as exited normally"
            )
            status.state = ContainerState(
                terminated=ContainerStateTerminated(exit_code=0, reason="Completed", message=message)
            )
            return status
    failure = reporting.failures.get(container.name or "")
    if failure is not None and should_be_restarted(container, pod, observed):
        if status.state and status.state.terminated:
            status.last_state = status.state
        waiting = ContainerStateWaiting(reason=failure.reason, message=failure.message or None)
        status.state = ContainerState(waiting=waiting)
    return status


def _of_nothing(reporting: Reporting, container: AnyContainer, old: ContainerStatus | None) -> ContainerStatus:
    """The runtime has no such container: not yet, or not any more."""
    assert reporting.pod.spec is not None
    assert reporting.pod.metadata is not None
    if old is not None and old.state and old.state.terminated and not reporting.restarting_all:
        return copy(old)
    reason = POD_INITIALIZING if reporting.pod.spec.init_containers else CONTAINER_CREATING
    status = ContainerStatus(
        name=container.name,
        image=container.image,
        image_id="",
        ready=False,
        restart_count=0,
        state=ContainerState(waiting=ContainerStateWaiting(reason=reason)),
        last_state=ContainerState(),
        volume_mounts=_volume_mounts(container, reporting.recursive_read_only),
        started=False,
    )
    if old is None:
        return status
    status.restart_count = old.restart_count or 0
    status.last_state = old.last_state or ContainerState()
    was_running = old.state is not None and old.state.running is not None
    if reporting.restarting_all and not (old.state and old.state.waiting):
        status.state = ContainerState(waiting=ContainerStateWaiting(reason=RESTARTING_ALL_CONTAINERS, message=_REMOVED))
        end = ContainerStateTerminated(exit_code=KILLED, reason=RESTARTING_ALL_CONTAINERS, message=_REMOVED)
        status.last_state = ContainerState(terminated=end)
        status.restart_count += 1
    elif was_running and not status.last_state.terminated:
        # Else the pod would seem never to have run: it would be Pending again, and run-once pods run twice.
        message = "The container could not be located when the pod was deleted.  The container used to be Running"
        end = ContainerStateTerminated(exit_code=KILLED, reason=STATUS_UNKNOWN, message=message)
        status.last_state = ContainerState(terminated=end)
        if not reporting.pod.metadata.deletion_timestamp:
            status.restart_count += 1
    return status


def _of_runtime(
    reporting: Reporting, container: AnyContainer, found: ObservedContainer, old: ContainerStatus | None
) -> ContainerStatus:
    id = f"{reporting.runtime}://{found.id}"
    status = ContainerStatus(
        name=found.name,
        restart_count=found.restart_count,
        image=found.image,
        image_id=found.image_ref,
        container_id=id,
        ready=False,
        started=False,
        last_state=ContainerState(),
        volume_mounts=(old.volume_mounts if old else None) or _volume_mounts(container, reporting.recursive_read_only),
        user=_user(found.user),
    )
    if old is not None:
        status.restart_count = max(status.restart_count or 0, old.restart_count or 0)
        if old.container_id != id and old.state and old.state.terminated:
            status.last_state = ContainerState(terminated=old.state.terminated)
        elif old.last_state and old.last_state.terminated:
            status.last_state = ContainerState(terminated=old.last_state.terminated)
    status.state = _state(found, id)
    was_running = bool(old and old.state and old.state.running)
    if found.state is State.RUNNING:
        if old is not None:
            status.started = old.started
            if old.state and old.state.terminated and (old.restart_count or 0) >= found.restart_count:
                status.restart_count = (old.restart_count or 0) + 1
    elif found.state is State.UNKNOWN and old is not None and was_running:
        reason = RESTARTING_ALL_CONTAINERS if reporting.restarting_all else STATUS_UNKNOWN
        message = "The container could not be located when the pod was terminated"
        end = ContainerStateTerminated(exit_code=KILLED, reason=reason, message=message)
        status.state = ContainerState(terminated=end)
        status.restart_count = (old.restart_count or 0) + 1
    if reporting.resources is not None:
        status.resources = reporting.resources(container, found, old)
    else:
        status.resources = copy(container.resources) if container.resources else ResourceRequirements()
    status.allocated_resources = container.resources.requests if container.resources else None
    return status


def _state(found: ObservedContainer, id: str) -> ContainerState:
    if found.state is State.RUNNING:
        return ContainerState(running=ContainerStateRunning(started_at=rfc3339(found.started_at)))
    if found.state is State.EXITED:
        return ContainerState(
            terminated=ContainerStateTerminated(
                exit_code=found.exit_code,
                reason=found.reason or None,
                message=found.message or None,
                started_at=rfc3339(found.started_at),
                finished_at=rfc3339(found.finished_at),
                container_id=id,
            )
        )
    return ContainerState(waiting=ContainerStateWaiting())


def _volume_mounts(container: AnyContainer, recursive: bool) -> list[VolumeMountStatus] | None:
    result = []
    for mount in container.volume_mounts or ():
        status = VolumeMountStatus(name=mount.name, mount_path=mount.mount_path, read_only=mount.read_only)
        if mount.read_only:
            enabled = recursive and mount.recursive_read_only in ("IfPossible", "Enabled")
            status.recursive_read_only = "Enabled" if enabled else "Disabled"
        result.append(status)
    return result or None


def _user(user: Any) -> ContainerUser | None:
    if user is None or not user.HasField("linux"):
        return None
    linux = user.linux
    groups = list(linux.supplemental_groups) or None
    return ContainerUser(linux=LinuxContainerUser(uid=linux.uid, gid=linux.gid, supplemental_groups=groups))


def _was_surely_done(pod: Pod, observed: ObservedPod, container: AnyContainer) -> bool:
    assert pod.spec is not None
    sidecar = isinstance(container, Container) and is_sidecar(container)
    return not sidecar and any_container_created(pod.spec, observed)
