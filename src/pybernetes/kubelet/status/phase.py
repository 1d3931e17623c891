"""A pod's phase, from its containers' statuses. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pybernetes.api.core.podresources import is_sidecar
from pybernetes.api.core.v1 import Container, ContainerStateTerminated, ContainerStatus, Pod

from ..pod.critical import is_static
from ..pod.restarts import should_restart

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
RESTARTING_ALL_CONTAINERS: Final = "RestartingAllContainers"
"""The reason of a container's end that was only a part of starting all over."""


def is_terminal(phase: str | None) -> bool:
    """Whether a pod in this phase never runs again."""
    return phase in (SUCCEEDED, FAILED)


def ended(status: ContainerStatus) -> ContainerStateTerminated | None:
    """How the container ended: now, or before it began to wait for its next start."""
    state, last = status.state, status.last_state
    if state and state.terminated:
        return state.terminated
    return last.terminated if state and state.waiting and last else None


def phase(pod: Pod, statuses: Iterable[ContainerStatus], *, terminal: bool, initialized: bool) -> str:
    """The phase. `terminal`: nothing will be started again; `initialized`: a container proper exists in the sandbox."""
    spec = pod.spec
    assert spec is not None
    by_name = {each.name: each for each in statuses}
    inits = spec.init_containers or []

    def again(container: Container, end: ContainerStateTerminated) -> bool:
        return end.reason == RESTARTING_ALL_CONTAINERS or should_restart(container, spec, end.exit_code or 0)

    pending_init = 0
    for container in inits:
        if is_sidecar(container):
            continue
        status = by_name.get(container.name)
        end = ended(status) if status else None
        if end is None:
            pending_init += 1
        elif end.exit_code and not again(container, end):
            return FAILED

    unknown = running = waiting = stopped = stopped_for_good = succeeded = pending_sidecars = 0
    for container in inits:
        if not is_sidecar(container):
            continue
        status = by_name.get(container.name)
        if status is None or status.state is None:
            unknown += 1
            pending_sidecars += status is not None
        elif status.state.running:
            pending_sidecars += not status.started
            running += 1
        elif ended(status) is None:
            # One that has ended does not count: it comes back, or the pod is done without it.
            pending_sidecars += 1
            waiting += bool(status.state.waiting)
            unknown += not status.state.waiting
    for container in spec.containers or ():
        status = by_name.get(container.name)
        if status is None or status.state is None:
            unknown += 1
        elif status.state.running:
            running += 1
        elif end := ended(status):
            stopped += 1
            stopped_for_good += not again(container, end)
            succeeded += status.state.terminated is not None and not end.exit_code
        elif status.state.waiting:
            waiting += 1
        else:
            unknown += 1

    if pending_init or (pending_sidecars and not initialized) or waiting:
        return PENDING
    if running and not unknown:
        return RUNNING
    if stopped and not running and not unknown:
        if not (terminal and not is_static(pod)) and stopped != stopped_for_good:
            return RUNNING
        return SUCCEEDED if stopped == succeeded else FAILED
    return PENDING
