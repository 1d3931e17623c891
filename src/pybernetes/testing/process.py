"""The process of a test cluster: ready, frozen, forked, thawed.

A template is started once for each set of options: it runs until the cluster is ready and at rest, and then does
nothing but fork. Each fork is a running cluster of its own, copy-on-write, with a port of its own. A snapshot of a
running cluster is such a frozen fork again. One that has lost its client ends.

On its socket a frozen process takes `thaw` (with the socket of the new cluster), a running one the verbs of `Running`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybernetes.testing import virtual_time
from pybernetes.testing.channel import receive, send
from pybernetes.testing.loop import ClusterLoop

if TYPE_CHECKING:
    from pybernetes.testing.control_plane import Component

Answer = dict[str, Any]


class ClusterProcess:
    """One cluster in this process. Invariant: `_channel` is the socket to the owner of this cluster."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._loop: ClusterLoop
        self._listener: socket.socket | None = None
        self._verbs: dict[str, Callable[[Answer, list[int]], Coroutine[Any, Any, Answer]]] = {
            "advance": self._advance,
            "settle": self._settle,
            "autojump": self._autojump,
            "snapshot": self._snapshot,
            "components": self._components,
            "stop": self._stop,
            "start": self._start,
            "restart-server": self._restart_server,
        }

    def run(self, options: dict[str, Any], pki: str, folder: str) -> None:
        """Start a template, and serve until the owner goes away; does not return."""
        from pybernetes.testing.control_plane import ControlPlane
        from pybernetes.testing.options import parse

        self._loop = ClusterLoop()
        asyncio.set_event_loop(self._loop)
        try:
            self._control_plane = ControlPlane(parse(options), Path(pki), Path(folder))
            self._loop.run_until_complete(self._control_plane.start())
        except BaseException as error:
            with contextlib.suppress(OSError):
                send(self._channel, {"error": _describe(error)})
            os._exit(1)
        send(self._channel, {"ready": True})
        self._loop.call_soon(self._freeze)
        self._loop.run_forever()

    # -- frozen

    def _freeze(self) -> None:
        """Stand still and fork on request; returns only in forks, which go on where this cluster stood."""
        gc.collect()
        gc.freeze()
        frozen_at = virtual_time.machine_monotonic()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            message, descriptors = receive(self._channel)
            if message is None:
                os._exit(0)
            if message["verb"] == "ping":
                send(self._channel, {})
                continue
            pid = os.fork()
            if pid:
                for each in descriptors:
                    os.close(each)
                continue
            virtual_time.move(frozen_at - virtual_time.machine_monotonic())
            self._channel.close()
            self._channel = socket.socket(fileno=descriptors[0])
            self._thaw(message)
            return

    def _thaw(self, message: Answer) -> None:
        self._loop.forked()
        self._loop.autojump = bool(message.get("autojump"))
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._log_to(message["log"])
        port = self._listener.getsockname()[1]
        self._opening = self._loop.create_task(self._open(port))

    async def _open(self, port: int) -> None:
        assert self._listener is not None
        try:
            await self._control_plane.open(self._listener)
            self._channel.setblocking(False)
            self._loop.add_reader(self._channel, self._on_message)
            send(self._channel, {"port": port, "pid": os.getpid()})
        except BaseException as error:
            with contextlib.suppress(OSError):
                send(self._channel, {"error": _describe(error)})
            os._exit(1)

    def _log_to(self, file: str) -> None:
        log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)

    # -- running

    def _on_message(self) -> None:
        try:
            message, descriptors = receive(self._channel)
        except BlockingIOError:
            return
        if message is None:
            os._exit(0)
        self._answering = self._loop.create_task(self._answer(message, descriptors))

    async def _answer(self, message: Answer, descriptors: list[int]) -> None:
        try:
            verb = self._verbs.get(message["verb"])
            answer = (
                {"error": f"unknown verb {message['verb']!r}"} if verb is None else await verb(message, descriptors)
            )
        except Exception as error:
            traceback.print_exc()
            answer = {"error": _describe(error)}
        send(self._channel, answer)

    async def _advance(self, message: Answer, _: list[int]) -> Answer:
        await self._loop.advance(float(message["seconds"]))
        return {"ahead": virtual_time.ahead()}

    async def _settle(self, _: Answer, __: list[int]) -> Answer:
        await self._loop.settle()
        return {}

    async def _autojump(self, message: Answer, _: list[int]) -> Answer:
        self._loop.autojump = bool(message["on"])
        return {}

    async def _components(self, _: Answer, __: list[int]) -> Answer:
        return {"components": {name: each.running for name, each in self._control_plane.components.items()}}

    async def _stop(self, message: Answer, _: list[int]) -> Answer:
        await self._component(message).crash()
        return {}

    async def _start(self, message: Answer, _: list[int]) -> Answer:
        component = self._component(message)
        if not component.running:
            component.start()
            await component.wait()
        return {}

    def _component(self, message: Answer) -> Component:
        components = self._control_plane.components
        if message["component"] not in components:
            raise ValueError(f"there is no component {message['component']!r}; there are {', '.join(components)}")
        return components[message["component"]]

    async def _restart_server(self, message: Answer, _: list[int]) -> Answer:
        await self._control_plane.restart_server(float(message["down"]))
        return {}

    async def _snapshot(self, _: Answer, descriptors: list[int]) -> Answer:
        """Fork a frozen copy, whose owner has the other end of the socket that came with the message."""
        await self._loop.settle()
        done: asyncio.Future[Answer] = self._loop.create_future()
        self._loop.call_soon(self._fork_frozen, descriptors[0], done)
        return await done

    def _fork_frozen(self, descriptor: int, done: asyncio.Future[Answer]) -> None:
        pid = os.fork()
        if pid == 0:
            self._loop.forked()
            self._channel.close()
            self._channel = socket.socket(fileno=descriptor)
            done.cancel()
            self._freezing = self._loop.create_task(self._freeze_alone())
            return
        os.close(descriptor)
        done.set_result({"pid": pid})

    async def _freeze_alone(self) -> None:
        """Leave the clients to the cluster that this is a copy of, then stand still."""
        await self._control_plane.close()
        self._freeze()


def _describe(error: BaseException) -> str:
    if isinstance(error, SystemExit):  # of argparse, which has said what is wrong
        return "a component refuses its flags"
    return str(error) or type(error).__name__


def main() -> int:
    """`python -m pybernetes.testing.process FD PKI`: forks a template for each request on the socket, until its end."""
    virtual_time.install()
    channel = socket.socket(fileno=int(sys.argv[1]))
    pki = sys.argv[2]
    from pybernetes.cluster import warm

    warm.load()
    import pybernetes.testing.control_plane  # noqa: F401 - all templates need it

    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the test run, whose end is ours
    while True:
        message, descriptors = receive(channel)
        if message is None:
            return 0
        if os.fork() == 0:
            channel.close()
            log = os.open(message["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.close(log)
            ClusterProcess(socket.socket(fileno=descriptors[0])).run(message["options"], pki, message["folder"])
        for each in descriptors:
            os.close(each)


if __name__ == "__main__":
    json.dumps({})  # loaded before the fork
    sys.exit(main())
