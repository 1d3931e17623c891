"""Streams in one SPDY connection, from either side.

`run` reads the connection until it ends and must be running for anything to happen. An unread stream holds up the
others when too much of it waits: as in all implementations of this dialect (`spdy` says why).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from . import spdy
from .duplex import UNREAD, Duplex

OPEN_TIMEOUT = 30.0  # seconds for the other side to agree to a stream; upstream's createStreamResponseTimeout
_PIECE = 1 << 16  # bytes of data in a frame that we send


class StreamReset(ConnectionError):
    """The other side has refused or reset the stream, or the connection has ended."""


class Stream:
    """One stream; a `Duplex` whose two directions end apart."""

    def __init__(self, session: Session, number: int, headers: dict[str, str]) -> None:
        self.number = number
        self.headers = headers
        """Names in lower case."""
        self.unread = 0
        self.replied: asyncio.Future[None] | None = None  # set while we wait for the other side's agreement
        self._session = session
        self._pieces: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False  # nothing more will come
        self.was_reset = False
        self._finished = False  # we send nothing more
        self.exhausted = asyncio.Event()
        """Set when everything that came has been read, and nothing more will come."""

    async def read(self) -> bytes:
        """The bytes that have arrived; empty at the end."""
        while not self._pieces and not self._ended:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None  # a cancelled future refers to this frame, and so to us: no work for the collector
        if not self._pieces:
            self.exhausted.set()
            return b""
        content = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self.unread = 0
        self._session.taken()
        return content

    async def read_all(self, most: int = 1 << 20) -> bytes:
        """Everything until the end, but no more than so many bytes."""
        found = b""
        while len(found) < most and (piece := await self.read()):
            found += piece
        return found[:most]

    def write(self, content: bytes) -> None:
        """Send; does not wait. Nothing is sent on a stream that has ended."""
        if self._finished:
            return
        for start in range(0, len(content), _PIECE):
            self._session.duplex.write(spdy.data(self.number, content[start : start + _PIECE]))

    async def drain(self) -> None:
        """Wait until most of it is taken. Raises StreamReset."""
        if self.was_reset:
            raise StreamReset("stream reset")
        await self._session.duplex.drain()

    async def flush(self) -> None:
        """Wait until all of it has arrived at the other side's machine."""
        await self._session.duplex.flush()

    def finish(self) -> None:
        """Say that nothing more comes from here."""
        if not self._finished:
            self._finished = True
            self._session.duplex.write(spdy.data(self.number, b"", fin=True))
            self._session.forget(self)

    close = finish

    def reset(self, status: int = spdy.CANCEL) -> None:
        """End both directions at once."""
        if not (self._finished and self._ended):
            self._session.duplex.write(spdy.rst_stream(self.number, status))
        self._finished = True
        self.end()

    # -- the session's side

    @property
    def done(self) -> bool:
        """Whether both directions have ended."""
        return self._finished and self._ended

    def received(self, content: bytes) -> None:
        """Data has arrived."""
        if not self._ended:
            self._pieces.append(content)
            self.unread += len(content)
            self._wake()

    def end(self, *, reset: bool = False) -> None:
        """Nothing more will come."""
        self._ended = True
        if reset:
            self.was_reset = self._finished = True
        if self.replied is not None and not self.replied.done():
            self.replied.set_exception(StreamReset("stream reset"))
        self._wake()
        self._session.forget(self)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _refuse(_: Stream) -> bool:
    return False


class Session:
    """All streams of a connection."""

    def __init__(self, duplex: Duplex, *, server: bool, accept: Callable[[Stream], bool] = _refuse) -> None:
        """`accept` is called for each stream that the other side opens, and returns whether it may."""
        self.duplex = duplex
        self._accept = accept
        self._decoder = spdy.Decoder()
        self._headers = spdy.Headers()
        self._streams: dict[int, Stream] = {}
        self._next = 2 if server else 1
        self._newest = 0  # of the streams that the other side has opened
        self._room: asyncio.Future[None] | None = None
        self._closed = False

    async def open(self, headers: dict[str, str]) -> Stream:
        """A new stream, when the other side has agreed to it. Raises StreamReset or TimeoutError."""
        if self._closed:
            raise StreamReset("the connection has ended")
        stream = self._streams[self._next] = Stream(self, self._next, {name.lower(): headers[name] for name in headers})
        self._next += 2
        stream.replied = asyncio.get_running_loop().create_future()
        self.duplex.write(spdy.syn_stream(stream.number, self._headers.pack(headers)))
        async with asyncio.timeout(OPEN_TIMEOUT):
            await stream.replied
        return stream

    async def run(self) -> None:
        """Read until the other side ends, then end all streams. What is no SPDY ends the connection."""
        try:
            while received := await self.duplex.read():
                for frame in self._decoder.feed(received):
                    if frame.kind == spdy.GOAWAY:
                        return
                    self._handle(frame)
                await self._room_to_read()
        except (spdy.SPDYError, ConnectionError):
            pass
        finally:
            self.close()

    def close(self) -> None:
        """End all streams and the connection."""
        if self._closed:
            return
        self._closed = True
        self.duplex.write(spdy.goaway(self._newest))
        for stream in list(self._streams.values()):
            stream.end(reset=True)
        self._accept = _refuse  # the acceptor refers to us
        self.taken()
        self.duplex.close()

    def ping(self, number: int) -> None:
        """Keep the connection from looking idle."""
        self.duplex.write(spdy.ping(number))

    def taken(self) -> None:
        """Somebody has read a stream."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def forget(self, stream: Stream) -> None:
        """A stream that has ended both ways is no longer known."""
        if stream.done:
            self._streams.pop(stream.number, None)
            self.taken()

    async def _room_to_read(self) -> None:
        while not self._closed and any(each.unread > UNREAD for each in self._streams.values()):
            self._room = asyncio.get_running_loop().create_future()
            try:
                await self._room
            finally:
                self._room = None

    def _handle(self, frame: spdy.Frame) -> None:
        if frame.kind == 0:
            stream = self._streams.get(frame.stream)
            if stream is not None:
                if frame.payload:
                    stream.received(frame.payload)
                if frame.flags & spdy.FIN:
                    stream.end()
        elif frame.kind == spdy.SYN_STREAM:
            self._opened(frame)
        elif frame.kind == spdy.SYN_REPLY:
            self._headers.unpack(frame.payload[4:])
            stream = self._streams.get(spdy.number(frame))
            if stream is not None and stream.replied is not None and not stream.replied.done():
                stream.replied.set_result(None)
                if frame.flags & spdy.FIN:
                    stream.end()
        elif frame.kind == spdy.RST_STREAM:
            stream = self._streams.get(spdy.number(frame))
            if stream is not None:
                stream.end(reset=True)
        elif frame.kind == spdy.PING:
            if spdy.number(frame) % 2 != self._next % 2:
                self.duplex.write(spdy.ping(spdy.number(frame)))
        elif frame.kind == spdy.HEADERS:
            self._headers.unpack(frame.payload[4:])  # unused, but the compression of later headers depends on them

    def _opened(self, frame: spdy.Frame) -> None:
        number = spdy.number(frame)
        headers = self._headers.unpack(frame.payload[10:])
        if number % 2 == self._next % 2 or number <= self._newest:
            self.duplex.write(spdy.rst_stream(number, spdy.PROTOCOL_ERROR))
            return
        self._newest = number
        stream = self._streams[number] = Stream(self, number, headers)
        if frame.flags & spdy.FIN:
            stream.end()
        if not self._accept(stream):
            stream.reset(spdy.REFUSED_STREAM)
            return
        self.duplex.write(spdy.syn_reply(number, self._headers.pack({})))
