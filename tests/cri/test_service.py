"""A runtime of our own behind a socket, and the client that every runtime has."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pybernetes.cri import remote
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.events import ContainerEvent, EventType, container_events
from pybernetes.cri.remote import Runtime, snake_case
from pybernetes.cri.service import server_at


class Minimal:
    """A runtime that has a version, no sandboxes and no events."""

    async def version(self, request: Any) -> Any:
        return cri.VersionResponse(version="0.1.0", runtime_name="minimal", runtime_api_version="v1")

    async def pod_sandbox_status(self, request: Any) -> Any:
        raise CRIError("NotFound", f"no sandbox {request.pod_sandbox_id}")

    async def image_status(self, request: Any) -> Any:
        return cri.ImageStatusResponse()

    async def exec_sync(self, request: Any) -> Any:
        raise RuntimeError("unforeseen")


class WithEvents(Minimal):
    """One that tells what happens, from a queue."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Any] = asyncio.Queue()

    async def get_container_events(self, request: Any) -> AsyncIterator[Any]:
        while (event := await self.queue.get()) is not None:
            yield event
        raise CRIError("Unavailable", "going away")


@contextlib.asynccontextmanager
async def served(servicer: Any) -> AsyncIterator[Runtime]:
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        socket = Path(folder) / "cri.sock"
        server = server_at(socket, servicer)
        await server.start()
        try:
            async with Runtime(f"unix://{socket}") as runtime:
                yield runtime
        finally:
            await server.stop(None)


async def test_requests_and_responses_go_through_both_services() -> None:
    async with served(Minimal()) as runtime:
        assert (await runtime.version(wait=30.0)).runtime_name == "minimal"
        assert not (await runtime.image_status(cri.ImageStatusRequest())).HasField("image")


async def test_a_runtime_that_is_slow_to_take_a_connection_up_is_waited_for() -> None:
    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async with served(Minimal()) as runtime:

        async def door(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.7)  # not a wait: a runtime slower than any pause between two attempts
            inner_reader, inner_writer = await asyncio.open_unix_connection(runtime.socket)
            await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

        with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
            slow = Path(folder) / "slow.sock"
            async with await asyncio.start_unix_server(door, slow), Runtime(slow) as client:
                assert (await client.version()).runtime_name == "minimal"


async def test_errors_keep_their_code_and_their_words() -> None:
    async with served(Minimal()) as runtime:
        with pytest.raises(CRIError) as error:
            await runtime.pod_sandbox_status(cri.PodSandboxStatusRequest(pod_sandbox_id="x"))
        assert error.value.not_found
        assert str(error.value) == "rpc error: code = NotFound desc = no sandbox x"
        with pytest.raises(CRIError) as error:
            await runtime.exec_sync(cri.ExecSyncRequest(timeout=1))
        assert error.value.code == "Unknown"
        assert "unforeseen" in error.value.message


async def test_what_a_runtime_lacks_is_unimplemented() -> None:
    async with served(Minimal()) as runtime:
        with pytest.raises(CRIError) as error:
            await runtime.list_containers()
        assert error.value.code == "Unimplemented"
        with pytest.raises(CRIError) as error:
            await anext(container_events(runtime))
        assert error.value.code == "Unimplemented"


async def test_events_begin_with_a_resync_and_go_on_after_the_stream_broke() -> None:
    servicer = WithEvents()
    async with served(servicer) as runtime:
        events = container_events(runtime)
        for _ in range(2):
            async with asyncio.timeout(30):
                assert await anext(events) == ContainerEvent(EventType.RESYNC)
            sandbox = cri.PodSandboxStatus(metadata=cri.PodSandboxMetadata(uid="u"))
            for kind in (cri.CONTAINER_STARTED_EVENT, cri.CONTAINER_STOPPED_EVENT):  # who starts one knows it
                servicer.queue.put_nowait(
                    cri.ContainerEventResponse(container_id="c", container_event_type=kind, pod_sandbox_status=sandbox)
                )
            async with asyncio.timeout(30):
                while (event := await anext(events)).type is EventType.RESYNC:
                    pass
            assert event == ContainerEvent(EventType.STOPPED, "c", "u")
            servicer.queue.put_nowait(None)


async def test_events_have_begun_only_when_the_runtime_has_come_to_the_request() -> None:
    class Busy(WithEvents):
        def __init__(self) -> None:
            super().__init__()
            self.asked, self.idle = asyncio.Event(), asyncio.Event()

        async def version(self, request: Any) -> Any:
            self.asked.set()
            await self.idle.wait()
            return await super().version(request)

    servicer = Busy()
    async with served(servicer) as runtime:
        begun = asyncio.ensure_future(anext(container_events(runtime)))
        async with asyncio.timeout(30):
            await servicer.asked.wait()
            assert not begun.done()
            servicer.idle.set()
            assert await begun == ContainerEvent(EventType.RESYNC)


def test_the_client_has_a_method_for_every_call_without_a_streaming_twin() -> None:
    names = {snake_case(method.name) for method in cri.methods() if not method.name.startswith("Stream")}
    assert {name for name in names if not hasattr(Runtime, name)} == set()


class Making(Minimal):
    """A runtime that makes a sandbox when it is let."""

    def __init__(self) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.abandoned = asyncio.Event()

    async def run_pod_sandbox(self, request: Any) -> Any:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.abandoned.set()
            raise
        return cri.RunPodSandboxResponse(pod_sandbox_id="made")


async def test_a_caller_that_is_cancelled_waits_until_the_sandbox_is_made() -> None:
    servicer = Making()
    async with served(servicer) as runtime:
        call = asyncio.create_task(runtime.run_pod_sandbox(cri.RunPodSandboxRequest()))
        await servicer.begun.wait()
        call.cancel()
        servicer.go.set()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not servicer.abandoned.is_set()


async def test_a_caller_that_is_cancelled_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MAKING", 0.01)
    servicer = Making()
    async with served(servicer) as runtime:
        call = asyncio.create_task(runtime.run_pod_sandbox(cri.RunPodSandboxRequest()))
        await servicer.begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(servicer.abandoned.wait(), 30.0)
