"""WebSocket (RFC 6455): frames without IO (`Decoder`, `frame`), the handshake, and a connection above a `Duplex`.

Both sides can be played: clients mask what they send, servers do not, and each insists that the other keeps to that.
Extensions are never agreed on.
"""

from __future__ import annotations

import base64
import enum
import hashlib
import os
import struct
from collections import deque
from collections.abc import Collection

from ..messages import Request, Response
from .duplex import Duplex

MOST = 32 << 20  # bytes of a message; golang.org/x/net/websocket's DefaultMaxPayloadBytes
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Opcode(enum.IntEnum):
    """The type of a frame."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class ProtocolError(Exception):
    """The other side violates the protocol; `code` is sent to it when the connection is closed."""

    def __init__(self, message: str, code: int = 1002) -> None:
        super().__init__(message)
        self.code = code


class HandshakeError(Exception):
    """This is no handshake that can be agreed to."""

    def __init__(self, status: int, message: str, headers: list[tuple[str, str]] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or []

    def answer(self) -> Response:
        """The response to the client: with the reason, unless it is only the protocol."""
        return Response(str(self).encode() if self.status == 400 else b"", self.status, "", self.headers)


# -- the handshake -------------------------------------------------------------------------------------------------


def is_upgrade(request: Request) -> bool:
    """Whether the client wants to leave HTTP."""
    return "upgrade" in request.headers.get("connection", "").lower()


def is_websocket(request: Request) -> bool:
    """Whether it wants to speak WebSocket."""
    return is_upgrade(request) and request.headers.get("upgrade", "").lower() == "websocket"


def protocols(request: Request) -> list[str]:
    """The protocols that a client offers to speak in WebSocket."""
    text = request.headers.get("sec-websocket-protocol", "")
    return [each for part in text.split(",") if (each := part.strip())]


def accept(request: Request, supported: Collection[str]) -> tuple[str, bytes]:
    """Agree on a protocol: its name and the 101 answer. Raises HandshakeError, as golang.org/x/net/websocket refuses.

    The empty name stands for a client that offers none.
    """
    if request.headers.get("sec-websocket-version") != "13":
        raise HandshakeError(400, "missing or bad WebSocket Version", [("Sec-WebSocket-Version", "13")])
    key = request.headers.get("sec-websocket-key", "")
    try:
        valid = len(base64.b64decode(key, validate=True)) == 16
    except ValueError:
        valid = False
    if not valid:
        raise HandshakeError(400, "mismatch challenge/response")
    offered = protocols(request) or [""]
    chosen = next((each for each in offered if each in supported), None)
    if chosen is None:
        raise HandshakeError(403, f"requested protocol(s) are not supported: {offered}; supports {sorted(supported)}")
    return chosen, answer(key, chosen)


def answer(key: str, protocol: str) -> bytes:
    """The 101 answer."""
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    lines.append(f"Sec-WebSocket-Accept: {accept_key(key)}")
    if protocol:
        lines.append(f"Sec-WebSocket-Protocol: {protocol}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def accept_key(key: str) -> str:
    """The `Sec-WebSocket-Accept` for a key."""
    return base64.b64encode(hashlib.sha1(key.encode("latin-1") + _GUID).digest()).decode()


def new_key() -> str:
    """A client's key."""
    return base64.b64encode(os.urandom(16)).decode()


# -- frames --------------------------------------------------------------------------------------------------------


def frame(opcode: Opcode, data: bytes, *, mask: bool = False) -> bytes:
    """A message in one frame."""
    length = len(data)
    bit = 0x80 if mask else 0
    if length < 126:
        head = struct.pack("!BB", 0x80 | opcode, bit | length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, bit | 126, length)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, bit | 127, length)
    if not mask:
        return head + data
    key = os.urandom(4)
    return head + key + masked(data, key)


def masked(data: bytes, key: bytes) -> bytes:
    """Masked, or the mask taken off. As two large numbers: a loop over bytes would be a hundred times slower."""
    size = len(data)
    whole = key * (size // 4 + 1)
    return (int.from_bytes(data, "big") ^ int.from_bytes(whole[:size], "big")).to_bytes(size, "big")


class Decoder:
    """Bytes in, messages out: pure. Messages in several frames are put together; control frames come between."""

    def __init__(self, *, server: bool, most: int = MOST) -> None:
        self._server = server
        self._most = most
        self._buffer = bytearray()
        self._opcode: Opcode | None = None  # of the message of which more is to come
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[tuple[Opcode, bytes]]:
        """The messages that are complete now. Raises ProtocolError."""
        self._buffer += data
        found = []
        while (message := self._next()) is not None:
            if message[0] is not Opcode.CONTINUATION:
                found.append(message)
        return found

    def _next(self) -> tuple[Opcode, bytes] | None:
        """The next message; CONTINUATION = a part of one that is not complete."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        final, opcode = buffer[0] & 0x80, self._opcode_of(buffer[0])
        with_mask, length, start = buffer[1] & 0x80, buffer[1] & 0x7F, 2
        if bool(with_mask) != self._server:
            raise ProtocolError("clients mask what they send, and servers do not")
        if opcode >= Opcode.CLOSE and (not final or length > 125):
            raise ProtocolError("control frames are short and whole")
        if length > 125:
            start = 4 if length == 126 else 10
            if len(buffer) < start:
                return None
            length = int.from_bytes(buffer[2:start], "big")
        if (length if opcode >= Opcode.CLOSE else length + self._size) > self._most:
            raise ProtocolError("the message is too large", 1009)
        body = start + (4 if with_mask else 0)
        if len(buffer) < body + length:
            return None
        data = bytes(buffer[body : body + length])
        if with_mask:
            data = masked(data, bytes(buffer[start:body]))
        del buffer[: body + length]
        return self._message(opcode, data, bool(final))

    def _opcode_of(self, byte: int) -> Opcode:
        if byte & 0x70:
            raise ProtocolError("reserved bits are set")
        try:
            return Opcode(byte & 0x0F)
        except ValueError:
            raise ProtocolError(f"unknown opcode {byte & 0x0F}") from None

    def _message(self, opcode: Opcode, data: bytes, final: bool) -> tuple[Opcode, bytes]:
        if opcode >= Opcode.CLOSE:
            return opcode, data
        if (opcode is Opcode.CONTINUATION) != (self._opcode is not None):
            raise ProtocolError("a message begins before another has ended, or goes on without a beginning")
        begun = self._opcode or opcode
        if final and not self._parts:
            self._opcode = None
            return begun, data
        self._parts.append(data)
        self._size += len(data)
        if not final:
            self._opcode = begun
            return Opcode.CONTINUATION, b""
        whole = b"".join(self._parts)
        self._opcode, self._parts, self._size = None, [], 0
        return begun, whole


# -- a connection --------------------------------------------------------------------------------------------------


class WebSocket:
    """Messages both ways; pings are answered, and a close is."""

    def __init__(self, duplex: Duplex, *, server: bool = True) -> None:
        self._duplex = duplex
        self._mask = not server
        self._decoder = Decoder(server=server)
        self._messages: deque[tuple[Opcode, bytes]] = deque()
        self._closed = False

    async def receive(self) -> tuple[Opcode, bytes] | None:
        """The next text or binary message; None when the other side has ended. Raises ProtocolError, having closed."""
        while True:
            while self._messages:
                opcode, data = self._messages.popleft()
                if opcode is Opcode.PING:
                    self._send(Opcode.PONG, data)
                elif opcode is Opcode.CLOSE:
                    self._end(data)
                    return None
                elif opcode is not Opcode.PONG:
                    return opcode, data
            arrived = await self._duplex.read()
            if not arrived:
                return None
            try:
                self._messages.extend(self._decoder.feed(arrived))
            except ProtocolError as error:
                self._end(struct.pack("!H", error.code))
                raise

    def send(self, data: bytes, *, text: bool = False) -> None:
        """Send a message; does not wait."""
        self._send(Opcode.TEXT if text else Opcode.BINARY, data)

    def ping(self, data: bytes = b"") -> None:
        """Ask the other side whether it is there."""
        self._send(Opcode.PING, data)

    async def drain(self) -> None:
        """Wait until most of it is taken."""
        await self._duplex.drain()

    async def flush(self) -> None:
        """Wait until all of it has arrived."""
        await self._duplex.flush()

    def close(self, code: int = 1000) -> None:
        """Say goodbye and end."""
        self._end(struct.pack("!H", code))

    def _end(self, reason: bytes) -> None:
        if not self._closed:
            self._send(Opcode.CLOSE, reason)
            self._closed = True
        self._duplex.close()

    def _send(self, opcode: Opcode, data: bytes) -> None:
        if not self._closed:
            self._duplex.write(frame(opcode, data, mask=self._mask))
