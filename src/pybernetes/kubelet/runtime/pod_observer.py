"""From the runtime's messages to `ObservedPod`s. Statuses that cannot change any more are asked for once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pybernetes.component import offload
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

from ..container.termination_message import last_log_lines, read_message
from . import labels
from .types import ContainerState, ObservedContainer, ObservedPod, ObservedSandbox, PodRef

READ_WITHIN: Final = 10.0
"""Seconds for reading a container's last words."""
_STATES = ("CONTAINER_CREATED", "CONTAINER_RUNNING", "CONTAINER_EXITED", "CONTAINER_UNKNOWN")


class Observing:
    """Asks the runtime about pods."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._containers: dict[tuple[str, int], ObservedContainer] = {}
        """By id and the runtime's state: as long as that is the same, so is all else."""
        self._sandboxes: dict[tuple[str, int], ObservedSandbox] = {}

    async def pod(self, ref: PodRef) -> ObservedPod:
        """One pod, as of now."""
        selector = {labels.POD_UID: ref.uid}
        sandboxes, containers = await asyncio.gather(
            self._runtime.list_pod_sandbox(
                cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=selector))
            ),
            self._runtime.list_containers(
                cri.ListContainersRequest(filter=cri.ContainerFilter(label_selector=selector))
            ),
        )
        return await self._observed(ref, sandboxes.items, containers.containers)

    async def all(self) -> dict[str, tuple[PodRef, frozenset[tuple[str, int]]]]:
        """All pods that the runtime has, by uid, each with the states of its sandboxes and containers."""
        sandboxes, containers = await asyncio.gather(self._runtime.list_pod_sandbox(), self._runtime.list_containers())
        refs: dict[str, PodRef] = {}
        states: dict[str, set[tuple[str, int]]] = {}
        for each in (*sandboxes.items, *containers.containers):
            uid = each.labels.get(labels.POD_UID)
            if uid:
                namespace, name = each.labels.get(labels.POD_NAMESPACE, ""), each.labels.get(labels.POD_NAME, "")
                refs.setdefault(uid, PodRef(uid, namespace, name))
                states.setdefault(uid, set()).add((each.id, each.state))
        alive = set().union(*states.values()) if states else set()
        for cache in (self._containers, self._sandboxes):
            for key in [key for key in cache if key not in alive]:
                del cache[key]
        return {uid: (ref, frozenset(states[uid])) for uid, ref in refs.items()}

    def learn(self, status: Any) -> ObservedSandbox:
        """Somebody has asked for a sandbox's status: it need not be asked for again."""
        sandbox = self._sandboxes[status.id, status.state] = observed_sandbox(status)
        return sandbox

    async def started(
        self, before: ObservedPod, sandbox: ObservedSandbox | None, containers: Iterable[str]
    ) -> ObservedPod:
        """A pod after these were made in it and nothing else was done: only they need be asked for."""
        sandbox_id = (sandbox or before.sandbox or ObservedSandbox("", False)).id
        requests = [cri.ContainerStatusRequest(container_id=each) for each in containers]
        answers = await asyncio.gather(*map(self._runtime.container_status, requests))
        found = await asyncio.gather(*(_observed_container(each.status, sandbox_id) for each in answers))
        for each, answer in zip(found, answers, strict=True):
            self._containers[each.id, answer.status.state] = each
        sandboxes = (sandbox, *before.sandboxes) if sandbox else before.sandboxes
        ordered = sorted((*found, *before.containers), key=lambda each: -each.created_at)
        return ObservedPod(before.ref, sandboxes, tuple(ordered))

    def forget(self, container_id: str) -> None:
        """Something of the container has changed although its state is the same (its resources)."""
        for key in [key for key in self._containers if key[0] == container_id]:
            del self._containers[key]

    async def _observed(self, ref: PodRef, sandboxes: Iterable[Any], containers: Iterable[Any]) -> ObservedPod:
        found_sandboxes = await asyncio.gather(*map(self._sandbox, sandboxes))
        found = await asyncio.gather(*map(self._container, containers))
        return ObservedPod(
            ref,
            tuple(sorted((each for each in found_sandboxes if each), key=lambda each: -each.created_at)),
            tuple(sorted((each for each in found if each), key=lambda each: -each.created_at)),
        )

    async def _sandbox(self, listed: Any) -> ObservedSandbox | None:
        known = self._sandboxes.get((listed.id, listed.state))
        if known is not None and (known.ips or known.host_network or not known.ready):
            return known
        try:
            answer = await self._runtime.pod_sandbox_status(cri.PodSandboxStatusRequest(pod_sandbox_id=listed.id))
        except CRIError as error:
            if error.not_found:
                return None
            raise
        return self.learn(answer.status)

    async def _container(self, listed: Any) -> ObservedContainer | None:
        known = self._containers.get((listed.id, listed.state))
        if known is not None and listed.state in (cri.CONTAINER_RUNNING, cri.CONTAINER_EXITED):
            return known
        try:
            answer = await self._runtime.container_status(cri.ContainerStatusRequest(container_id=listed.id))
        except CRIError as error:
            if error.not_found:
                return None
            raise
        container = await _observed_container(answer.status, listed.pod_sandbox_id)
        self._containers[listed.id, answer.status.state] = container
        return container


def states_of(pod: ObservedPod) -> frozenset[tuple[str, int]]:
    """The states of a pod's sandboxes and containers, as `Observing.all` has them."""
    sandboxes = ((each.id, cri.SANDBOX_READY if each.ready else cri.SANDBOX_NOTREADY) for each in pod.sandboxes)
    numbers = {ours: getattr(cri, name) for name, ours in zip(_STATES, ContainerState, strict=True)}
    return frozenset((*sandboxes, *((each.id, numbers[each.state]) for each in pod.containers)))


def observed_sandbox(status: Any) -> ObservedSandbox:
    """A sandbox from its status."""
    network = status.network
    ips = (network.ip, *(each.ip for each in network.additional_ips)) if network.ip else ()
    return ObservedSandbox(
        id=status.id,
        ready=status.state == cri.SANDBOX_READY,
        created_at=status.created_at / 1e9,
        attempt=status.metadata.attempt,
        ips=ips,
        host_network=status.linux.namespaces.options.network == cri.NODE,
        runtime_handler=status.runtime_handler,
    )


async def _observed_container(status: Any, sandbox_id: str) -> ObservedContainer:
    """A container from its status; of one that has ended, with its last words, which its pod's volumes may have."""
    if not has_last_words(status):
        return observed_container(status, sandbox_id)
    owner = f"pod {status.labels.get(labels.POD_UID, '')}"
    try:
        words = await offload.run(owner, READ_WITHIN, last_words, status)
    except offload.Overdue as error:
        words = f"Error on reading termination log: {error}"
    return observed_container(status, sandbox_id, words)


def observed_container(status: Any, sandbox_id: str, words: str = "") -> ObservedContainer:
    """A container from its status, and from its last words if it has ended."""
    notes = dict(status.annotations)
    state = _state(status.state)
    exited = state is ContainerState.EXITED
    return ObservedContainer(
        id=status.id,
        name=status.labels.get(labels.CONTAINER_NAME, status.metadata.name),
        state=state,
        image=status.image.user_specified_image or status.image.image,
        image_id=status.image_id or status.image_ref,
        image_ref=status.image_ref,
        hash=notes.get(labels.HASH, ""),
        restart_count=_number(notes.get(labels.RESTART_COUNT)),
        created_at=status.created_at / 1e9,
        started_at=status.started_at / 1e9 if state is not ContainerState.CREATED else 0.0,
        finished_at=status.finished_at / 1e9 if exited else 0.0,
        exit_code=status.exit_code if exited else 0,
        reason=status.reason if exited else "",
        message=": ".join(each for each in (status.message, words) if each) if exited else "",
        sandbox_id=sandbox_id,
        log_path=status.log_path,
        annotations=notes,
        resources=status.resources if status.HasField("resources") else None,
        user=status.user if status.HasField("user") else None,
    )


def _state(state: int) -> ContainerState:
    for name, ours in zip(_STATES, ContainerState, strict=True):
        if state == getattr(cri, name):
            return ours
    return ContainerState.UNKNOWN


def has_last_words(status: Any) -> bool:
    """Whether a container has ended and may have left a message, in a file or in its log."""
    return _state(status.state) is ContainerState.EXITED and bool(_message_file(status) or _falls_back(status))


def last_words(status: Any) -> str:
    """The termination message of an ended container. Reads files that may hang: call it in a thread."""
    host = _message_file(status)
    words = read_message(Path(host)) if host else ""
    return words or (last_log_lines(Path(status.log_path)) if _falls_back(status) else "")


def _message_file(status: Any) -> str:
    path = status.annotations.get(labels.TERMINATION_MESSAGE_PATH, "")
    return next((str(each.host_path) for each in status.mounts if path and each.container_path == path), "")


def _falls_back(status: Any) -> bool:
    """Whether the log stands in for a message; a container that could not even be started has none."""
    policy = status.annotations.get(labels.TERMINATION_MESSAGE_POLICY)
    failed = status.exit_code != 0 and status.reason != "ContainerCannotRun"
    return policy == "FallbackToLogsOnError" and failed and bool(status.log_path)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
