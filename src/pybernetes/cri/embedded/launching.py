"""The runtime's side of the launcher: finds the one that runs or starts one, asks it, hears of ends.

The launcher that runs may be of another version of this program, as it lives as long as its pods. One whose protocol
is not among `SUPPORTED` starts nothing more: its pods run on and can be ended, `problem` says why no others start, and
with the last pod it is replaced.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pybernetes.component import state_files
from pybernetes.component.removal import remove_tree

from .plain import NODE

log = logging.getLogger(__name__)

PACKET = 65536
SUPPORTED = (0, 1)
"""Versions of the launcher's protocol; 0 is that of launchers which do not know the request `version`."""
_START = "import sys; sys.path.insert(0, sys.argv[2]); from {module} import main; main(sys.argv[1])"


class LauncherError(Exception):
    """An error of the launcher, or of the process it started."""


class Launching:
    """A connection to the launcher. `ended` is called with the end of each process: name, code, time."""

    def __init__(self, state: Path, ended: Callable[[dict[str, Any]], None], lost: Callable[[], None]) -> None:
        self._state = state
        self._ended = ended
        self._lost = lost
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._socket: socket.socket | None = None
        self.problem = ""
        """Why the launcher that runs cannot start anything."""

    async def connect(self) -> None:
        """Connects to the launcher of this state folder, if it is not connected; starts one if there is none."""
        if self._socket is not None:
            return
        try:
            self._open()
        except OSError:
            await asyncio.to_thread(self._spawn)
            self._open()
        await self._check_version()

    async def replace(self) -> None:
        """Starts another launcher in place of one that cannot start anything and has no process any more."""
        self.close()  # it ends by itself
        await self.connect()

    async def _check_version(self) -> None:
        try:
            version = (await self._ask({"do": "version"})).get("version", 0)
        except LauncherError:
            if self._socket is None:
                raise
            version = 0
        self.problem = ""
        if version not in SUPPORTED:
            self.problem = (
                f"the launcher that runs has protocol version {version}, this runtime supports "
                f"{', '.join(map(str, SUPPORTED))}: no container can be started until the last pod has ended"
            )
            log.error("%s", self.problem)

    def _open(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.connect(str(self._state / "launcher.sock"))
        except OSError:
            connection.close()
            raise
        connection.setblocking(False)
        self._socket = connection
        asyncio.get_running_loop().add_reader(connection.fileno(), self._readable)

    def _spawn(self) -> None:
        from . import launcher, sealed

        package = str(Path(launcher.__file__).parents[3])
        # Neither site-packages nor the environment: it needs our own modules and a few of the standard library.
        command = [sys.executable, "-S", "-E", "-c", _START.format(module=launcher.__name__), str(self._state), package]
        empty = self._state / "empty"
        empty.mkdir(mode=0o700, exist_ok=True)
        program = sealed.executable(sys.executable, str(empty))
        with open(self._state / "launcher.log", "ab") as log_file:
            process = subprocess.Popen(
                command,
                executable=f"/proc/self/fd/{program}",
                pass_fds=(program,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log_file,
                start_new_session=True,
                cwd="/",
                env={
                    "PATH": os.environ.get("PATH", os.defpath),
                    "LANG": "C.UTF-8",
                    "PYTHONUTF8": "1",
                    **({NODE: os.environ[NODE]} if NODE in os.environ else {}),
                },
            )
        os.close(program)
        assert process.stdout is not None
        with process.stdout:
            if process.stdout.read(len(launcher.READY)) != launcher.READY:
                text = (self._state / "launcher.log").read_text(errors="replace")[-2000:]
                raise LauncherError(f"the launcher did not start: {text}")

    def close(self) -> None:
        """Hangs up; processes go on."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(LauncherError("the launcher is gone"))
        self._waiting.clear()

    async def start(self, spec: Path) -> dict[str, Any]:
        """Starts what a spec file describes; answers its pid and user when its program runs."""
        self._check()
        return await self._ask({"do": "start", "spec": str(spec)})

    async def exec(self, name: str, spec: Path, changes: dict[str, Any], streams: Sequence[int]) -> dict[str, Any]:
        """Starts a command in a container, under a name of its own; its terminal, if any, is in `descriptors`."""
        self._check()
        request = {"do": "exec", "name": name, "spec": str(spec), "changes": changes}
        return await self._ask(request, streams)

    async def attach(self, name: str, copies: dict[str, int]) -> list[int]:
        """Copies the output of a container to descriptors, by stream; answers its stdin and terminal, -1 if none."""
        request = {"do": "attach", "name": name, "copies": list(copies)}
        answer = await self._ask(request, list(copies.values()))
        found = iter(answer["descriptors"])
        return [next(found, -1) if there else -1 for there in answer["there"]]

    async def close_stdin(self, name: str) -> None:
        """Lets a container read the end of its stdin."""
        await self._ask({"do": "close_stdin", "name": name})

    async def signal(self, name: str, number: int) -> bool:
        """Sends a signal to a process; whether there was one."""
        return bool((await self._ask({"do": "signal", "name": name, "signal": number}))["sent"])

    async def reopen(self, name: str) -> None:
        """Lets a container's log be opened again."""
        await self._ask({"do": "reopen", "name": name})

    async def running(self) -> dict[str, int]:
        """All processes: pid by name."""
        found: dict[str, int] = {}
        after = ""
        while some := (await self._ask({"do": "list", "after": after}))["processes"]:
            found |= some
            after = max(some)
        return found

    def exits(self) -> dict[str, dict[str, Any]]:
        """The ends that were written down and not yet forgotten."""
        found = {}
        for path in (self._state / "exits").glob("[!.]*"):
            try:
                found[path.name] = _end(path.name, state_files.content(path))
            except (ValueError, OSError) as error:
                log.error("the end of %s cannot be read: %s", path.name, error)
                remove_tree(path, ignore_errors=True)
        return found

    def forget(self, name: str) -> None:
        """An end that is known and kept elsewhere."""
        (self._state / "exits" / name).unlink(missing_ok=True)

    def _check(self) -> None:
        if self.problem:
            raise LauncherError(self.problem)

    async def _ask(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        number = next(self._numbers)
        data = json.dumps({"id": number, **request}).encode()
        if len(data) > PACKET:
            raise LauncherError(f"a request of {len(data)} bytes is too long")
        future = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            while True:
                if self._socket is None:
                    raise LauncherError("the launcher is gone")
                try:
                    socket.send_fds(self._socket, [data], list(descriptors))
                    break
                except BlockingIOError:
                    await asyncio.sleep(0.001)  # its queue is full: it forks; there is nothing to wait on in asyncio
                except OSError as error:
                    raise LauncherError(f"the launcher is gone: {error}") from None
            answer = await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:  # no receiver
                for descriptor in future.result()["descriptors"]:
                    os.close(descriptor)
            raise
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            raise LauncherError(answer["error"])
        return dict(answer)

    def _readable(self) -> None:
        assert self._socket is not None
        try:
            data, descriptors, _, _ = socket.recv_fds(self._socket, PACKET, 2)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        if not data:
            log.error("the launcher is gone: processes of pods have lost their parent")
            self.close()
            self._lost()
            return
        message = json.loads(data)
        if "exit" in message:
            self._ended(message["exit"])
            return
        future = self._waiting.get(message["id"])
        if future is not None and not future.done():
            future.set_result({**message, "descriptors": descriptors})
        else:
            for descriptor in descriptors:
                os.close(descriptor)


def _end(name: str, content: bytes) -> dict[str, Any]:
    """Parse the record of a process's end."""
    end = json.loads(content)
    if not isinstance(end, dict) or end.get("name") != name:
        raise ValueError("this is not the end of a process")
    if any(type(end.get(field)) is not int for field in ("code", "at")):
        raise ValueError("code and time of an end are numbers")
    return end
