"""Connections inside one process, without sockets: bytes go from one transport to its peer through the event loop.

A cluster whose components talk this way has no descriptor that matters, so a fork of it is a cluster of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from itertools import count
from typing import Any, Protocol

HIGH_WATER = 64 * 1024
"""Bytes that may wait for a peer that does not read before the writer is paused."""

Factory = Callable[[], asyncio.BaseProtocol]


class Weather(Protocol):
    """Delays and losses of bytes in transit."""

    def delay(self, way: tuple[int, int]) -> float:
        """Seconds until the next bytes arrive that go from one port to another."""
        ...

    def breaks(self) -> bool:
        """Whether the connection breaks instead."""
        ...


class MemoryNetwork:
    """The listeners by address."""

    def __init__(self) -> None:
        self._listeners: dict[tuple[str, int], Factory | None] = {}
        """None: the port was in use once, and is not now."""
        self._ports = count(40_000)
        self.weather: Weather | None = None
        """None: bytes arrive in the next round of the event loop."""

    def listen(self, host: str, port: int, factory: Factory) -> None:
        """Serve connections to an address with protocols from the factory."""
        self._listeners[host, port] = factory

    def knows(self, host: str, port: int) -> bool:
        """Whether it is an address of this network, even if there is no listener now."""
        return (host, port) in self._listeners

    def close(self, host: str, port: int) -> None:
        """Refuse connections there."""
        self._listeners[host, port] = None

    def connect(
        self, loop: asyncio.AbstractEventLoop, factory: Factory, host: str, port: int
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol] | None:
        """Connect a protocol from the factory to who listens there; None if it is not an address of this network.

        ConnectionRefusedError if there is no listener any more.
        """
        if (host, port) not in self._listeners:
            return None
        listener = self._listeners[host, port]
        if listener is None:
            raise ConnectionRefusedError(f"connection refused: {host}:{port}")
        client_address, server_address = ("127.0.0.1", next(self._ports)), (host, port)
        # Who listens begins with each connection anew: what its client is at is known to it by what it is sent.
        client = MemoryTransport(loop, self, client_address, server_address, copy_context())
        server = MemoryTransport(loop, self, server_address, client_address, Context())
        client.peer, server.peer = server, client
        served, protocol = listener(), factory()
        server.set_protocol(served)
        client.set_protocol(protocol)
        server.context.run(served.connection_made, server)
        protocol.connection_made(client)
        return client, protocol


class MemoryTransport(asyncio.Transport):
    """One end of a connection. Invariant: `_arrived` is empty unless reading is paused or a delivery is scheduled."""

    peer: MemoryTransport

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        network: MemoryNetwork,
        own: tuple[str, int],
        other: tuple[str, int],
        context: Context,
    ) -> None:
        """`context` is what the protocol of this end is called in."""
        super().__init__({"sockname": own, "peername": other})
        self._loop = loop
        self._network = network
        self.context = context
        self._way = other[1], own[1]
        self._due = 0.0
        """When the last bytes arrive that are on their way: later ones do not overtake them."""
        self._arrived: deque[bytes] = deque()
        self._size = 0
        self._scheduled = False
        self._paused = False
        self._ended = False
        """The peer has sent its last byte."""
        self._closing = False
        self._lost = False
        self._writer_paused = False
        self._high, self._low = HIGH_WATER, HIGH_WATER // 4

    # -- what the protocol of this end calls

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol: Any = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return not self._paused and not self._closing

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        if self._arrived or self._ended:
            self._schedule()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        self.peer._arrive(bytes(data))
        if self.peer._size > self._high and not self._writer_paused:
            self._writer_paused = True
            self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self.peer._size

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH_WATER if high is None else high
        self._low = self._high // 4 if low is None else low

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self.peer._end()
            self._loop.call_soon(self._lose, context=self.context)

    def abort(self) -> None:
        self.close()

    # -- what the other end calls

    def _arrive(self, data: bytes) -> None:
        if self._closing:
            return
        self._arrived.append(data)
        self._size += len(data)
        if not self._paused:
            self._schedule()

    def _end(self) -> None:
        self._ended = True
        if not self._paused:
            self._schedule()

    # -- the event loop's side

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            weather = self._network.weather
            delay = weather.delay(self._way) if weather else 0.0
            if delay:
                self._due = max(self._due, self._loop.time() + delay)
                self._loop.call_at(self._due, self._deliver, context=self.context)
            else:
                self._loop.call_soon(self._deliver, context=self.context)

    def _deliver(self) -> None:
        self._scheduled = False
        if self._lost:
            return
        if self._network.weather and self._network.weather.breaks():
            self._break()
            self.peer._break()
            return
        while self._arrived and not self._paused and not self._closing:
            data = self._arrived.popleft() if len(self._arrived) == 1 else b"".join(self._arrived)
            self._arrived.clear()
            self._size = 0
            self._protocol.data_received(data)
        self.peer._taken()
        if self._ended and not self._arrived and not self._closing:
            self._closing = True
            self._protocol.eof_received()
            self._lose()

    def _taken(self) -> None:
        if self._writer_paused and self.peer._size <= self._low:
            self._writer_paused = False
            self._protocol.resume_writing()

    def _break(self) -> None:
        """Lose the connection and what was on its way."""
        self._closing = True
        self._lose(ConnectionResetError("the connection broke"))

    def _lose(self, error: Exception | None = None) -> None:
        if not self._lost:
            self._lost = True
            self._arrived.clear()
            self._size = 0
            self._protocol.connection_lost(error)
