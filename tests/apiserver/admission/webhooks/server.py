"""A real webhook server: HTTPS on a free port, one function for each path, and a record of what it was asked."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pybernetes import pki

Review = dict[str, Any]
Answerer = Callable[[dict[str, Any]], "dict[str, Any] | bytes | int"]


class WebhookServer:
    """Answers reviews. What a path's function returns is the `response`, raw bytes, or a status code."""

    def __init__(self, address: str = "127.0.0.1", names: tuple[str, ...] = ("localhost",)) -> None:
        self.authority = pki.create_authority("webhook-ca")
        identity = pki.issue_server(self.authority, "webhook", [*names, address])
        self.paths: dict[str, Answerer] = {}
        self.reviews: list[tuple[str, Review]] = []
        self.released = threading.Event()
        self.client_names: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                path = self.path.partition("?")[0]
                review = json.loads(body)
                server.reviews.append((path, review["request"]))
                peer = self.connection.getpeercert()  # type: ignore[attr-defined]
                server.client_names.append(str((peer or {}).get("subject", "")))
                answer = server.paths[path](review["request"])
                if isinstance(answer, int):
                    self.send_error(answer, "no")
                    return
                if isinstance(answer, dict):
                    made = {"kind": "AdmissionReview", "apiVersion": review["apiVersion"]}
                    answer = json.dumps({**made, "response": {"uid": review["request"]["uid"], **answer}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer((address, 0), Handler)
        self.http.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "both.pem"
            file.write_bytes(identity.certificate_pem + identity.key_pem)
            context.load_cert_chain(file)
            (Path(folder) / "ca.pem").write_bytes(self.authority.certificate_pem)
            context.load_verify_locations(Path(folder) / "ca.pem")
        context.verify_mode = ssl.CERT_OPTIONAL
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        self.address, self.port = self.http.server_address[:2]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def bundle(self) -> str:
        return base64.b64encode(self.authority.certificate_pem).decode()

    def url(self, path: str) -> str:
        return f"https://{self.address}:{self.port}{path}"

    def asked(self, path: str) -> list[Review]:
        return [review for called, review in self.reviews if called == path]

    def close(self) -> None:
        self.released.set()
        self.http.shutdown()
        self.http.server_close()


def allow(_: Review) -> dict[str, Any]:
    return {"allowed": True}


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """An answer with a patch."""
    encoded = base64.b64encode(json.dumps(list(operations)).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def hanging(server: WebhookServer) -> Answerer:
    """Never answers, until the server is closed."""

    def hang(_: Review) -> dict[str, Any]:
        server.released.wait(60)
        return {"allowed": True}

    return hang


def slow(seconds: float) -> Answerer:
    def wait(_: Review) -> dict[str, Any]:
        time.sleep(seconds)
        return {"allowed": True}

    return wait
