"""Registration of plugins: sockets in the kubelet's folder `plugins_registry`.

A plugin (driver of dynamic resources, CSI driver) puts a socket there and answers GetInfo with its type, name, endpoint
and API versions; the handler of its type takes or refuses it, and NotifyRegistrationStatus tells it which. A socket
that disappears, or is another file than before, ends the registration. inotify wakes the look at the folder; a plugin
that did not answer is asked again with a growing delay.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from pybernetes.component import offload
from pybernetes.component.openat2 import RESOLVE_NO_XDEV, openat2
from pybernetes.component.unix_address import UnixAddress
from pybernetes.protofile import Method, Proto, read

from ..server.inotify import FolderWatch, open_watch

LOOK_EVERY: Final = 30.0
"""Seconds after which the folder is looked at without an event."""
LOOK_WITHIN: Final = 10.0
DIAL_SECONDS: Final = 10.0
CALL_SECONDS: Final = 5.0
RETRY: Final = 0.5
MAX_RETRY: Final = 120.0
MAX_DEPTH: Final = 3
MAX_SOCKETS: Final = 256
OPTIONS: Final = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
"""No connection is shared by address: the same address can mean another socket later (`UnixAddress`)."""
log = logging.getLogger(__name__)

Identity = tuple[int, int, int]
"""Device, inode and time of a socket: another one under the same name is another plugin."""


class RegistrationError(Exception):
    """A plugin is not taken."""


class Handler(Protocol):
    """Registers plugins of one type."""

    async def register(self, name: str, endpoint: str, versions: Sequence[str]) -> None:
        """Take a plugin; raises `RegistrationError`. Cancelled, it must leave nothing."""
        ...

    def unregister(self, name: str, endpoint: str) -> None:
        """A plugin has gone."""
        ...


@dataclass(slots=True)
class _Known:
    """A socket that was seen. `handler` is set while its plugin is registered."""

    identity: Identity
    handler: Handler | None = None
    name: str = ""
    endpoint: str = ""
    failures: int = 0
    task: asyncio.Task[None] | None = None


@cache
def proto() -> Proto:
    """Messages and calls of pluginregistration."""
    return read(Path(__file__).with_name("registration.proto"))


def method(name: str) -> Method:
    """A call of `Registration`."""
    return next(each for each in proto().methods if each.name == name)


class PluginRegistry:
    """Follows the folder. Invariant: a plugin is registered with its handler exactly while `_known` has its handler."""

    def __init__(self, folder: Path, handlers: dict[str, Handler]) -> None:
        self._folder, self._handlers = folder, handlers
        self._known: dict[str, _Known] = {}

    async def run(self) -> None:
        """Follow the folder until cancelled."""
        self._folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        watch = FolderWatch(open_watch(str(self._folder)))
        try:
            while True:
                try:
                    found = await offload.run("plugins_registry", LOOK_WITHIN, _sockets, self._folder)
                    self._update(found)
                except (OSError, TimeoutError) as error:
                    log.warning("the folder %s cannot be read: %s", self._folder, error)
                await watch.wait(LOOK_EVERY)
        finally:
            watch.close()
            tasks = [each.task for each in self._known.values() if each.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for path in list(self._known):
                self._forget(path)

    def _update(self, found: dict[str, Identity]) -> None:
        for path, known in list(self._known.items()):
            if found.get(path) != known.identity:
                self._forget(path)
        for path, identity in found.items():
            if path not in self._known:
                known = self._known[path] = _Known(identity)
                known.task = asyncio.create_task(self._introduce(path, known), name=f"registration of plugin {path}")

    def _forget(self, path: str) -> None:
        known = self._known.pop(path)
        if known.task is not None:
            known.task.cancel()
        if known.handler is not None:
            known.handler.unregister(known.name, known.endpoint)
            known.handler = None

    async def _introduce(self, path: str, known: _Known) -> None:
        """Ask the plugin until it is registered."""
        while True:
            try:
                await self._register(path, known)
                return
            except RegistrationError as error:
                log.error("plugin at %s: %s", path, error)
            except Exception:  # one plugin's answer must not end the others' registration
                log.exception("plugin at %s", path)
            known.failures += 1
            await asyncio.sleep(min(MAX_RETRY, RETRY * 2 ** min(known.failures - 1, 16)))

    async def _register(self, path: str, known: _Known) -> None:
        async with AsyncExitStack() as stack:
            try:
                address = stack.enter_context(UnixAddress(path))
            except OSError as error:
                raise RegistrationError(f"RegisterPlugin error -- socket {path}: {error.strerror}") from None
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"unix://{address.path}", OPTIONS))
            try:
                await asyncio.wait_for(channel.channel_ready(), DIAL_SECONDS)
                info = await _call(channel, "GetInfo", proto().names["InfoRequest"]())
            except (TimeoutError, grpc.aio.AioRpcError) as error:
                why = error.details() if isinstance(error, grpc.aio.AioRpcError) else "no answer"
                raise RegistrationError(
                    f"RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket {path}, err: {why}"
                ) from None
            endpoint = info.endpoint or path
            handler = self._handlers.get(info.type)
            problem = ""
            if handler is None:
                problem = f"RegisterPlugin error -- no handler registered for plugin type: {info.type} at socket {path}"
            else:
                try:
                    await handler.register(info.name, endpoint, list(info.supported_versions))
                    known.handler, known.name, known.endpoint = handler, info.name, endpoint
                except RegistrationError as error:
                    problem = f"RegisterPlugin error -- plugin validation failed with err: {error}"
            status = proto().names["RegistrationStatus"](plugin_registered=not problem, error=problem)
            try:
                await _call(channel, "NotifyRegistrationStatus", status)
            except grpc.aio.AioRpcError as error:
                if known.handler is not None:
                    known.handler.unregister(known.name, known.endpoint)
                    known.handler = None
                problem = problem or (
                    "RegisterPlugin error -- failed to send registration status at socket "
                    f"{path}, err: {error.details()}"
                )
            if problem:
                raise RegistrationError(problem)


async def _call(channel: Any, name: str, request: Any) -> Any:
    found = method(name)
    call = channel.unary_unary(
        found.path,
        request_serializer=found.request.SerializeToString,
        response_deserializer=found.response.FromString,
    )
    return await call(request, timeout=CALL_SECONDS)


def _sockets(folder: Path) -> dict[str, Identity]:
    """The sockets in a folder and below; names with a dot in front are not for us, nor is what is mounted there."""
    found: dict[str, Identity] = {}
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _find_sockets(top, str(folder), 0, found)
    finally:
        os.close(top)
    return found


def _find_sockets(folder: int, path: str, depth: int, found: dict[str, Identity]) -> None:
    for name in os.listdir(folder):
        if name.startswith("."):
            continue
        try:
            entry = openat2(folder, name, os.O_PATH | os.O_NOFOLLOW, RESOLVE_NO_XDEV)
        except OSError:  # gone meanwhile, or a mount point: a file system that does not answer hides no other plugin
            continue
        try:
            status = os.fstat(entry)
            if stat.S_ISDIR(status.st_mode) and depth < MAX_DEPTH:
                below = openat2(folder, name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, RESOLVE_NO_XDEV)
                try:
                    _find_sockets(below, f"{path}/{name}", depth + 1, found)
                finally:
                    os.close(below)
            elif stat.S_ISSOCK(status.st_mode) and len(found) < MAX_SOCKETS:
                found[f"{path}/{name}"] = (status.st_dev, status.st_ino, status.st_ctime_ns)
        except OSError as error:
            log.warning("%s/%s cannot be read: %s", path, name, error)
        finally:
            os.close(entry)
