"""`kubectl proxy`: a local HTTP server that adds the user's credentials and passes requests on to the API server."""

from __future__ import annotations

import os
import re
import sys

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, ConnectionFailed
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_HOP = ("connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "proxy-connection")


def run(context: Context, arguments: list[str]) -> int | None:
    """`proxy`."""
    import socketserver

    flags = context.flags
    if arguments:
        raise CLIError(f"unexpected arguments: [{' '.join(arguments)}]\nSee '{context.path} -h' for help and examples")
    if flags.changed("port") and flags.text("unix-socket"):
        raise CLIError("cannot set --unix-socket and --port at the same time")
    if flags.text("www") and not os.path.isdir(flags.text("www")):
        context.err(f"Warning: Failed to stat static file directory {flags.text('www')}\n")
    handler = _handler(context)
    context.client.headers()
    try:
        if flags.text("unix-socket"):

            class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
                daemon_threads = True

            server: Any = UnixServer(flags.text("unix-socket"), handler)
            shown = flags.text("unix-socket")
        else:

            class TCPServer(socketserver.ThreadingTCPServer):
                daemon_threads = True
                allow_reuse_address = True

            server = TCPServer((flags.text("address"), flags.number("port")), handler)
            shown = "{}:{}".format(*server.server_address[:2])
    except OSError as error:
        where = f"{flags.text('address')}:{flags.number('port')}"
        raise CLIError(f"listen tcp {where}: bind: {(error.strerror or str(error)).lower()}") from None
    context.out(f"Starting to serve on {shown}\n")
    sys.stdout.flush()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        if flags.text("unix-socket") and os.path.exists(flags.text("unix-socket")):
            os.unlink(flags.text("unix-socket"))
    return None


def _patterns(text: str) -> list[re.Pattern[str]]:
    return [re.compile(each) for each in text.split(",") if each]


def _handler(context: Context) -> Any:
    from http.server import BaseHTTPRequestHandler

    flags = context.flags
    accept, reject = _patterns(flags.text("accept-paths")), _patterns(flags.text("reject-paths"))
    hosts, methods = _patterns(flags.text("accept-hosts")), _patterns(flags.text("reject-methods"))
    prefix = flags.text("api-prefix").rstrip("/")
    if not prefix.startswith("/"):
        prefix = f"/{prefix}" if prefix else ""

    class Handler(BaseHTTPRequestHandler):
        """One connection of a local client."""

        protocol_version = "HTTP/1.1"

        def address_string(self) -> str:
            return "unix"

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def _allowed(self) -> bool:
            if flags.on("disable-filter"):
                return True
            host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
            path = self.path.partition("?")[0]
            return (
                any(each.search(host) for each in hosts)
                and any(each.search(path) for each in accept)
                and not any(each.search(path) for each in reject)
                and not any(each.search(self.command) for each in methods)
            )

        def _serve(self) -> None:
            if not self._allowed():
                self._answer(403, b"<h3>Unauthorized</h3>")
                return
            www = flags.text("www")
            if www and self.path.startswith(flags.text("www-prefix")):
                self._static(www)
                return
            path = self.path
            if prefix and path.startswith(prefix):
                path = path[len(prefix) :] or "/"
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            sent = [
                (name, value)
                for name, value in self.headers.items()
                if name.lower() not in (*_HOP, "host", "content-length", "authorization")
            ]
            sent += [pair for pair in context.client.headers() if pair[0] != "User-Agent"]
            transport = context.client.transport.clone()
            try:
                response = transport.request(self.command, path, sent, body)
            except ConnectionFailed as error:
                self._answer(502, error.message.encode())
                return
            self.send_response_only(response.status, response.reason)
            for name, value in response.headers:
                if name.lower() not in (*_HOP, "content-length"):
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                if self.command != "HEAD":
                    for piece in response._stream.body(response):
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                        self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")
            except (EOFError, OSError):
                self.close_connection = True
            transport.close()

        def _static(self, root: str) -> None:
            from mimetypes import guess_type

            name = self.path.partition("?")[0][len(flags.text("www-prefix")) :].lstrip("/")
            path = os.path.realpath(os.path.join(root, name))
            if os.path.isdir(path):
                path = os.path.join(path, "index.html")
            if not path.startswith(os.path.realpath(root) + os.sep) or not os.path.isfile(path):
                self._answer(404, b"404 page not found\n")
                return
            with open(path, "rb") as file:
                self._answer(200, file.read(), guess_type(path)[0] or "application/octet-stream")

        def _answer(self, code: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
            self.send_response_only(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve

    return Handler


COMMAND = Command(
    "proxy [--port=PORT] [--www=static-dir] [--www-prefix=prefix] [--api-prefix=prefix]",
    "Run a proxy to the Kubernetes API server",
    run,
    flags=(
        Flag("accept-hosts", default=r"^localhost$,^127\.0\.0\.1$,^\[::1\]$", help="Hosts that are served."),
        Flag("accept-paths", default="^.*", help="Paths that are served."),
        Flag("address", default="127.0.0.1", help="Address to listen on."),
        Flag("api-prefix", default="/", help="Prefix of the API's paths."),
        Flag("append-server-path", "bool", help="Put the server's path before each path."),
        Flag("disable-filter", "bool", help="Serve everything. Insecure."),
        Flag("keepalive", "duration", help="Period of TCP keepalives."),
        Flag("port", "int", 8001, "Port to listen on; 0 takes any.", short="p"),
        Flag("reject-methods", default="^$", help="Methods that are refused."),
        Flag("reject-paths", default="^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach", help="Paths that are refused."),
        Flag("unix-socket", short="u", help="Socket file to listen on."),
        Flag("www", short="w", help="Folder with static files."),
        Flag("www-prefix", default="/static/", short="P", help="Prefix of static files."),
    ),
)
