"""Joins a client's streams with the descriptors of a process: pipes, or its terminal.

When a client goes, its process is not killed, as with other runtimes: what it reads ends, what it writes fails, and the
end of a terminal is a hangup.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import os
import struct
import termios
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from pybernetes.net.channels import STDERR, STDOUT
from pybernetes.net.remotecommand import StreamOptions
from pybernetes.net.serving import RemoteCommand

if TYPE_CHECKING:
    from .streaming import Attachment, Command

_CHUNK = 1 << 16


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
            await joined.feed(stdin)
            if options.tty:
                joined.resize(command.terminal)
            await joined.copy(outputs)
            return await command.wait()


async def attach(
    client: RemoteCommand,
    options: StreamOptions,
    start: Callable[[int, int], Awaitable[Attachment]],
    close_stdin: Callable[[], None],
) -> None:
    """Lets a client talk to a process that runs already, until the process ends or the client's stdin does.

    If stdin is for one client only, its end is told to the process (`close_stdin`), and its output goes on.
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
            waiting: list[asyncio.Future[None]] = []
            if options.stdin:
                feeding = await joined.feed(attachment.stdin)
                if once:
                    feeding.add_done_callback(lambda _: close_stdin())
                if not (once and (options.stdout or options.stderr)):
                    waiting.append(feeding)
            else:
                _close((attachment.stdin,))
            copying = asyncio.ensure_future(joined.copy([(stdout, STDOUT), (stderr, STDERR)]))
            if options.stdout or options.stderr:
                waiting.append(copying)
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                copying.cancel()
                await asyncio.gather(copying, return_exceptions=True)


class _Joined:
    """The copies of one client, and their end."""

    def __init__(self, client: RemoteCommand) -> None:
        self._client = client
        self._tasks: list[asyncio.Task[None]] = []
        self._transports: list[asyncio.BaseTransport] = []

    async def __aenter__(self) -> _Joined:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for transport in self._transports:
            transport.close()  # what is written goes out first

    async def feed(self, descriptor: int) -> asyncio.Task[None]:
        """Begins to give a process what the client sends; the task ends with that. The descriptor is closed then."""
        transport = None
        if descriptor >= 0:
            file = os.fdopen(descriptor, "wb", 0)
            loop = asyncio.get_running_loop()
            transport, protocol = await loop.connect_write_pipe(_Flow, file)
            self._transports.append(transport)
            task = asyncio.create_task(self._feed(transport, protocol))
        else:
            task = asyncio.create_task(self._feed(None, _Flow()))
        self._tasks.append(task)
        return task

    async def _feed(self, transport: asyncio.WriteTransport | None, flow: _Flow) -> None:
        """What a process does not want to read any more is dropped: it must not hold up the client's other streams."""
        while data := await self._client.read_stdin():
            if transport is not None and not transport.is_closing():
                transport.write(data)
                await flow.room()
        if transport is not None:
            transport.close()

    async def copy(self, outputs: Sequence[tuple[int, int]]) -> None:
        """Sends what a process writes, until it ends. Raises ConnectionError if the client is gone."""
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
        while True:
            try:
                data = await reader.read(_CHUNK)
            except OSError:
                return  # EIO: nobody holds the terminal any more
            if not data:
                return
            await self._client.write(channel, data)

    def resize(self, terminal: int) -> None:
        """Gives a terminal the client's size whenever it changes; the descriptor stays the caller's."""
        self._tasks.append(asyncio.create_task(self._resize(terminal)))

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
        """Wait until most of what was written is taken, or nobody is there to take it."""
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
