"""One device plugin at its socket: its devices as they come, and the calls that the kubelet makes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from . import v1beta1

CONNECT_SECONDS: Final = 10.0
PRE_START_SECONDS: Final = 30.0
ALLOCATE_SECONDS: Final = 60.0
"""For Allocate and GetPreferredAllocation; upstream waits without end, and admits no other pod meanwhile."""
log = logging.getLogger(__name__)


class PluginError(Exception):
    """A plugin cannot be reached, or refuses."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a plugin."""

    id: str
    healthy: bool
    nodes: tuple[int, ...] = ()
    """NUMA nodes that it is near to."""


class Plugin:
    """A connection to a plugin, open until it breaks or is closed."""

    def __init__(self, resource: str, socket: Path, options: Any) -> None:
        self.resource, self.socket = resource, socket
        self.pre_start_required: bool = options.pre_start_required
        self.has_preferences: bool = options.get_preferred_allocation_available
        self._channel = grpc.aio.insecure_channel(f"unix://{socket.absolute()}", [("grpc.enable_http_proxy", 0)])
        self._calls: dict[str, Any] = {}
        for method in v1beta1.methods("DevicePlugin"):
            kind = self._channel.unary_stream if method.streams else self._channel.unary_unary
            self._calls[method.name] = kind(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )

    async def connect(self) -> None:
        """Wait until the plugin answers; `PluginError` if it does not."""
        try:
            await asyncio.wait_for(self._channel.channel_ready(), CONNECT_SECONDS)
        except TimeoutError:
            await self.close()
            raise PluginError(f"failed to dial device plugin with socketPath {self.socket}") from None

    async def watch(self, update: Callable[[list[Device]], None]) -> None:
        """Call `update` with all devices whenever they change; returns when the plugin is gone."""
        try:
            async for response in self._calls["ListAndWatch"](v1beta1.Empty()):
                update(
                    [
                        Device(each.ID, each.health == v1beta1.HEALTHY, tuple(node.ID for node in each.topology.nodes))
                        for each in response.devices
                    ]
                )
        except grpc.aio.AioRpcError as error:
            log.info("device plugin %s ended: %s", self.resource, error.details())

    async def allocate(self, ids: Iterable[str]) -> Any:
        """Call Allocate for some devices; returns the first ContainerAllocateResponse."""
        request = v1beta1.AllocateRequest(
            container_requests=[v1beta1.ContainerAllocateRequest(devices_ids=sorted(ids))]
        )
        response = await self._call("Allocate", request)
        if not response.container_responses:
            raise PluginError(f"no containers return in allocation response {response}")
        return response.container_responses[0]

    async def preferred(self, available: Iterable[str], must_include: Iterable[str], count: int) -> set[str]:
        """Which devices the plugin would choose; none if it has no opinion."""
        if not self.has_preferences:
            return set()
        request = v1beta1.PreferredAllocationRequest(
            container_requests=[
                v1beta1.ContainerPreferredAllocationRequest(
                    available_deviceIDs=sorted(available),
                    must_include_deviceIDs=sorted(must_include),
                    allocation_size=count,
                )
            ]
        )
        try:
            response = await self._call("GetPreferredAllocation", request)
        except PluginError as error:
            raise PluginError(f"device plugin GetPreferredAllocation rpc failed with err: {error}") from error
        return set(response.container_responses[0].deviceIDs) if response.container_responses else set()

    async def pre_start(self, ids: Iterable[str]) -> None:
        """Tell the plugin that a container with some devices is about to start."""
        request = v1beta1.PreStartContainerRequest(devices_ids=sorted(ids))
        try:
            await self._call("PreStartContainer", request, PRE_START_SECONDS)
        except PluginError as error:
            raise PluginError(f"device plugin PreStartContainer rpc failed with err: {error}") from error

    async def close(self) -> None:
        """Hang up."""
        await self._channel.close()

    async def _call(self, name: str, request: Any, seconds: float | None = None) -> Any:
        try:
            return await self._calls[name](request, timeout=seconds or ALLOCATE_SECONDS)
        except grpc.aio.AioRpcError as error:
            code = error.code().name.title().replace("_", "")
            raise PluginError(f"rpc error: code = {code} desc = {error.details()}") from None
        except grpc.aio.UsageError:
            raise PluginError(f"endpoint {self.resource} has been stopped") from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Not we were cancelled but the call, by closing its channel.
            raise PluginError(f"endpoint {self.resource} has been stopped") from None
