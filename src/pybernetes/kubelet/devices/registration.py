"""The socket at which device plugins register: `kubelet.sock` in the plugin folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from pybernetes.api.core.resourcenames import is_extended
from pybernetes.component import offload

from . import checkpoint, v1beta1
from .plugin import PluginError

LOOK_WITHIN = 10.0
"""Seconds for a look at the folder."""
log = logging.getLogger(__name__)

Register = Callable[[str, Path, Any], Awaitable[None]]
"""`await register(resource, socket, options)`; `PluginError` if the plugin does not answer."""


class RegistrationServer:
    """Takes registrations. A new socket tells plugins that the kubelet was restarted: they register again."""

    def __init__(self, folder: Path, register: Register) -> None:
        self._folder, self._register = folder, register
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Make the folder, remove sockets of former times, and listen."""
        await offload.run("device-plugins", LOOK_WITHIN, _prepare, self._folder)
        self._server = grpc.aio.server()
        (method,) = v1beta1.methods("Registration")
        handler = grpc.unary_unary_rpc_method_handler(
            self._registered,
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )
        name = f"{v1beta1.proto().package}.Registration"
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(name, {method.name: handler})])
        self._server.add_insecure_port(f"unix://{(self._folder / v1beta1.KUBELET_SOCKET).absolute()}")
        await self._server.start()

    async def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def _registered(self, request: Any, context: Any) -> Any:
        problem = _problem(request)
        if not problem:
            try:
                await self._register(request.resource_name, self._folder / request.endpoint, request.options)
            except PluginError as error:
                problem = str(error)
        if problem:
            log.error("bad registration request from device plugin %s: %s", request.resource_name, problem)
            await context.abort(grpc.StatusCode.UNKNOWN, problem)
        return v1beta1.Empty()


def _prepare(folder: Path) -> None:
    """Make the folder, and remove sockets of earlier processes; one that cannot be removed does no harm."""
    folder.mkdir(mode=0o750, parents=True, exist_ok=True)
    with os.scandir(folder) as entries:
        for each in entries:
            if each.is_dir(follow_symlinks=False) or each.name == checkpoint.FILE:
                continue
            try:
                os.unlink(each.path)
            except OSError as error:
                log.warning("%s cannot be removed: %s", each.path, error)


def _problem(request: Any) -> str:
    if request.version != v1beta1.VERSION:
        return (
            f'requested API version "{request.version}" is not supported by kubelet. '
            f'Supported version is ["{v1beta1.VERSION}"]'
        )
    if not is_extended(request.resource_name):
        return f'the ResourceName "{request.resource_name}" is invalid'
    if not request.endpoint or "/" in request.endpoint or request.endpoint in (".", ".."):
        return f'the endpoint "{request.endpoint}" is not the name of a socket in the plugin folder'
    return ""
