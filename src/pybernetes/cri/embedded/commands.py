"""Commands in running containers that are waited for (ExecSync): probes and hooks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Sequence
from typing import Any

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

from .containers import UNKNOWN_END, Containers
from .launching import LauncherError, Launching

LARGEST = 8 << 20
"""Bytes of output that are kept of each stream: both fit into a message of CRI, which has 16 MiB at most."""
LINGER = 0.5
"""Seconds that output may come after the command's end, from children that it left behind."""


class Commands:
    """Runs commands and hears of their ends."""

    def __init__(self, launching: Launching, containers: Containers) -> None:
        self._launching = launching
        self._containers = containers
        self._running: dict[str, asyncio.Future[int]] = {}

    def ended(self, end: dict[str, Any]) -> bool:
        """Whether this end is one of a command here."""
        name = str(end["name"])
        if not name.startswith("exec-"):
            return False
        self._launching.forget(name)
        future = self._running.get(name)
        if future is not None and not future.done():
            future.set_result(int(end["code"]))
        return True

    def lost(self) -> None:
        """The launcher is gone, and with it the exit codes of running commands."""
        for end in self._running.values():
            if not end.done():
                end.set_result(UNKNOWN_END)
        self._running.clear()

    def names(self) -> set[str]:
        """Commands with a caller that waits for their end."""
        return set(self._running)

    async def run(self, id: str, command: list[str], limit: float) -> Any:
        """Runs a command to its end; DeadlineExceeded if that takes longer than `limit` seconds (0: for ever)."""
        container = self._containers.get(id)
        if not container.running:
            raise CRIError("Unknown", f'failed to exec in container: container "{id}" is not running')
        if not command:
            raise CRIError("InvalidArgument", "no command specified")
        name = f"exec-{secrets.token_hex(16)}"
        end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._running[name] = end
        out, err = _Output(), _Output()
        try:
            await asyncio.wait_for(self._run(id, name, command, end, out, err), limit or None)
            return cri.ExecSyncResponse(stdout=bytes(out.data), stderr=bytes(err.data), exit_code=end.result())
        except asyncio.CancelledError:  # who asked has gone
            with contextlib.suppress(LauncherError):
                await asyncio.shield(self._launching.signal(name, signal.SIGKILL))
            raise
        except TimeoutError:
            with contextlib.suppress(LauncherError):
                await self._launching.signal(name, signal.SIGKILL)
            text = f"failed to exec in container: timeout {limit:g}s exceeded: context deadline exceeded"
            raise CRIError("DeadlineExceeded", text) from None
        except LauncherError as error:
            text = f'failed to exec in container: failed to start exec "{name}": {error}'
            raise CRIError("Unknown", text) from None
        finally:
            self._running.pop(name, None)
            out.close()
            err.close()

    async def _run(
        self, id: str, name: str, command: list[str], end: asyncio.Future[int], out: _Output, err: _Output
    ) -> None:
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            await self._start(id, name, command, [null, out.write, err.write], tty=False)
        finally:
            os.close(null)
            out.close_write()
            err.close_write()
        await end
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER):  # one after the other: a gather's own exception would be lost
                await out.ended.wait()
                await err.ended.wait()

    async def _start(self, id: str, name: str, command: Sequence[str], streams: Sequence[int], tty: bool) -> Any:
        changes = {"args": list(command), "tty": tty, "stdin": False, "make_cwd": False}
        return await self._launching.exec(name, self._containers.spec(id), changes, streams)

    async def begin(self, id: str, command: Sequence[str], streams: Sequence[int], tty: bool) -> Begun:
        """Starts a command with these streams, or with a terminal."""
        name = f"exec-{secrets.token_hex(16)}"
        end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        end.add_done_callback(lambda _: self._running.pop(name, None))
        self._running[name] = end
        try:
            answer = await self._start(id, name, command, streams, tty)
        except LauncherError as error:
            end.cancel()
            raise CRIError("Unknown", f'failed to exec in container: failed to start exec "{name}": {error}') from None
        return Begun(next(iter(answer["descriptors"]), -1), end)


class Begun:
    """A command that runs."""

    def __init__(self, terminal: int, end: asyncio.Future[int]) -> None:
        self.terminal = terminal
        """The other end of its terminal, which the caller closes; -1 = it has none."""
        self._end = end

    async def wait(self) -> int:
        """Its exit code, when it has ended."""
        return await asyncio.shield(self._end)


class _Output:
    """One stream of a command, read as it comes."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = asyncio.Event()
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)
        asyncio.get_running_loop().add_reader(self._read, self._readable)

    def _readable(self) -> None:
        try:
            data = os.read(self._read, 65536)
        except BlockingIOError:
            return
        if not data:
            self.ended.set()
            asyncio.get_running_loop().remove_reader(self._read)
        elif len(self.data) < LARGEST:
            self.data += data[: LARGEST - len(self.data)]

    def close_write(self) -> None:
        if self.write >= 0:
            os.close(self.write)
            self.write = -1

    def close(self) -> None:
        """Forget the output too: a traceback may refer to it until the garbage collector runs."""
        self.data = bytearray()
        self.close_write()
        asyncio.get_running_loop().remove_reader(self._read)
        os.close(self._read)
