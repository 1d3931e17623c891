"""A local HTTP handler that adds the user's credentials to requests and passes them on to the API server.

`kubectl proxy` and the console serve with it. An upgrade (exec, port-forward, a watch in a WebSocket) becomes two
copied byte streams; anything else is passed on piece by piece.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler

from pybernetes.kubectl.errors import ConnectionFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.client import Client
    from pybernetes.kubectl.transport import Transport

_HOP = ("connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "proxy-connection")


class ForwardingHandler(BaseHTTPRequestHandler):
    """One connection of a local client; a subclass says which requests it serves."""

    protocol_version = "HTTP/1.1"
    client: Client
    keepalive: float = 0.0
    append_server_path = False
    dropped_headers: tuple[str, ...] = ()
    """Further request headers, in lower case, that stay here."""

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def forward(self, path: str) -> None:
        upgrade = "upgrade" in self.headers.get("Connection", "").lower()
        dropped = ("host", "content-length", "authorization", *self.dropped_headers, *(() if upgrade else _HOP))
        sent = [(name, value) for name, value in self.headers.items() if name.lower() not in dropped]
        sent += [pair for pair in self.client.headers() if pair[0] != "User-Agent"]
        sent += self.more_headers()
        transport = self.client.transport.clone()
        transport.keepalive = self.keepalive
        if not self.append_server_path:
            transport.prefix = ""
        try:
            if upgrade:
                self.upgrade(transport, path, sent)
            else:
                self.pass_on(transport, path, sent)
        except ConnectionFailed as error:
            self.answer(502, error.message.encode())
        finally:
            transport.close()

    def more_headers(self) -> list[tuple[str, str]]:
        """Headers of a subclass's own for the request that is passed on."""
        return []

    def length(self) -> int:
        """The length of the request's body; -1 if it is malformed."""
        given = self.headers.get("Content-Length") or "0"
        return int(given) if given.isascii() and given.isdigit() and len(given) < 19 else -1

    def pass_on(self, transport: Transport, path: str, sent: list[tuple[str, str]]) -> None:
        length = self.length()
        if length < 0:
            self.close_connection = True
            self.answer(400, b"malformed Content-Length")
            return
        body = self.rfile.read(length) if length else None
        self.relay(transport.request(self.command, path, sent, body))

    def relay(self, response: Any) -> None:
        self.send_response_only(response.status, response.reason)
        for name, value in response.headers:
            if name.lower() not in (*_HOP, "content-length"):
                self.send_header(name, value)
        bare = self.command == "HEAD" or response.status in (204, 304)
        if not bare:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if bare:
            return
        try:
            for piece in response.stream.body(response):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except (EOFError, OSError, ValueError):
            self.close_connection = True

    def upgrade(self, transport: Transport, path: str, sent: list[tuple[str, str]]) -> None:
        response, stream = transport.upgrade(self.command, path, sent)
        self.close_connection = True
        if response.status != 101:
            self.relay(response)
            stream.sock.close()
            return
        self.send_response_only(101, response.reason)
        for name, value in response.headers:
            self.send_header(name, value)
        self.end_headers()
        outward = threading.Thread(target=self.copy_outward, args=(stream,), daemon=True)
        outward.start()
        try:
            while piece := stream.receive():
                self.wfile.write(piece)
                self.wfile.flush()
        except OSError:
            pass
        self.connection.close()
        stream.sock.close()

    def copy_outward(self, stream: Any) -> None:
        try:
            while piece := self.rfile.read1(65536):
                stream.send(piece)
        except (OSError, ValueError):
            pass

    def answer(self, code: int, body: bytes, kind: str = "text/plain; charset=utf-8", location: str = "") -> None:
        self.send_response_only(code)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
