"""A device plugin as vendors write it: serves `deviceplugin/v1beta1` at a socket and registers with the kubelet.

Its devices are files of the host (`/dev/null` by default), so that containers can be given them for real.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from pybernetes.kubelet.devices import v1beta1


class SamplePlugin:
    """One plugin with some devices. `async with` starts and stops it."""

    def __init__(self, folder: Path, resource: str, *devices: str, host_path: str = "/dev/null") -> None:
        self.folder, self.resource, self.host_path = folder, resource, host_path
        self.health = dict.fromkeys(devices, "Healthy")
        self.endpoint = resource.replace("/", "_") + ".sock"
        self.options = v1beta1.DevicePluginOptions()
        self.version = v1beta1.VERSION
        self.allocated: list[list[str]] = []
        self.started: list[list[str]] = []
        self.preferences: list[str] = []
        self.refuse = ""
        self.hangs = False
        self._changed = asyncio.Event()
        self._server: grpc.aio.Server | None = None

    async def __aenter__(self) -> SamplePlugin:
        await self.serve()
        try:
            await self.register()
        except BaseException:
            await self.stop()  # a server that is left behind keeps the process from ending
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def serve(self) -> None:
        self._server = grpc.aio.server()
        calls = {}
        for method in v1beta1.methods("DevicePlugin"):
            kind = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
            calls[method.name] = kind(
                getattr(self, method.name),
                request_deserializer=method.request.FromString,
                response_serializer=method.response.SerializeToString,
            )
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", calls)])
        self._server.add_insecure_port(f"unix://{self.folder / self.endpoint}")
        await self._server.start()

    async def register(self) -> None:
        (method,) = v1beta1.methods("Registration")
        async with grpc.aio.insecure_channel(f"unix://{self.folder / v1beta1.KUBELET_SOCKET}") as channel:
            call = channel.unary_unary(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
            await call(
                v1beta1.RegisterRequest(
                    version=self.version, endpoint=self.endpoint, resource_name=self.resource, options=self.options
                ),
                timeout=20,
            )

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    def set_health(self, **health: str) -> None:
        self.health.update(health)
        self._changed.set()
        self._changed = asyncio.Event()

    # the service

    async def GetDevicePluginOptions(self, request: Any, context: Any) -> Any:
        return self.options

    async def ListAndWatch(self, request: Any, context: Any) -> AsyncIterator[Any]:
        while True:
            changed = self._changed
            devices = [v1beta1.Device(ID=id, health=health) for id, health in self.health.items()]
            yield v1beta1.ListAndWatchResponse(devices=devices)
            await changed.wait()

    async def GetPreferredAllocation(self, request: Any, context: Any) -> Any:
        response = v1beta1.ContainerPreferredAllocationResponse(deviceIDs=self.preferences)
        return v1beta1.PreferredAllocationResponse(container_responses=[response])

    async def Allocate(self, request: Any, context: Any) -> Any:
        if self.hangs:
            await asyncio.Event().wait()
        if self.refuse:
            await context.abort(grpc.StatusCode.INTERNAL, self.refuse)
        (wanted,) = request.container_requests
        ids = list(wanted.devices_ids)
        self.allocated.append(ids)
        response = v1beta1.ContainerAllocateResponse(
            envs={"SAMPLE_DEVICES": ",".join(ids)},
            devices=[
                v1beta1.DeviceSpec(container_path=f"/dev/{id}", host_path=self.host_path, permissions="rw")
                for id in ids
            ],
            annotations={"sample.example.com/devices": ",".join(ids)},
        )
        return v1beta1.AllocateResponse(container_responses=[response])

    async def PreStartContainer(self, request: Any, context: Any) -> Any:
        self.started.append(list(request.devices_ids))
        return v1beta1.PreStartContainerResponse()
