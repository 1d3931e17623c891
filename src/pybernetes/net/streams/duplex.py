"""Connections after an HTTP upgrade: bytes both ways.

A server takes one over from a client (`Upgraded`), or makes one to another server (`dial`), and joins the two. A sender
that is faster than the other side's reader is held up: `drain` waits, and the number of unread bytes is limited.

No byte is lost by a close. A client that writes and closes at once has its bytes passed on first (`join`): the end is
passed on behind them as a half-close, and output without a receiver is read and dropped until then, so that
no unread bytes are left for which the kernel would send a reset.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections import deque
from collections.abc import Iterable
from typing import Protocol

import msgspec

from ..dialer import open_streams
from ..http import Connection
from ..tcp import unconfirmed

UNREAD = 1 << 18  # bytes that may wait to be read before the other side is held up
MOST_HEAD = 1 << 20  # bytes of an answer's head; Go's http.DefaultMaxHeaderBytes
CONNECT_TIMEOUT = 30.0  # seconds; Go's default dialer
LINGER = 300.0  # seconds for a server to end after its client has; meanwhile it may work on what the client sent
_FLUSH_STEP = 0.1  # seconds between looks at whether the other side's machine has confirmed everything


class Duplex(Protocol):
    """Bytes both ways."""

    async def read(self) -> bytes:
        """The bytes that have arrived; empty at the end."""
        ...

    def write(self, data: bytes) -> None:
        """Send; does not wait."""
        ...

    async def drain(self) -> None:
        """Wait until most of what was written is taken. Raises ConnectionError."""
        ...

    async def flush(self) -> None:
        """Wait until everything that was written has arrived at the other side's machine, or the other side is gone."""
        ...

    def close(self) -> None:
        """Send what is written and end."""
        ...


class Upgraded:
    """The connection of a client after an upgrade. `read` gives everything that the client has sent, then its end."""

    def __init__(self, connection: Connection, head: bytes, *, cancel: bool = False) -> None:
        """Send `head`, the 101 answer.

        `cancel`: the task that serves the client is cancelled when the client goes. For those who only write.
        """
        self._connection = connection
        self._pieces: deque[bytes] = deque()
        self._unread = 0
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None
        connection.upgrade(head, self._received, None if cancel else self._end)

    def _received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._unread += len(data)
        if self._unread > UNREAD:
            self._connection.transport.pause_reading()
        self._wake()

    def _end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> bytes:
        """The bytes that have arrived; empty at the end."""
        while not self._pieces and not self._ended:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None  # a cancelled future refers to this frame, and so to us: no work for the collector
        if not self._pieces:
            return b""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        if self._unread > UNREAD and not self._connection.transport.is_closing():
            self._connection.transport.resume_reading()
        self._unread = 0
        return data

    def write(self, data: bytes) -> None:
        """Send."""
        self._connection.write(data)

    async def drain(self) -> None:
        """Wait until most of it is taken."""
        await self._connection.drain()

    async def flush(self) -> None:
        """Wait until all of it has arrived."""
        await _confirmed(self._connection.transport)

    def close(self) -> None:
        """End."""
        self._connection.transport.close()


class Head(msgspec.Struct):
    """The head of an answer."""

    status: int
    headers: list[tuple[str, str]]
    raw: bytes

    def get(self, name: str) -> str:
        """The first header of that name (in lower case)."""
        return next((value for key, value in self.headers if key.lower() == name), "")


class Dialed:
    """A connection to another server. `dial` makes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        _keep_alive(writer.get_extra_info("socket"))

    async def request(self, message: bytes) -> Head:
        """Send a request; return when the head of the answer is there. Raises ConnectionError."""
        self._writer.write(message)
        try:
            raw = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("unexpected EOF" if error.partial else "EOF") from None
        except asyncio.LimitOverrunError:
            raise ConnectionResetError("the head of the answer is too long") from None
        lines = raw.decode("latin-1").split("\r\n")
        parts = lines[0].split(None, 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdecimal():
            raise ConnectionResetError(f"malformed HTTP response {lines[0][:64]!r}")
        pairs = (line.partition(":") for line in lines[1:] if line)
        return Head(int(parts[1]), [(name.strip(), value.strip()) for name, _, value in pairs], raw)

    async def body(self, head: Head, most: int, within: float = 10.0) -> bytes:
        """The body of an answer that is no upgrade, as far as it comes soon, and no more than `most` bytes."""
        length = head.get("content-length")
        left = min(int(length), most) if length.isdecimal() else most
        body = b""
        try:
            async with asyncio.timeout(within):
                while len(body) < left and (piece := await self._reader.read(left - len(body))):
                    body += piece
        except (TimeoutError, OSError):
            pass
        return dechunked(body) if head.get("transfer-encoding").lower() == "chunked" else body

    async def read(self) -> bytes:
        """The bytes that have arrived; empty at the end, also after a reset."""
        try:
            return await self._reader.read(1 << 16)
        except ConnectionError:
            return b""

    def write(self, data: bytes) -> None:
        """Send."""
        self._writer.write(data)

    async def drain(self) -> None:
        """Wait until most of it is taken."""
        await self._writer.drain()

    async def flush(self) -> None:
        """Wait until all of it has arrived."""
        await _confirmed(self._writer.transport)

    async def finish(self) -> None:
        """Tell the other side that nothing more comes, behind all that was written; it can still be read from."""
        await self.flush()
        if self._writer.transport.is_closing():
            return
        # Of the socket, because a TLS transport of asyncio cannot half-close; everything is sent already.
        with contextlib.suppress(OSError, AttributeError):
            descriptor = os.dup(self._writer.get_extra_info("socket").fileno())
            with socket.socket(fileno=descriptor) as same:
                same.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End."""
        self._writer.close()

    def abort(self) -> None:
        """End at once."""
        self._writer.transport.abort()


async def dial(
    host: str, port: int, tls: ssl.SSLContext | None = None, server_name: str = "", within: float = CONNECT_TIMEOUT
) -> Dialed:
    """Connect. Raises OSError (also ssl.SSLError) or TimeoutError."""
    async with asyncio.timeout(within):
        name = server_name or host
        return Dialed(*await open_streams(tls=tls, server_name=name, limit=MOST_HEAD, host=host, port=port))


async def join(client: Duplex, backend: Dialed) -> None:
    """Copy both ways until the backend ends, then end both.

    When the client ends first, the backend is given everything that the client has sent, and then that end.
    """
    receiving = asyncio.create_task(_copy(backend, client))
    sending = asyncio.create_task(_copy(client, backend))
    try:
        await asyncio.wait((receiving, sending), return_when=asyncio.FIRST_COMPLETED)
        if not receiving.done():
            await backend.finish()
            await asyncio.wait((receiving,), timeout=LINGER)
        else:
            await client.flush()
    finally:
        for task in (receiving, sending):
            task.cancel()
        client.close()
        backend.close()
        await asyncio.gather(receiving, sending, return_exceptions=True)


async def _copy(source: Duplex, target: Duplex) -> None:
    """Copy until the source ends.

    What the target cannot take any more is dropped: whether the target has ended is seen where it is read from, when
    everything it has sent is read.
    """
    gone = False
    while data := await source.read():
        if not gone:
            try:
                target.write(data)
                await target.drain()
            except ConnectionError:
                gone = True


async def _confirmed(transport: asyncio.WriteTransport) -> None:
    """Wait until the other side's machine has confirmed everything, or the connection is closed.

    Looks twice: between two rounds of the loop bytes may lie where neither the transport nor the kernel counts them.
    """
    rounds = quiet = 0
    while quiet < 2 and not transport.is_closing():
        quiet = 0 if unconfirmed(transport) else quiet + 1
        rounds += 1
        await asyncio.sleep(0 if quiet or rounds < 4 else min(rounds * 0.001, _FLUSH_STEP))


def request_head(method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """A request up to its body. Raises ValueError for what cannot stand in a header."""
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in headers:
        if "\r" in value or "\n" in value or "\0" in value:
            raise ValueError(f'net/http: invalid header field value for "{name}"')
        lines.append(f"{name}: {value}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def dechunked(body: bytes) -> bytes:
    """The content of a chunked body, as far as it is there."""
    made = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        try:
            length = int(size.split(b";")[0], 16)
        except ValueError:
            break
        if not length:
            break
        made += rest[:length]
        body = rest[length + 2 :]
    return made


def _keep_alive(connection: socket.socket | None) -> None:
    """Streams may be silent for hours: let the kernel find out that the other side is gone (Go's numbers)."""
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 9)
