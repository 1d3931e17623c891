"""The HTTP handler of `kubectl proxy`: which requests it takes, static files, and passing requests on to the server.

An upgrade (exec, port-forward) becomes two copied byte streams; anything else is passed on piece by piece.
"""

from __future__ import annotations

import os
import re
import threading
from http.server import BaseHTTPRequestHandler

from pybernetes.kubectl.errors import CLIError, ConnectionFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.flags import Flags
    from pybernetes.kubectl.transport import Transport

_HOP = ("connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "proxy-connection")


class Filter:
    """Which requests are served."""

    def __init__(self, flags: Flags) -> None:
        self._off = flags.on("disable-filter")
        self._accept = _patterns(flags, "accept-paths")
        self._reject = _patterns(flags, "reject-paths")
        self._hosts = _patterns(flags, "accept-hosts")
        self._methods = _patterns(flags, "reject-methods")

    def allows(self, method: str, path: str, host: str) -> bool:
        """Whether a request is served; the host may have a port."""
        if self._off:
            return True
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return (
            any(each.search(name) for each in self._hosts)
            and any(each.search(path) for each in self._accept)
            and not any(each.search(path) for each in self._reject)
            and not any(each.search(method) for each in self._methods)
        )


def _patterns(flags: Flags, name: str) -> list[re.Pattern[str]]:
    try:
        return [re.compile(each) for each in flags.text(name).split(",") if each]
    except re.error as error:
        raise CLIError(f"error parsing regexp of --{name}: {error}") from None


def handler(context: Context) -> type[BaseHTTPRequestHandler]:
    """The handler for the flags of the command. Raises CLIError."""
    flags = context.flags
    allowed = Filter(flags)
    prefix = f"/{flags.text('api-prefix').strip('/')}".rstrip("/")
    www, www_prefix = flags.text("www"), f"/{flags.text('www-prefix').strip('/')}/".replace("//", "/")
    append, keepalive = flags.on("append-server-path"), flags["keepalive"]

    class Handler(BaseHTTPRequestHandler):
        """One connection of a local client."""

        protocol_version = "HTTP/1.1"

        def address_string(self) -> str:
            return "unix"

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def serve(self) -> None:
            path = self.path.partition("?")[0]
            if not allowed.allows(self.command, path, self.headers.get("Host", "")):
                self.answer(403, b"<h3>Unauthorized</h3>")
            elif www and path.startswith(www_prefix):
                self.static(www, path[len(www_prefix) :])
            elif prefix and path != prefix and not path.startswith(f"{prefix}/"):
                self.answer(404, b"404 page not found\n")
            else:
                self.forward(self.path[len(prefix) :] or "/")

        def forward(self, path: str) -> None:
            upgrade = "upgrade" in self.headers.get("Connection", "").lower()
            dropped = ("host", "content-length", "authorization", *(() if upgrade else _HOP))
            sent = [(name, value) for name, value in self.headers.items() if name.lower() not in dropped]
            sent += [pair for pair in context.client.headers() if pair[0] != "User-Agent"]
            transport = context.client.transport.clone()
            transport.keepalive = keepalive
            if not append:
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

        def pass_on(self, transport: Transport, path: str, sent: list[tuple[str, str]]) -> None:
            length = int(self.headers.get("Content-Length") or 0)
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

        def static(self, root: str, name: str) -> None:
            from urllib.parse import unquote

            path = os.path.realpath(os.path.join(root, unquote(name)))
            top = os.path.realpath(root)
            if path != top and not path.startswith(top.rstrip(os.sep) + os.sep):
                self.answer(404, b"404 page not found\n")
                return
            try:
                if os.path.isdir(path):
                    if name and not name.endswith("/"):
                        self.answer(301, b"", location=f"{os.path.basename(path)}/")
                        return
                    index = os.path.join(path, "index.html")
                    if not os.path.isfile(index):
                        self.answer(200, _listing(path), "text/html; charset=utf-8")
                        return
                    path = index
                with open(path, "rb") as file:
                    from mimetypes import guess_type

                    self.answer(200, file.read(), guess_type(path)[0] or "application/octet-stream")
            except OSError:
                self.answer(404, b"404 page not found\n")

        def answer(self, code: int, body: bytes, kind: str = "text/plain; charset=utf-8", location: str = "") -> None:
            self.send_response_only(code)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = serve

    return Handler


def _listing(path: str) -> bytes:
    from html import escape
    from urllib.parse import quote

    names = sorted(f"{name}/" if os.path.isdir(os.path.join(path, name)) else name for name in os.listdir(path))
    lines = "".join(f'<a href="{quote(name)}">{escape(name)}</a>\n' for name in names)
    return f'<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n{lines}</pre>\n'.encode()
