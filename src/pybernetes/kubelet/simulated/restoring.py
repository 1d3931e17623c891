"""Rebuilds a simulated runtime's state from its pod's status, for a process that takes over from another. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from pybernetes.api.core.containers import AnyContainer, all_containers
from pybernetes.api.core.v1 import ContainerStateTerminated, ContainerStatus, Pod, PodStatus
from pybernetes.api.times import parse_time

from ..container.hash import hash_container
from ..runtime.types import ContainerState, ObservedContainer, ObservedPod, ObservedSandbox


def new_id() -> str:
    """An id of a sandbox or container."""
    return os.urandom(32).hex()


def restored(pod: Pod, observed: ObservedPod, ips: Sequence[str]) -> ObservedPod:
    """The pod's containers as its status says they were, so that nothing restarts because we did."""
    status = pod.status or PodStatus()
    statuses = [
        *(status.container_statuses or ()),
        *(status.init_container_statuses or ()),
        *(status.ephemeral_container_statuses or ()),
    ]
    if not status.start_time or not statuses:
        return observed
    by_name = {each.name: each for each in all_containers(pod.spec)} if pod.spec else {}
    found = [
        container
        for each in statuses
        if each.name in by_name and each.state and each.container_id
        for container in _containers(each, by_name[each.name])
    ]
    if not found:
        return observed
    host = bool(pod.spec and pod.spec.host_network)
    known = () if host else tuple(each.ip or "" for each in status.pod_ips or ()) or tuple(ips)
    running = any(each.running for each in found)
    sandbox = ObservedSandbox(new_id(), running, parse_time(status.start_time), 0, known, host)
    return replace(
        observed, sandboxes=(sandbox,), containers=tuple(replace(each, sandbox_id=sandbox.id) for each in found)
    )


def _containers(status: ContainerStatus, container: AnyContainer) -> list[ObservedContainer]:
    """The container that a status tells of, and the one before it; the newest first."""
    assert status.state is not None
    known = ObservedContainer(
        id=(status.container_id or "").rpartition("//")[2],
        name=status.name or "",
        state=ContainerState.RUNNING,
        image=container.image or "",
        image_id=status.image_id or "",
        image_ref=status.image_id or "",
        hash=hash_container(container),
        restart_count=status.restart_count or 0,
    )
    found = []
    last = status.last_state.terminated if status.last_state else None
    if status.state.running is not None:
        at = parse_time(status.state.running.started_at) if status.state.running.started_at else 0.0
        found.append(replace(known, created_at=at, started_at=at))
    elif status.state.terminated is not None:
        found.append(_ended(known, status.state.terminated))
    elif last is not None:
        return [_ended(known, last)]  # it waits to be started again
    if last is not None and last.container_id and found:
        before = replace(known, restart_count=max(0, known.restart_count - 1))
        found.append(_ended(replace(before, id=last.container_id.rpartition("//")[2]), last))
    return found


def _ended(known: ObservedContainer, end: ContainerStateTerminated) -> ObservedContainer:
    started = parse_time(end.started_at) if end.started_at else 0.0
    return replace(
        known,
        state=ContainerState.EXITED,
        created_at=started,
        started_at=started,
        finished_at=parse_time(end.finished_at) if end.finished_at else started,
        exit_code=end.exit_code or 0,
        reason=end.reason or "",
        message=end.message or "",
    )
