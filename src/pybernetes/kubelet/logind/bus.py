"""A connection to a message bus: calls, signals, and file descriptors that come with answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from . import wire

SYSTEM_BUS: Final = Path("/run/dbus/system_bus_socket")
CALL_SECONDS: Final = 25.0
_BUS: Final = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
_MAX_FDS: Final = 16


class BusError(Exception):
    """The bus, or who was called, says no; `name` is the error's, if it has one."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class Bus:
    """A connection; make it with `await Bus.connect()`. `on_message` gets signals, and calls of others."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._loop = asyncio.get_running_loop()
        self._serial = 0
        self._waiting: dict[int, asyncio.Future[wire.Message]] = {}
        self._data = bytearray()
        self._fds: list[int] = []
        self.on_message: Callable[[wire.Message], None] = lambda _: None
        self.closed = asyncio.Event()
        self.name = ""

    @classmethod
    async def connect(cls, path: Path = SYSTEM_BUS) -> Bus:
        """Connect as the user we are; `OSError` or `BusError` if that cannot be."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await loop.sock_connect(connection, str(path))
                identity = str(os.geteuid()).encode().hex().encode()
                await loop.sock_sendall(connection, b"\0AUTH EXTERNAL " + identity + b"\r\n")
                await _expect(connection, b"OK ")
                await loop.sock_sendall(connection, b"NEGOTIATE_UNIX_FD\r\n")
                await _expect(connection, b"AGREE_UNIX_FD")
                await loop.sock_sendall(connection, b"BEGIN\r\n")
                bus = cls(connection)
                loop.add_reader(connection, bus._readable)
                (bus.name,) = await bus.call(*_BUS, "Hello")
        except BaseException:
            loop.remove_reader(connection)
            connection.close()
            raise
        return bus

    async def call(
        self, destination: str, path: str, interface: str, member: str, signature: str = "", *values: Any
    ) -> tuple[Any, ...]:
        """Call a method and return its reply; file descriptors (`h`) in it are the caller's to close."""
        self._serial += 1
        serial = self._serial
        answer = self._waiting[serial] = self._loop.create_future()
        fields = {"path": path, "interface": interface, "member": member, "destination": destination}
        try:
            await self.send(wire.Message(wire.METHOD_CALL, serial, body=values, fields=fields), signature)
            async with asyncio.timeout(CALL_SECONDS):
                reply = await answer
        finally:
            self._waiting.pop(serial, None)
        if reply.type == wire.ERROR:
            raise BusError(str(reply.body[0]) if reply.body else "", str(reply.fields.get("error", "")))
        kinds = wire.split(reply.fields.get("signature", ""))
        return tuple(reply.fds[value] if kind == "h" else value for kind, value in zip(kinds, reply.body, strict=True))

    async def send(self, message: wire.Message, signature: str = "") -> None:
        """Send a message as it is, with its file descriptors."""
        if not message.serial:
            self._serial += 1
            message.serial = self._serial
        if message.fds:
            message.fields["fds"] = len(message.fds)
        data = wire.encode(message, signature)
        sent = socket.send_fds(self._socket, [data], message.fds) if message.fds else 0
        await self._loop.sock_sendall(self._socket, data[sent:])

    async def listen(self, rule: str) -> None:
        """Let signals that match a rule come to `on_message`."""
        await self.call(*_BUS, "AddMatch", "s", rule)

    async def own(self, name: str) -> None:
        """Be known by a name."""
        await self.call(*_BUS, "RequestName", "su", name, 0)

    def close(self) -> None:
        """Hang up; calls under way fail."""
        if self.closed.is_set():
            return
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        self.closed.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(BusError("the connection to the bus is closed"))

    def _readable(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._socket, 65536, _MAX_FDS)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, fds = b"", []
        self._fds += fds
        if not data:
            self.close()
            return
        self._data += data
        try:
            while len(self._data) >= wire.HEADER_SIZE:
                size = wire.size(bytes(self._data[: wire.HEADER_SIZE]))
                if len(self._data) < size:
                    return
                message = wire.decode(bytes(self._data[:size]))
                del self._data[:size]
                self._arrived(message)
        except (wire.WireError, UnicodeDecodeError, ValueError):
            self.close()

    def _arrived(self, message: wire.Message) -> None:
        count = message.fields.get("fds", 0)
        message.fds, self._fds = self._fds[:count], self._fds[count:]
        waiting = self._waiting.get(message.fields.get("reply_to", 0))
        if message.type in (wire.METHOD_RETURN, wire.ERROR) and waiting is not None and not waiting.done():
            waiting.set_result(message)
            return
        if message.type in (wire.SIGNAL, wire.METHOD_CALL):
            self.on_message(message)
        else:
            for fd in message.fds:  # a reply that no caller waits for any more
                with contextlib.suppress(OSError):
                    os.close(fd)


async def _expect(connection: socket.socket, beginning: bytes) -> None:
    """Read a line of the handshake."""
    line = bytearray()
    loop = asyncio.get_running_loop()
    while not line.endswith(b"\r\n"):
        byte = await loop.sock_recv(connection, 1)
        if not byte or len(line) > 4096:
            raise BusError("the bus has hung up")
        line += byte
    if not line.startswith(beginning):
        raise BusError(f"the bus says {line.decode(errors='replace').strip()!r}")
