"""Asks the API server as its administrator: the few requests that `up` makes itself, over one connection.

A bare socket for the reason `readiness` has one: an HTTP library takes longer to import than all of this takes.
"""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path

from pybernetes.cluster.readiness import context


class Admin:
    """Requests to one API server; a connection that broke is made anew by the next request."""

    def __init__(self, host: str, port: int, pki: Path, timeout: float = 10.0) -> None:
        self.host = host
        self.port = port
        self.pki = pki
        self.timeout = timeout
        self._context: ssl.SSLContext | None = None
        self._connection: ssl.SSLSocket | None = None

    def request(
        self, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> tuple[int, dict[str, object]]:
        """The status code and the object answered. OSError if the server cannot be reached."""
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAccept: application/json\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        try:
            connection = self._connect()
            connection.sendall(head.encode() + content)
            return _answer(connection)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> ssl.SSLSocket:
        if self._connection is None:
            if self._context is None:
                self._context = context(self.pki)
            plain = socket.create_connection((self.host, self.port), self.timeout)
            try:
                self._connection = self._context.wrap_socket(plain, server_hostname=self.host)
            except BaseException:
                plain.close()
                raise
        return self._connection


def node_condition(node: dict[str, object]) -> dict[str, object]:
    """The condition Ready of a Node, empty if it has none."""
    status = node.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return next((each for each in conditions or () if each.get("type") == "Ready"), {})


def node_ready(node: dict[str, object]) -> bool:
    """Whether a Node says that it is ready."""
    return node_condition(node).get("status") == "True"


def _answer(connection: ssl.SSLSocket) -> tuple[int, dict[str, object]]:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _receive(connection)
    head, _, content = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "content-length" not in headers:
        raise ConnectionError(f"the answer has no length: {first}")
    while len(content) < int(headers["content-length"]):
        content += _receive(connection)
    loaded = json.loads(content) if content else {}
    return int(first.split(" ")[1]), loaded if isinstance(loaded, dict) else {}


def _receive(connection: ssl.SSLSocket) -> bytes:
    chunk = connection.recv(65536)
    if not chunk:
        raise ConnectionError("the server ended the connection")
    return chunk
