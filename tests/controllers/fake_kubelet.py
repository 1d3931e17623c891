"""Plays all nodes: pods become Running and Ready, finish or fail when told to, and go away when deleted.

No container runs. Annotations control a pod, at any time:

    fake-kubelet/pending: "true"      stay Pending
    fake-kubelet/ready: "false"       be Running, but not Ready
    fake-kubelet/exit-code: "0"       finish: every container ends with this code; the phase is Succeeded or Failed
    fake-kubelet/restarts: "3"        how often each container has been restarted
    fake-kubelet/stuck: "true"        do not go away when deleted
"""

from __future__ import annotations

import asyncio
import itertools

from pybernetes.api import errors
from pybernetes.api.base import Kind
from pybernetes.api.core.podconditions import update_pod_condition
from pybernetes.api.core.v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodIP,
    PodStatus,
)
from pybernetes.api.times import rfc3339
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key, copy, key_of
from pybernetes.client.workqueue import ShutDown, WorkQueue

PREFIX = "fake-kubelet/"


class FakeKubelet:
    """`bound_only`: play only pods that a scheduler has bound to a node; otherwise all of them."""

    def __init__(self, client: Client, informers: InformerFactory, clock: Clock, *, bound_only: bool = False) -> None:
        self._client = client.for_component("fake-kubelet")
        self._clock = clock
        self._bound_only = bound_only
        self.queue: WorkQueue[Key] = WorkQueue("fake-kubelet", clock)
        self._addresses = (
            f"10.{a}.{b}.{c}" for a, b, c in itertools.product(range(64, 255), range(256), range(1, 255))
        )
        self._given: dict[str, str] = {}
        self.pods = informers.informer(Pod)
        self.pods.add_handler(self._seen, lambda _, pod: self._seen(pod))
        self.paused = False

    async def run(self) -> None:
        """Play until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(self._work())

    def pause(self) -> None:
        """All nodes stop."""
        self.paused = True

    def resume(self) -> None:
        """All nodes go on."""
        self.paused = False
        for pod in self.pods.items():
            self._seen(pod)

    def _seen(self, pod: Kind) -> None:
        self.queue.add(key_of(pod))

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except ShutDown:
                return
            try:
                if not self.paused:
                    await self._play(key)
                self.queue.forget(key)
            except (errors.NotFound, errors.Conflict):
                self.queue.forget(key)
            except (errors.APIError, OSError, TimeoutError):
                self.queue.add_rate_limited(key)
            finally:
                self.queue.done(key)

    async def _play(self, key: Key) -> None:
        pod = self.pods.get(key)
        if pod is None or (self._bound_only and not (pod.spec and pod.spec.node_name)):
            return
        assert pod.metadata is not None
        told = {
            name.removeprefix(PREFIX): value
            for name, value in (pod.metadata.annotations or {}).items()
            if name.startswith(PREFIX)
        }
        if pod.metadata.deletion_timestamp is not None:
            if told.get("stuck") != "true":
                await self._client.delete(Pod, key.name, key.namespace, grace_period_seconds=0, uid=pod.metadata.uid)
            return
        if pod.status and pod.status.phase in ("Succeeded", "Failed"):
            return
        wanted = self._status(pod, told)
        if wanted != pod.status:
            pod = copy(pod)
            pod.status = wanted
            await self._client.update_status(pod)

    def _status(self, pod: Pod, told: dict[str, str]) -> PodStatus:
        assert pod.metadata is not None
        assert pod.spec is not None
        now = rfc3339(self._clock.now())
        status = copy(pod.status) if pod.status else PodStatus()
        started = status.start_time or now
        status.start_time = started
        uid = pod.metadata.uid or ""
        pending = told.get("pending") == "true"
        code = int(told["exit-code"]) if "exit-code" in told else None
        ready = not pending and code is None and told.get("ready", "true") == "true"
        status.phase = "Pending" if pending else "Running" if code is None else "Failed" if code else "Succeeded"
        if not pending and uid not in self._given:
            self._given[uid] = next(self._addresses)
        if not pending:
            status.pod_ip = self._given[uid]
            status.pod_ips = [PodIP(ip=self._given[uid])]
        status.container_statuses = [
            self._container(container.name or "", container.image or "", pending, ready, code, started, now, told)
            for container in pod.spec.containers or ()
        ]
        for kind, holds in (
            ("PodScheduled", True),
            ("Initialized", True),
            ("ContainersReady", ready),
            ("Ready", ready),
        ):
            condition = PodCondition(type=kind, status="True" if holds else "False")
            if not holds:
                condition.reason = "ContainersNotReady" if code is None else "PodCompleted"
            update_pod_condition(status, condition, now)
        return status

    def _container(
        self,
        name: str,
        image: str,
        pending: bool,
        ready: bool,
        code: int | None,
        started: str,
        now: str,
        told: dict[str, str],
    ) -> ContainerStatus:
        if pending:
            state = ContainerState(waiting=ContainerStateWaiting(reason="ContainerCreating"))
        elif code is None:
            state = ContainerState(running=ContainerStateRunning(started_at=started))
        else:
            reason = "Error" if code else "Completed"
            ended = ContainerStateTerminated(exit_code=code, reason=reason, started_at=started, finished_at=now)
            state = ContainerState(terminated=ended)
        return ContainerStatus(
            name=name,
            image=image,
            image_id="",
            ready=ready,
            started=not pending and code is None,
            restart_count=int(told.get("restarts", "0")),
            state=state,
        )
