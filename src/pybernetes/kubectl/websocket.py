"""WebSocket on the client's connection: the streams of exec, attach and port-forward (v5.channel.k8s.io and v4)."""

from __future__ import annotations

import os
import struct

from pybernetes.kubectl.errors import CLIError, ConnectionFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.client import Client

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255


class WebSocket:
    """One upgraded connection; messages are bytes whose first one names the channel."""

    def __init__(self, client: Client, path: str, parameters: dict[str, Any], protocols: str) -> None:
        from binascii import b2a_base64

        from pybernetes.kubectl.client import query

        headers = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", b2a_base64(os.urandom(16), newline=False).decode()),
            ("Sec-WebSocket-Protocol", protocols),
            *client.headers(),
        ]
        target = path + query(parameters)
        client.log.request("GET", client.config.server + target, headers, None)
        transport = client.transport.clone()
        response, self._stream = transport.upgrade("GET", target, [*headers, *client.unlogged])
        if response.status != 101:
            raise client.status_error(response, "GET")
        self.protocol = response.header("sec-websocket-protocol")
        self._buffer = b""
        self._stream.sock.settimeout(None)

    def fileno(self) -> int:
        """For select()."""
        return self._stream.sock.fileno()

    def pending(self) -> bool:
        """Whether a message may be waiting although the socket is silent."""
        tls = self._stream.tls
        return bool(self._buffer or self._stream.buffer) or (tls is not None and tls.pending() > 0)

    def send(self, channel: int, payload: bytes) -> None:
        """Sends one message to a channel."""
        self._frame(2, bytes([channel]) + payload)

    def close(self) -> None:
        """Says goodbye and closes the connection."""
        try:
            self._frame(8, struct.pack(">H", 1000))
        except OSError:
            pass
        self._stream.sock.close()

    def _frame(self, opcode: int, payload: bytes) -> None:
        size = len(payload)
        head = bytes([0x80 | opcode])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 65536:
            head += bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", size)
        mask = os.urandom(4)
        number = int.from_bytes(payload, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        self._stream.send(head + mask + number.to_bytes(size, "big"))

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            piece = self._stream.receive()
            if not piece:
                raise EOFError
            self._buffer += piece
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found

    def receive(self) -> tuple[int, bytes] | None:
        """The next message as channel and payload; None when the other side is done."""
        message = b""
        while True:
            try:
                first, second = self._take(2)
                size = second & 0x7F
                if size == 126:
                    size = struct.unpack(">H", self._take(2))[0]
                elif size == 127:
                    size = struct.unpack(">Q", self._take(8))[0]
                payload = self._take(size)
            except (EOFError, ConnectionError):
                return None
            opcode = first & 0x0F
            if opcode == 8:
                return None
            if opcode == 9:
                self._frame(10, payload)
                continue
            if opcode == 10:
                continue
            message += payload
            if first & 0x80:
                if not message:
                    message = b""
                    continue
                return message[0], message[1:]


def exec_status(payload: bytes) -> None:
    """Raises what the error channel of exec or attach says; success returns."""
    from pybernetes.kubectl.data import loads
    from pybernetes.kubectl.errors import Exit

    try:
        status = loads(payload)
    except ValueError:
        raise CLIError(payload.decode("utf-8", "replace")) from None
    if status.get("status") == "Success":
        return
    if status.get("reason") == "NonZeroExitCode":
        for cause in (status.get("details") or {}).get("causes") or ():
            if cause.get("reason") == "ExitCode":
                code = int(cause.get("message") or 1)
                raise Exit(code, f"command terminated with exit code {code}")
    raise CLIError(str(status.get("message") or "unknown error"))


__all__ = ["CLOSE", "ERROR", "RESIZE", "STDERR", "STDIN", "STDOUT", "ConnectionFailed", "WebSocket", "exec_status"]
