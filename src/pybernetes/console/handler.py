"""The HTTP handler of the console: the page, the exchange of the key, and requests to the API server as the user.

Every request must name this server in its Host header (a foreign name that resolves to 127.0.0.1 is refused). The page
itself holds no data and is served to every user of the machine; all else needs the session's token, in a header that no
other origin can send, or for WebSockets in the list of subprotocols, with this server as Origin.
"""

from __future__ import annotations

import json
import time
from importlib.resources import files

from pybernetes.kubectl.forwarding_handler import ForwardingHandler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.console.sessions import Sessions
    from pybernetes.kubectl.context import Context

TOKEN_HEADER = "X-Pyb-Session"
TOKEN_PROTOCOL = "session.pyb."
"""A WebSocket cannot set headers: the token follows this prefix in a subprotocol, which is not passed on."""
MAX_BODY = 4 << 20
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self' {websocket};"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def handler(context: Context, sessions: Sessions) -> type[ForwardingHandler]:
    """The handler for one cluster and user."""

    class Handler(ForwardingHandler):
        """One connection of the browser."""

        client = context.client
        dropped_headers = (TOKEN_HEADER.lower(), "cookie", "origin", "referer", "sec-websocket-protocol")

        def serve(self) -> None:
            path = self.path.partition("?")[0]
            if self.headers.get("Host", "") not in self.own_hosts():
                self.close_connection = True
                self.refuse(403, "this server is not known by that name")
            elif (self.headers.get("Origin") or self.own_origin()) != self.own_origin():
                self.close_connection = True
                self.refuse(403, "requests of other origins are not served")
            elif self.length() < 0:
                self.close_connection = True
                self.refuse(400, "malformed Content-Length")
            elif self.length() > MAX_BODY or "Transfer-Encoding" in self.headers:
                self.close_connection = True
                self.refuse(413, f"a request has at most {MAX_BODY} bytes")
            elif path == "/session" and self.command == "POST":
                self.exchange()
            elif not path.startswith(("/api/", "/apis/", "/-/")) and path not in ("/api", "/apis", "/version"):
                self.static(path)
            elif not sessions.valid(self.token(), time.monotonic()):
                self.discard()
                self.refuse(401, "the session is over: run `pyb console` for a new one")
            elif path == "/-/metrics" and self.command == "GET":
                self.forward("/metrics")
            elif path.startswith("/-/"):
                self.answer_json(path)
            else:
                self.forward(self.path)

        def own_hosts(self) -> tuple[str, ...]:
            port = self.server.server_address[1]  # type: ignore[index]
            return (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}")

        def own_origin(self) -> str:
            return f"http://{self.headers.get('Host', '')}"

        def token(self) -> str:
            for word in self.headers.get("Sec-WebSocket-Protocol", "").split(","):
                if word.strip().startswith(TOKEN_PROTOCOL):
                    return word.strip().removeprefix(TOKEN_PROTOCOL)
            return self.headers.get(TOKEN_HEADER, "")

        def more_headers(self) -> list[tuple[str, str]]:
            """The subprotocols of a WebSocket without the token."""
            words = [each.strip() for each in self.headers.get("Sec-WebSocket-Protocol", "").split(",")]
            kept = [each for each in words if each and not each.startswith(TOKEN_PROTOCOL)]
            return [("Sec-WebSocket-Protocol", ", ".join(kept))] if kept else []

        def exchange(self) -> None:
            """POST /session with the key as body: the session's token."""
            key = self.rfile.read(self.length()).decode("utf-8", "replace")
            token = sessions.exchange(key, time.monotonic())
            if token is None:
                self.refuse(401, "the key was used before or is too old: run `pyb console` for a new one")
            else:
                self.answer(200, json.dumps({"token": token}).encode(), "application/json")

        def answer_json(self, path: str) -> None:
            from pybernetes.console import answers

            self.discard()
            code, answer = answers.answer(context, self.command, path, self.path.partition("?")[2])
            self.answer(code, json.dumps(answer).encode(), "application/json")

        def static(self, path: str) -> None:
            name = path.strip("/") or "index.html"
            self.discard()
            kind = TYPES.get(name[name.rfind(".") :])
            source = files("pybernetes.console").joinpath("static", name)
            if self.command not in ("GET", "HEAD") or kind is None or "/" in name or not source.is_file():
                self.refuse(404, f"no such page: {path}")
                return
            self.answer(200, source.read_bytes(), kind)

        def discard(self) -> None:
            """Reads the body of a request that is answered without it."""
            self.rfile.read(self.length())

        def refuse(self, code: int, message: str) -> None:
            body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
            self.answer(code, json.dumps(body).encode(), "application/json")

        def end_headers(self) -> None:
            headers = getattr(self, "headers", None)  # there are none yet when the request line is malformed
            host = headers.get("Host", "") if headers is not None else ""
            websocket = f"ws://{host}" if host in self.own_hosts() else ""
            self.send_header("Content-Security-Policy", POLICY.format(websocket=websocket))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.send_header("Cache-Control", "no-store")
            super().end_headers()

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = serve

    return Handler
