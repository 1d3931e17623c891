"""A real HTTP extender, small: answers what it is told to, and remembers what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], Any]
"""From the decoded body to what is answered; an int is a status code without a body."""


class FakeExtender:
    """Serves `POST /scheduler/<verb>`."""

    def __init__(self, verbs: dict[str, Answer], tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.peers: list[str] = []
        """Common names of the clients' certificates, in order of asking."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                verb = self.path.removeprefix("/scheduler/")
                outer.asked.append((verb, body))
                if tls is not None:
                    found = self.connection.getpeercert() or {}  # type: ignore[attr-defined]
                    names = [value for part in found.get("subject", ()) for key, value in part if key == "commonName"]
                    outer.peers += names
                answer = verbs[verb](body) if verb in verbs else 404
                status, data = (answer, b"") if isinstance(answer, int) else (200, json.dumps(answer).encode())
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        scheme = "http"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}/scheduler"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> FakeExtender:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
