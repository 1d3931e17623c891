"""A connection to a Redis server: the RESP protocol over a socket, one request at a time."""

from __future__ import annotations

import socket
import ssl
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pybernetes.objectfs.errors import ObjectFSError

TIMEOUT_SECONDS = 10.0


class RedisError(Exception):
    """The server refused a request; the text is the server's."""


class Address(NamedTuple):
    """`redis://[USER[:PASSWORD]@]HOST[:PORT][/NUMBER]`; `rediss` is with TLS."""

    host: str
    port: int
    database: int
    user: str
    password: str
    secure: bool

    @classmethod
    def parse(cls, url: str) -> Address:
        try:
            parts = urlsplit(url)
            port = parts.port or 6379
            number = int(parts.path.strip("/") or "0")
        except ValueError:
            raise ObjectFSError("metadata address: redis://[USER:PASSWORD@]HOST[:PORT][/NUMBER] is wanted") from None
        if not parts.hostname:
            raise ObjectFSError("metadata address: redis:// names no host")
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        return cls(parts.hostname, port, number, user, password, parts.scheme == "rediss")


class RedisConnection:
    """Raises OSError when the connection is lost."""

    def __init__(self, address: Address) -> None:
        plain = socket.create_connection((address.host, address.port), TIMEOUT_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = (
            ssl.create_default_context().wrap_socket(plain, server_hostname=address.host) if address.secure else plain
        )
        self._file = self._socket.makefile("rb")
        try:
            if address.password:
                self.call("AUTH", *([address.user] if address.user else []), address.password)
            if address.database:
                self.call("SELECT", address.database)
        except RedisError:
            self.close()
            raise

    def call(self, *words: bytes | str | int) -> Any:
        """Sends a command and returns its answer: bytes, int, list or None."""
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
        self._socket.sendall(b"".join(parts))
        return self._answer()

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _answer(self) -> Any:
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            length = int(rest)
            if length < 0:
                return None
            data = self._file.read(length + 2)
            if len(data) != length + 2:
                raise ConnectionError("the server closed the connection")
            return data[:-2]
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        if kind == b"*":
            return None if rest == b"-1" else [self._answer() for _ in range(int(rest))]
        if kind == b"-":
            raise RedisError(rest.decode(errors="replace"))
        raise ConnectionError(f"unexpected answer {line[:40]!r}")
