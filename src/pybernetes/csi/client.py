"""A client of a CSI driver at its unix socket: the call's name and the fields of its request in, the response out.

A call fails at once while the driver is away; the connection comes back by itself within half a second of it. Every
failure is a `CSIError`. Secrets are in requests, so requests are never logged or put into errors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from pybernetes.component.unix_address import UnixAddress
from pybernetes.cri.errors import code_name
from pybernetes.trace import recorder

from . import v1
from .errors import CSIError

CALL_SECONDS: Final = 120.0
"""How long a call may take; upstream's kubelet and attach-detach controller wait as long."""
OPTIONS: Final = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.use_local_subchannel_pool", 1),
]

Took = Callable[[str, str, float], None]
"""Path of the call, gRPC code, seconds."""


class CSIClient:
    """A connection to one driver. Usable as `async with`; connects at the first call."""

    def __init__(self, socket: str | Path, *, timeout: float = CALL_SECONDS, took: Took = lambda *_: None) -> None:
        self.socket = str(socket).removeprefix("unix://")
        self.timeout = timeout
        self._took = took
        self._channel: Any = None
        self._address: UnixAddress | None = None
        self._calls: dict[str, Any] = {}

    async def __aenter__(self) -> CSIClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Disconnect; calls under way fail."""
        channel, self._channel = self._channel, None
        self._calls.clear()
        address, self._address = self._address, None
        try:
            if channel is not None:
                await channel.close()
        finally:
            if address is not None:
                address.close()

    async def call(self, name: str, /, *, within: float | None = None, wait: bool = False, **fields: Any) -> Any:
        """The response to a call such as `NodeStageVolume` with these fields; `wait` for one that is away."""
        method = v1.methods()[name]
        if self._channel is None:
            self._channel = self._connect()
        call = self._calls.get(name)
        if call is None:
            call = self._calls[name] = self._channel.unary_unary(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
        begun, code = time.monotonic(), "OK"
        try:
            request = method.request(**{key: value for key, value in fields.items() if value is not None})
            with recorder.child(f"CSI {name}") if name.endswith("Volume") else nullcontext():
                return await call(request, timeout=within or self.timeout, wait_for_ready=wait or None)
        except grpc.aio.AioRpcError as error:
            code = code_name(error.code().value[0])
            raise CSIError(code, error.details() or "") from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            code = "Canceled"
            raise CSIError(code, f"{name}: the connection to the driver was closed") from None
        except grpc.aio.UsageError:
            code = "Canceled"
            raise CSIError(code, f"{name}: the connection to the driver was closed") from None
        finally:
            self._took(method.path, code, time.monotonic() - begun)

    def _connect(self) -> Any:
        try:
            self._address = UnixAddress(self.socket)
        except OSError as error:
            raise CSIError("Unavailable", f"{self.socket}: {error.strerror}") from None
        return grpc.aio.insecure_channel(f"unix://{self._address.path}", OPTIONS)

    async def driver_name(self) -> str:
        """The driver's name (GetPluginInfo)."""
        return str((await self.call("GetPluginInfo")).name)

    async def plugin_capabilities(self) -> set[int]:
        """The services that the plugin has (`PluginService.Type`)."""
        response = await self.call("GetPluginCapabilities")
        return {each.service.type for each in response.capabilities if each.HasField("service")}

    async def controller_capabilities(self) -> set[int]:
        """The controller's capabilities (`ControllerRPC.Type`)."""
        response = await self.call("ControllerGetCapabilities")
        return {each.rpc.type for each in response.capabilities if each.HasField("rpc")}

    async def node_capabilities(self, within: float | None = None) -> set[int]:
        """The driver's capabilities on its node (`NodeRPC.Type`)."""
        response = await self.call("NodeGetCapabilities", within=within)
        return {each.rpc.type for each in response.capabilities if each.HasField("rpc")}
