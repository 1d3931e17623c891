"""Joins a client's streams with the descriptors of a process: pipes, or its terminal.

When a client goes, its process is not killed, as with other runtimes. First the process gets everything that the client
sent and the end of its stdin, and meanwhile its output is read and dropped; then what it writes fails, and the end of a
terminal is a hangup.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import os
import struct
import termios
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pybernetes.net.streams.channels import STDERR, STDOUT
from pybernetes.net.streams.exec_server import RemoteCommand
from pybernetes.net.streams.remotecommand import StreamOptions

if TYPE_CHECKING:
    from .streaming import Attachment, Command

_CHUNK = 1 << 16
_GRACE = 10.0  # seconds for a process to work on the rest of its stdin before what it writes fails
T = TypeVar("T")


async def execute(
    client: RemoteCommand, options: StreamOptions, start: Callable[[Sequence[int]], Awaitable[Command]]
) -> int:
    """Runs a command for a client; its exit code, when it has ended and all its output is sent."""
    with contextlib.ExitStack() as opened:
        if options.tty:
            command = await start(())
            # Both ends of a copy own a descriptor; `terminal` itself is for the size and for the hangup at the end.
            opened.callback(os.close, command.terminal)
            stdin, outputs = os.dup(command.terminal), [(os.dup(command.terminal), STDOUT)]
        else:
            (stdin, stdout, stderr), theirs = _pipes(options)
            outputs = [(stdout, STDOUT), (stderr, STDERR)]
            try:
                command = await start(theirs)
            except BaseException:
                _close((stdin, stdout, stderr))
                raise
            finally:
                _close(theirs)
        async with _Joined(client) as joined:
            feeding = await joined.feed(stdin)
            if options.tty:
                joined.resize(command.terminal)
            running = joined.start(_run(joined.copy(outputs), command))
            await joined.wait((running,), feeding, grace=0 if options.tty else _GRACE)
            if not running.done():
                raise ConnectionResetError("the client went away")
            return running.result()


async def _run(copying: Awaitable[None], command: Command) -> int:
    """The command's exit code, when it has ended and all its output is sent."""
    await copying
    return await command.wait()


async def attach(
    client: RemoteCommand,
    options: StreamOptions,
    start: Callable[[int, int], Awaitable[Attachment]],
    close_stdin: Callable[[], None],
) -> None:
    """Lets a client talk to a process that runs already, until the process ends or the client's stdin does.

    If stdin is for one client only, its end is passed to the process (`close_stdin`), and its output goes on.
    """
    stdout, stdout_theirs = os.pipe() if options.stdout else (-1, -1)
    stderr, stderr_theirs = os.pipe() if options.stderr else (-1, -1)
    try:
        attachment = await start(stdout_theirs, stderr_theirs)
    except BaseException:
        _close((stdout, stderr))
        raise
    finally:
        _close((stdout_theirs, stderr_theirs))
    once = options.stdin and attachment.stdin_once and attachment.terminal < 0
    with contextlib.ExitStack() as opened:
        opened.callback(_close, (attachment.terminal,))
        async with _Joined(client) as joined:
            joined.resize(attachment.terminal)
            waiting: list[asyncio.Task[Any]] = []
            feeding = None
            if options.stdin:
                feeding = await joined.feed(attachment.stdin)
                if once:
                    feeding.add_done_callback(lambda _: close_stdin())
                if not (once and (options.stdout or options.stderr)):
                    waiting.append(feeding)
            else:
                _close((attachment.stdin,))
            copying = joined.start(joined.copy([(stdout, STDOUT), (stderr, STDERR)]))
            if options.stdout or options.stderr:
                waiting.append(copying)
            await joined.wait(waiting, feeding)


class _Joined:
    """The copies of one client, and their end."""

    def __init__(self, client: RemoteCommand) -> None:
        self._client = client
        self._tasks: list[asyncio.Task[Any]] = []
        self._transports: list[asyncio.BaseTransport] = []

    async def __aenter__(self) -> _Joined:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for transport in self._transports:
            transport.close()  # what is written goes out first
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()  # cancelled tasks refer to us

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begins a task that ends with the client at the latest."""
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    async def wait(
        self, tasks: Sequence[asyncio.Task[Any]], feeding: asyncio.Task[bool] | None, grace: float = 0
    ) -> None:
        """Returns when one of the tasks has ended, or the client has gone and its process has had all it sent."""
        gone = self.start(self._client.gone())
        await asyncio.wait((*tasks, gone), return_when=asyncio.FIRST_COMPLETED)
        if not gone.done() or feeding is None or any(each.done() for each in tasks):
            return
        await asyncio.wait((*tasks, feeding), return_when=asyncio.FIRST_COMPLETED)
        if grace and feeding.done() and feeding.result():
            await asyncio.wait(tasks, timeout=grace, return_when=asyncio.FIRST_COMPLETED)

    async def feed(self, descriptor: int) -> asyncio.Task[bool]:
        """Begins to give a process what the client sends; the task ends with that. The descriptor is closed then.

        Its result is whether there is something that the process can still read from a pipe, and its end.
        """
        transport = None
        if descriptor >= 0:
            file = os.fdopen(descriptor, "wb", 0)
            loop = asyncio.get_running_loop()
            transport, protocol = await loop.connect_write_pipe(_Flow, file)
            self._transports.append(transport)
            return self.start(self._feed(transport, protocol))
        return self.start(self._feed(None, _Flow()))

    async def _feed(self, transport: asyncio.WriteTransport | None, flow: _Flow) -> bool:
        """Pass on stdin; what the process no longer reads is dropped, so that the client's other streams go on."""
        fed = False
        while data := await self._client.read_stdin():
            if transport is not None and not transport.is_closing():
                fed = True
                transport.write(data)
                await flow.room()
        if transport is None or transport.is_closing():
            return False
        transport.close()
        return fed

    async def copy(self, outputs: Sequence[tuple[int, int]]) -> None:
        """Sends what a process writes, until it ends."""
        readers = []
        for descriptor, channel in outputs:
            if descriptor >= 0:
                reader = asyncio.StreamReader(limit=_CHUNK)
                file = os.fdopen(descriptor, "rb", 0)
                transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                    functools.partial(asyncio.StreamReaderProtocol, reader), file
                )
                self._transports.append(transport)
                readers.append(self._copy(reader, channel))
        await asyncio.gather(*readers)

    async def _copy(self, reader: asyncio.StreamReader, channel: int) -> None:
        gone = False
        while True:
            try:
                data = await reader.read(_CHUNK)
            except OSError:
                return  # EIO: no process has the terminal open any more
            if not data:
                return
            if not gone:
                try:
                    await self._client.write(channel, data)
                except ConnectionError:
                    gone = True

    def resize(self, terminal: int) -> None:
        """Gives a terminal the client's size whenever it changes; the descriptor stays the caller's."""
        self.start(self._resize(terminal))

    async def _resize(self, terminal: int) -> None:
        async for width, height in self._client.resizes():
            if terminal >= 0 and 0 <= width < 1 << 16 and 0 <= height < 1 << 16:
                with contextlib.suppress(OSError):
                    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


class _Flow(asyncio.BaseProtocol):
    """Whether a pipe has room."""

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None

    def pause_writing(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._waiter = None

    def connection_lost(self, _: Exception | None) -> None:
        self.resume_writing()

    async def room(self) -> None:
        """Wait until most of what was written is sent, or the client has gone."""
        if self._waiter is not None:
            await self._waiter


def _pipes(options: StreamOptions) -> tuple[list[int], list[int]]:
    """Our ends and the process's, of stdin, stdout, stderr; ours is -1 where the client does not ask for one."""
    ours, theirs = [-1, -1, -1], [-1, -1, -1]
    for number, wanted in enumerate((options.stdin, options.stdout, options.stderr)):
        if not wanted:
            theirs[number] = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        else:
            read, write = os.pipe()
            ours[number], theirs[number] = (write, read) if number == 0 else (read, write)
    return ours, theirs


def _close(descriptors: Sequence[int]) -> None:
    for each in descriptors:
        if each >= 0:
            os.close(each)
