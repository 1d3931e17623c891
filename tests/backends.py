"""Small HTTP(S) servers that tests put where a webhook, an extender or a metrics server would be.

A `Backend` answers by one function, in threads of its own, and remembers nothing: that is the function's affair.
"""

from __future__ import annotations

import json
import ssl
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pybernetes import pki


@dataclass(frozen=True)
class Asked:
    """One request. Names of headers are in lower case; `peer` is the client's certificate as `ssl` tells it."""

    path: str
    headers: dict[str, str]
    body: bytes
    peer: dict[str, Any] | None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What is answered: bytes and text as they are, anything else as JSON."""

    content: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away while they are answered are part of many tests; anything else is reported."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Backend:
    """Serves GET and POST on a free port from the start on; close it, or use it in a `with`."""

    def __init__(
        self, answer: Callable[[Asked], Answer], tls: ssl.SSLContext | None = None, address: str = "127.0.0.1"
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                peer = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
                made = answer(Asked(self.path, headers, body, peer))
                content = made.content.encode() if isinstance(made.content, str) else made.content
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(made.status)
                own = {"Content-Type": "application/json", "Content-Length": str(len(data))}
                for name, value in {**own, **made.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self._http = _Server((address, 0), Handler)
        self.tls = tls
        if tls is not None:  # the handshake is made in the connection's thread, so that a slow one stops no other
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self.address, self.port = address, self._http.server_port
        self.origin = f"{'https' if tls else 'http'}://{address}:{self.port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def server_tls(identity: pki.Identity, clients: pki.Identity | None = None) -> ssl.SSLContext:
    """TLS of a server; with an authority for `clients` it asks for their certificates and takes none as well."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "both.pem"
        file.write_bytes(identity.certificate_pem + identity.key_pem)
        context.load_cert_chain(file)
    if clients is not None:
        context.load_verify_locations(cadata=clients.certificate_pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def kubeconfig_of(url: str, authority: Path | None = None) -> dict[str, Any]:
    """How a kubeconfig file describes a webhook that needs no credentials."""
    trust = {} if authority is None else {"certificate-authority": str(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "hook", "cluster": {"server": url, **trust}}],
        "users": [{"name": "api", "user": {}}],
        "contexts": [{"name": "hook", "context": {"cluster": "hook", "user": "api"}}],
        "current-context": "hook",
    }
