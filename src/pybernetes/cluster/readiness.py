"""Asks an API server whether it is ready, as its administrator, over its own TLS.

A bare socket instead of an HTTP client: it is asked every few milliseconds while the server starts, on the same cores.
"""

from __future__ import annotations

import socket
import ssl
from pathlib import Path


class Probe:
    """`GET /readyz`; calling it answers whether the server said 200, else `trouble` says why not."""

    def __init__(self, host: str, port: int, pki: Path, timeout: float = 2.0) -> None:
        self.host = host
        self.port = port
        self.pki = pki
        self.timeout = timeout
        self.trouble = ""
        self._context: ssl.SSLContext | None = None

    def __call__(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), self.timeout) as plain:
                if self._context is None:
                    self._context = context(self.pki)
                with self._context.wrap_socket(plain, server_hostname=self.host) as connection:
                    connection.sendall(
                        f"GET /readyz HTTP/1.1\r\nHost: {self.host}\r\nConnection: close\r\n\r\n".encode()
                    )
                    status = _status_line(connection)
        except OSError as error:  # Also ssl.SSLError: another server at the port is not ours.
            self.trouble = str(error)
            return False
        self.trouble = f"/readyz answered {status!r}"
        return status.split(" ")[1:2] == ["200"]


def _status_line(connection: ssl.SSLSocket) -> str:
    head = b""
    while b"\r\n" not in head and len(head) < 4096:
        chunk = connection.recv(4096)
        if not chunk:
            break
        head += chunk
    return head.split(b"\r\n", 1)[0].decode("latin-1")


def context(pki: Path) -> ssl.SSLContext:
    """TLS as the administrator, trusting only the authority of the cluster."""
    made = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    made.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return made
