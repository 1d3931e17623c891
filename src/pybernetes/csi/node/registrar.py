"""Makes a CSI driver known to the kubelet: a socket in `plugins_registry` that says its name and endpoint.

The kubelet asks the driver itself for the rest. What the kubelet answers is in `Registration.result`, and in the log.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from pybernetes.component.unix_address import UnixAddress
from pybernetes.protofile import Proto, parse

TYPE: Final = "CSIPlugin"
VERSIONS: Final = ("1.0.0",)
_PROTO: Final = """
syntax = "proto3";
package pluginregistration;
service Registration {
  rpc GetInfo(InfoRequest) returns (PluginInfo);
  rpc NotifyRegistrationStatus(RegistrationStatus) returns (RegistrationStatusResponse);
}
message InfoRequest {}
message PluginInfo { string type = 1; string name = 2; string endpoint = 3; repeated string supported_versions = 4; }
message RegistrationStatus { bool plugin_registered = 1; string error = 2; }
message RegistrationStatusResponse {}
"""
log = logging.getLogger(__name__)


@cache
def proto() -> Proto:
    """Messages and calls of pluginregistration."""
    return parse(_PROTO, "registrar")


class Registration:
    """The Registration service that the kubelet calls, and the status it has reported."""

    def __init__(self, name: str, endpoint: Path, versions: tuple[str, ...] = VERSIONS) -> None:
        self._info = {
            "type": TYPE,
            "name": name,
            "endpoint": str(endpoint.absolute()),
            "supported_versions": list(versions),
        }
        self.result: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the kubelet has registered the driver for the first time."""
        self.problem = ""
        """Why it did not the last time."""

    async def get_info(self, request: Any, context: Any) -> Any:
        """GetInfo."""
        return proto().names["PluginInfo"](**self._info)

    async def notify(self, request: Any, context: Any) -> Any:
        """NotifyRegistrationStatus."""
        self.problem = request.error
        if request.plugin_registered:
            log.info("CSI driver %s is registered with the kubelet", self._info["name"])
            if not self.result.done():
                self.result.set_result(None)
        else:
            log.error("CSI driver %s is not registered with the kubelet: %s", self._info["name"], request.error)
        return proto().names["RegistrationStatusResponse"]()


@asynccontextmanager
async def registered(
    name: str, endpoint: Path, registry: Path, versions: tuple[str, ...] = VERSIONS
) -> AsyncIterator[Registration]:
    """Offer a driver at `endpoint` to the kubelet as long as the context lasts."""
    registration = Registration(name, endpoint, versions)
    functions = {"GetInfo": registration.get_info, "NotifyRegistrationStatus": registration.notify}
    server = grpc.aio.server()
    handlers = {
        method.name: grpc.unary_unary_rpc_method_handler(
            functions[method.name],
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )
        for method in proto().methods
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("pluginregistration.Registration", handlers)])
    socket = _socket(name, registry)
    with listening(server, socket):
        await server.start()
        try:
            yield registration
        finally:
            await server.stop(None)
            with suppress(FileNotFoundError):
                os.unlink(socket)


@contextmanager
def listening(server: Any, socket: Path) -> Iterator[None]:
    """Have a server listen at a socket; the context must last until the server has stopped. Raises OSError."""
    with UnixAddress(socket) as address:
        try:
            port = server.add_insecure_port(f"unix://{address.path}")
        except RuntimeError as error:  # what gRPC raises says why
            raise OSError(f"{socket}: {error}") from None
        if not port:
            raise OSError(f"{socket}: cannot listen there")
        yield


def _socket(name: str, registry: Path) -> Path:
    """Where the kubelet looks for a driver's registration; what an earlier process left there is removed."""
    registry.mkdir(parents=True, exist_ok=True, mode=0o750)
    socket = (registry / f"{name}-reg.sock").absolute()
    socket.unlink(missing_ok=True)
    return socket
