"""containerd's own events, for its versions without CRI's GetContainerEvents (before 1.7).

Two things make them usable. Subscribe gives no sign when it is in force, so a marker is published until it comes back:
from then on nothing is missed. And containerd's CRI part learns from the same events as we do, a moment later, so an
event is passed on only when CRI tells the same; each event waits for that by itself.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import grpc.aio  # type: ignore[import-untyped]

from pybernetes.cri import v1
from pybernetes.cri.container_event import POD_UID, ContainerEvent, EventType
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime, to_cri_error
from pybernetes.protofile import Proto, read

NAMESPACE = "k8s.io"
"""Where containerd's CRI part keeps its containers."""
MARKER = "/pybernetes/subscribed"
REPEAT = 0.02
"""Seconds until the marker is sent again."""
PATIENCE = 5.0
"""Seconds after which an event is passed on although CRI does not tell the same: a listing is due in any case."""

# Not starts: who starts a container knows it. Not exits: CRI answers one with a delete, after which it tells.
TOPICS = {
    "/tasks/delete": ("TaskDelete", EventType.STOPPED),
    "/tasks/oom": ("TaskOOM", EventType.OOM),
    "/containers/delete": ("ContainerDelete", EventType.DELETED),
}


@cache
def proto() -> Proto:
    """The messages of containerd's event service."""
    return read(Path(__file__).with_name("containerd_events.proto"))


async def watch(runtime: Runtime) -> AsyncIterator[ContainerEvent]:
    """The events from now on, until the connection breaks (`CRIError`)."""
    subscription = Subscription(runtime)
    try:
        while True:
            event = await subscription.queue.get()
            if isinstance(event, CRIError):
                raise event
            yield event
    finally:
        await subscription.close()


class Subscription:
    """One subscription: reads envelopes, and puts what they say into the queue once CRI says so too."""

    def __init__(self, runtime: Runtime) -> None:
        self.queue: asyncio.Queue[ContainerEvent | CRIError] = asyncio.Queue()
        self._runtime = runtime
        self._marker = f"{MARKER}/{secrets.token_hex(8)}"
        self._pods: dict[str, str] = {}
        """The pod of each container that had an event and is not deleted."""
        self._live = asyncio.Event()
        self._tasks = {asyncio.create_task(self._read()), asyncio.create_task(self._mark())}

    async def close(self) -> None:
        """Give up the subscription."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self) -> None:
        names = proto().names
        subscribe = self._runtime.channel().unary_stream(
            "/containerd.services.events.v1.Events/Subscribe",
            request_serializer=names["SubscribeRequest"].SerializeToString,
            response_deserializer=names["Envelope"].FromString,
        )
        filters = [f'namespace=={NAMESPACE},topic=="{topic}"' for topic in (*TOPICS, self._marker)]
        call = subscribe(names["SubscribeRequest"](filters=filters))
        try:
            async for envelope in call:
                self._take(envelope)
            self.queue.put_nowait(CRIError("Unavailable", "containerd ended the stream of events"))
        except grpc.aio.AioRpcError as error:
            self.queue.put_nowait(to_cri_error(error))
        finally:
            call.cancel()

    async def _mark(self) -> None:
        """Publish the marker until the subscription brings it."""
        names = proto().names
        publish = self._runtime.channel().unary_unary(
            "/containerd.services.events.v1.Events/Publish",
            request_serializer=names["PublishRequest"].SerializeToString,
            response_deserializer=names["Empty"].FromString,
        )
        request = names["PublishRequest"](topic=self._marker, event=names["Any"](type_url="pybernetes/subscribed"))
        while not self._live.is_set():
            try:
                await publish(request, metadata=(("containerd-namespace", NAMESPACE),), timeout=PATIENCE)
            except grpc.aio.AioRpcError as error:
                self.queue.put_nowait(to_cri_error(error))
                return
            try:
                await asyncio.wait_for(self._live.wait(), REPEAT)
            except TimeoutError:
                continue

    def _take(self, envelope: Any) -> None:
        if envelope.topic == self._marker:
            if not self._live.is_set():
                self._live.set()
                self.queue.put_nowait(ContainerEvent(EventType.RESYNC))
            return
        name, kind = TOPICS[envelope.topic]
        message = proto().names[name].FromString(envelope.event.value)
        if kind is EventType.DELETED:
            uid = self._pods.pop(message.id, "")
            self._settle(ContainerEvent(kind, message.id, uid))
        else:
            self._settle(ContainerEvent(kind, message.container_id))

    def _settle(self, event: ContainerEvent) -> None:
        task = asyncio.create_task(self._pass_on(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, event: ContainerEvent) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        pause = 0.001
        try:
            while True:
                told, uid = await self._told(event)
                if told or asyncio.get_running_loop().time() > deadline:
                    break
                await asyncio.sleep(pause)
                pause = min(2 * pause, 0.05)
        except CRIError:
            uid = ""  # the connection is gone: the reader tells, and what follows is a resync
        if event.type is not EventType.DELETED:
            uid = uid or self._pods.get(event.container_id, "")
            self._pods[event.container_id] = uid
            event = ContainerEvent(event.type, event.container_id, uid)
        self.queue.put_nowait(event)

    async def _told(self, event: ContainerEvent) -> tuple[bool, str]:
        """Whether CRI tells what the event says, and of which pod it is."""
        containers = await self._runtime.list_containers(
            v1.ListContainersRequest(filter=v1.ContainerFilter(id=event.container_id))
        )
        if containers.containers:
            container = containers.containers[0]
            return await self._container_told(event.type, container), container.labels.get(POD_UID, "")
        sandboxes = await self._runtime.list_pod_sandbox(
            v1.ListPodSandboxRequest(filter=v1.PodSandboxFilter(id=event.container_id))
        )
        if sandboxes.items:
            sandbox = sandboxes.items[0]
            ready = sandbox.state == v1.SANDBOX_READY
            return event.type is EventType.OOM or (event.type is EventType.STOPPED and not ready), sandbox.metadata.uid
        return True, ""

    async def _container_told(self, kind: EventType, container: Any) -> bool:
        match kind:
            case EventType.STOPPED:
                return bool(container.state not in (v1.CONTAINER_CREATED, v1.CONTAINER_RUNNING))
            case EventType.OOM:
                try:
                    answer = await self._runtime.container_status(v1.ContainerStatusRequest(container_id=container.id))
                except CRIError as error:
                    return error.not_found
                return bool(answer.status.reason == "OOMKilled")
        return False
