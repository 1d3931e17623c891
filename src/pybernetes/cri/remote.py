"""A client of a container runtime over its unix socket: one method for each call of CRI v1, request in, response out.

`Runtime` and a server's servicer (`service.py`) have the same methods, so code that talks to a runtime does not know
whether it is containerd behind a socket or one in this process. Every failure is a `CRIError`.

Deadlines are upstream's: two minutes for a call (`--runtime-request-timeout`), twice that for making a sandbox (its
network plugins may be slow), the grace or the command's own time on top where a call waits for something, none for a
pull. A call fails at once while the runtime is away; the connection comes back by itself within half a second of it.

A caller that is cancelled while it makes something (a sandbox, a container) waits a moment longer for the answer: what
has been made is then known to the runtime when the caller goes on to remove it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from pybernetes.cri import v1
from pybernetes.cri.errors import CRIError, code_name
from pybernetes.cri.tracing import RECORDED, SPANS, described, take
from pybernetes.trace import recorder
from pybernetes.trace.context import HEADER

REQUEST_TIMEOUT = 120.0
"""Seconds for a call; upstream's default of `--runtime-request-timeout`."""

MAKING = 2.0
"""Seconds that a cancelled caller waits for the end of a call that makes something."""

NOT_YET = "server is not initialized yet"
"""The error of containerd, as `Unknown`, while it restores its state after a restart."""
INITIALIZING = 0.01
"""Seconds until it is asked again then."""

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    # How soon a runtime that is away is tried again. `min_reconnect_backoff_ms` would bound how long it may need
    # for taking a connection up; that can be longer than these on a busy machine, so it stays at grpc's 20 s.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.use_local_subchannel_pool", 1),
]


class Runtime:
    """A runtime at a socket. Usable as `async with`; connects at the first call."""

    def __init__(self, socket: str | Path, *, timeout: float = REQUEST_TIMEOUT) -> None:
        self.socket = Path(str(socket).removeprefix("unix://"))
        self.timeout = timeout
        self._channel: grpc.aio.Channel | None = None
        self._calls: dict[str, Any] = {}
        self._sandboxes: set[asyncio.Future[None]] = set()

    async def __aenter__(self) -> Runtime:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Disconnect; calls under way fail."""
        if self._channel is not None:
            channel, self._channel = self._channel, None
            self._calls.clear()
            await channel.close()

    def channel(self) -> grpc.aio.Channel:
        """The connection, which other services on the same socket may share."""
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(f"unix://{self.socket.absolute()}", OPTIONS)
            for method in v1.methods():
                kind = self._channel.unary_stream if method.streams else self._channel.unary_unary
                self._calls[method.name] = kind(
                    method.path,
                    request_serializer=method.request.SerializeToString,
                    response_deserializer=method.response.FromString,
                )
        return self._channel

    async def _call(self, name: str, request: Any, seconds: float | None, *, wait: bool = False) -> Any:
        self.channel()
        try:
            if name in RECORDED and recorder.RECORDER is not None:
                return await self._recorded(name, request, seconds)
            return await self._calls[name](request, timeout=seconds, wait_for_ready=wait or None)
        except grpc.aio.AioRpcError as error:
            raise to_cri_error(error) from None

    async def _recorded(self, name: str, request: Any, seconds: float | None) -> Any:
        """A call as a span. A runtime of ours answers with the spans of what it did, after the response."""
        with recorder.child(f"CRI {name}") as span:
            if span.span is None:
                return await self._calls[name](request, timeout=seconds)
            span.set("object", described(request))
            call = self._calls[name](request, timeout=seconds, metadata=((HEADER, recorder.header()),))
            try:
                return await call
            finally:
                for key, value in await call.trailing_metadata() or ():
                    if key == SPANS:
                        take(value)

    async def _make(self, name: str, request: Any, seconds: float | None) -> Any:
        """A call that is not cancelled at once with its caller."""
        call = asyncio.ensure_future(self._call(name, request, seconds))
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            await asyncio.wait((call,), timeout=MAKING)
            if not call.cancel():
                call.exception()
            raise

    def _beyond(self, seconds: int) -> float | None:
        """The deadline of a call that itself ends after `seconds`, 0 being without a limit."""
        return self.timeout + seconds if seconds else None

    async def _stream(self, name: str, request: Any) -> AsyncIterator[Any]:
        self.channel()
        call = self._calls[name](request)
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            raise to_cri_error(error) from None
        finally:
            call.cancel()

    # The runtime

    async def version(self, request: Any = None, *, wait: float | None = None) -> Any:
        """The runtime's name and version; with `wait`, after waiting that many seconds at most for the runtime to come
        up."""
        request = request or v1.VersionRequest(version=v1.VERSION)
        if wait is None:
            return await self._call("Version", request, self.timeout)
        deadline = asyncio.get_running_loop().time() + wait
        while True:
            left = deadline - asyncio.get_running_loop().time()
            try:
                return await self._call("Version", request, left, wait=True)
            except CRIError as error:
                if error.code != "Unavailable" or left <= 0:
                    raise
                await asyncio.sleep(INITIALIZING)

    async def status(self, request: Any = None) -> Any:
        """Whether the runtime and its network are ready."""
        return await self._call("Status", request or v1.StatusRequest(), self.timeout)

    async def runtime_config(self, request: Any = None) -> Any:
        """The runtime's settings that the kubelet needs: its cgroup driver."""
        return await self._call("RuntimeConfig", request or v1.RuntimeConfigRequest(), self.timeout)

    async def update_runtime_config(self, request: Any) -> Any:
        """Tell the runtime the node's pod CIDR."""
        return await self._call("UpdateRuntimeConfig", request, self.timeout)

    def get_container_events(self, request: Any = None) -> AsyncIterator[Any]:
        """Changes of containers as they happen; containerd has this from 1.7 on."""
        return self._stream("GetContainerEvents", request or v1.GetEventsRequest())

    # Sandboxes

    async def run_pod_sandbox(self, request: Any) -> Any:
        """Make and start a sandbox, with its network."""
        done = asyncio.get_running_loop().create_future()
        self._sandboxes.add(done)
        try:
            return await self._make("RunPodSandbox", request, 2 * self.timeout)
        finally:
            self._sandboxes.discard(done)
            done.set_result(None)

    async def sandboxes_under_way(self) -> None:
        """Wait until each call of `run_pod_sandbox` that is under way now has ended, well or not."""
        if self._sandboxes:
            await asyncio.wait(set(self._sandboxes))

    async def stop_pod_sandbox(self, request: Any) -> Any:
        """Stop what runs in a sandbox and give back its network; may be repeated."""
        return await self._call("StopPodSandbox", request, self.timeout)

    async def remove_pod_sandbox(self, request: Any) -> Any:
        """Remove a sandbox and its containers, by force; one that is gone is no error."""
        return await self._call("RemovePodSandbox", request, self.timeout)

    async def pod_sandbox_status(self, request: Any) -> Any:
        """A sandbox's state and addresses."""
        return await self._call("PodSandboxStatus", request, self.timeout)

    async def list_pod_sandbox(self, request: Any = None) -> Any:
        """The sandboxes that match a filter."""
        return await self._call("ListPodSandbox", request or v1.ListPodSandboxRequest(), self.timeout)

    async def update_pod_sandbox_resources(self, request: Any) -> Any:
        """Tell the runtime what a resized pod has now."""
        return await self._call("UpdatePodSandboxResources", request, self.timeout)

    # Containers

    async def create_container(self, request: Any) -> Any:
        """Make a container in a sandbox."""
        return await self._make("CreateContainer", request, self.timeout)

    async def start_container(self, request: Any) -> Any:
        """Start a container that was created."""
        return await self._make("StartContainer", request, self.timeout)

    async def stop_container(self, request: Any) -> Any:
        """Stop a container: its stop signal, then KILL after `request.timeout` seconds."""
        return await self._call("StopContainer", request, self.timeout + request.timeout)

    async def remove_container(self, request: Any) -> Any:
        """Remove a container, by force; one that is gone is no error."""
        return await self._call("RemoveContainer", request, self.timeout)

    async def list_containers(self, request: Any = None) -> Any:
        """The containers that match a filter."""
        return await self._call("ListContainers", request or v1.ListContainersRequest(), self.timeout)

    async def container_status(self, request: Any) -> Any:
        """All that the runtime knows of a container."""
        return await self._call("ContainerStatus", request, self.timeout)

    async def update_container_resources(self, request: Any) -> Any:
        """Change a running container's limits."""
        return await self._call("UpdateContainerResources", request, self.timeout)

    async def reopen_container_log(self, request: Any) -> Any:
        """Let the runtime write to a new log file after the old one was moved away."""
        return await self._call("ReopenContainerLog", request, self.timeout)

    async def checkpoint_container(self, request: Any) -> Any:
        """Write a running container's state to a file; `request.timeout` 0 means without a limit."""
        return await self._call("CheckpointContainer", request, self._beyond(request.timeout))

    # Commands and streams

    async def exec_sync(self, request: Any) -> Any:
        """Run a command to its end; `request.timeout` 0 means without a limit.

        The deadline of the call is there as well, because containerd does not return at its own time when the command
        left a child that holds its output.
        """
        return await self._call("ExecSync", request, self._beyond(request.timeout))

    async def exec(self, request: Any) -> Any:
        """A URL where a command's streams can be had."""
        return await self._call("Exec", request, self.timeout)

    async def attach(self, request: Any) -> Any:
        """A URL where a container's streams can be had."""
        return await self._call("Attach", request, self.timeout)

    async def port_forward(self, request: Any) -> Any:
        """A URL where a sandbox's ports can be reached."""
        return await self._call("PortForward", request, self.timeout)

    # Usage

    async def container_stats(self, request: Any) -> Any:
        """The usage of a container."""
        return await self._call("ContainerStats", request, self.timeout)

    async def list_container_stats(self, request: Any = None) -> Any:
        """The usage of each container that matches a filter."""
        return await self._call("ListContainerStats", request or v1.ListContainerStatsRequest(), self.timeout)

    async def pod_sandbox_stats(self, request: Any) -> Any:
        """The usage of a pod."""
        return await self._call("PodSandboxStats", request, self.timeout)

    async def list_pod_sandbox_stats(self, request: Any = None) -> Any:
        """The usage of each pod that matches a filter."""
        return await self._call("ListPodSandboxStats", request or v1.ListPodSandboxStatsRequest(), self.timeout)

    async def list_metric_descriptors(self, request: Any = None) -> Any:
        """The metrics the runtime has."""
        return await self._call("ListMetricDescriptors", request or v1.ListMetricDescriptorsRequest(), self.timeout)

    async def list_pod_sandbox_metrics(self, request: Any = None) -> Any:
        """The metrics of all pods."""
        return await self._call("ListPodSandboxMetrics", request or v1.ListPodSandboxMetricsRequest(), self.timeout)

    # Images

    async def list_images(self, request: Any = None) -> Any:
        """The images that match a filter."""
        return await self._call("ListImages", request or v1.ListImagesRequest(), self.timeout)

    async def image_status(self, request: Any) -> Any:
        """An image, or an answer without one."""
        return await self._call("ImageStatus", request, self.timeout)

    async def pull_image(self, request: Any) -> Any:
        """Fetch an image; takes as long as it takes."""
        return await self._call("PullImage", request, None)

    async def remove_image(self, request: Any) -> Any:
        """Remove an image with all its tags; one that is gone is no error."""
        return await self._call("RemoveImage", request, self.timeout)

    async def image_fs_info(self, request: Any = None) -> Any:
        """How full the file system of the images is."""
        return await self._call("ImageFsInfo", request or v1.ImageFsInfoRequest(), self.timeout)


def to_cri_error(error: grpc.aio.AioRpcError) -> CRIError:
    """gRPC's exception as ours."""
    details = error.details() or ""
    return CRIError("Unavailable" if details == NOT_YET else code_name(error.code().value[0]), details)


def snake_case(name: str) -> str:
    """The name of a call as a Python method: `RunPodSandbox` is `run_pod_sandbox`."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
