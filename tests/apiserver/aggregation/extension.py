"""A small extension API server for tests: HTTPS, believes only a proxy with a certificate, serves `flunders`.

How it misbehaves is said by `mode`, or by the name of the object that is asked for. What arrived is in `requests`.
"""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pybernetes import pki

GROUP, VERSION = "wardle.example.com", "v1alpha1"
ROOT = f"/apis/{GROUP}/{VERSION}"
RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/{VERSION}",
    "resources": [
        {
            "name": "flunders",
            "singularName": "flunder",
            "namespaced": True,
            "kind": "Flunder",
            "verbs": ["create", "delete", "get", "list", "watch"],
            "shortNames": ["fl"],
        },
        {"name": "flunders/status", "singularName": "", "namespaced": True, "kind": "Flunder", "verbs": ["get"]},
    ],
}
DEFINITION = "com.example.wardle.v1alpha1.Flunder"
KIND = {"group": GROUP, "version": VERSION, "kind": "Flunder"}
SWAGGER = {
    "swagger": "2.0",
    "info": {"title": "wardle", "version": "v0"},
    "paths": {
        f"{ROOT}/namespaces/{{namespace}}/flunders": {
            "get": {
                "operationId": "listFlunder",
                "produces": ["application/json"],
                "responses": {"200": {"description": "OK", "schema": {"$ref": f"#/definitions/{DEFINITION}"}}},
                "x-kubernetes-action": "list",
                "x-kubernetes-group-version-kind": KIND,
            },
            "parameters": [{"name": "namespace", "in": "path", "required": True, "type": "string"}],
        },
        "/healthz/": {"get": {"operationId": "health", "responses": {"200": {"description": "OK"}}}},
    },
    "definitions": {
        DEFINITION: {
            "description": "A flunder.",
            "type": "object",
            "properties": {
                "metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
                "spec": {"type": "string"},
            },
            "x-kubernetes-group-version-kind": [KIND],
        },
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"description": "Another.", "type": "object"},
        "com.example.unused.Thing": {"type": "object"},
    },
}

HANGING = 8.0  # seconds

Custom = Callable[["Handler"], bool]


class Extension:
    """A running server."""

    def __init__(self, address: str, names: list[str], folder: Path, proxies: Path, port: int = 0) -> None:
        self.mode = ""
        self.requests: list[tuple[str, str, dict[str, list[str]], bytes]] = []
        self.objects: dict[str, dict[str, Any]] = {}
        self.watchers: list[queue.Queue[dict[str, Any] | None]] = []
        self.openapi: dict[str, Any] = {"/openapi/v2": SWAGGER}
        self.custom: Custom | None = None
        self._authority = pki.create_authority("extension-ca")
        identity = pki.issue_server(self._authority, "extension", [*names, address])
        folder.mkdir(parents=True, exist_ok=True)
        pem = folder / "extension.pem"
        pem.write_bytes(identity.key_pem + identity.certificate_pem)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(proxies))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(pem)
        owner = self

        class Bound(Handler):
            extension = owner

        closed = self.closed = threading.Semaphore(0)
        self.accepted = 0

        class Server(http.server.ThreadingHTTPServer):
            def shutdown_request(self, request: Any) -> None:
                super().shutdown_request(request)
                closed.release()

            daemon_threads = True

            def get_request(self) -> tuple[Any, Any]:
                connection, peer = self.socket.accept()
                owner.accepted += 1
                wrapped = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                return wrapped, peer

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._server = Server((address, port), Bound)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def bundle(self) -> str:
        """The caBundle."""
        return base64.b64encode(self._authority.certificate_pem).decode()

    def close(self) -> None:
        """Die."""
        for watcher in self.watchers:
            watcher.put(None)
        self._server.shutdown()
        self._server.server_close()

    def put(self, name: str) -> None:
        """Store an object and notify watchers."""
        obj = {"kind": "Flunder", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {"name": name}}
        self.objects[name] = obj
        for watcher in self.watchers:
            watcher.put({"type": "ADDED", "object": obj})


class Handler(http.server.BaseHTTPRequestHandler):
    extension: Extension
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, body: Any, status: int = 200, kind: str = "application/json", **headers: str) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def handle_one(self) -> None:
        extension = self.extension
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        extension.requests.append((self.command, self.path, headers, body))
        self.content = body
        path, _, query = self.path.partition("?")
        if extension.mode == "hang" or "/hang" in path:
            time.sleep(HANGING)  # not a wait: a server that hangs
        if extension.mode == "garbage" or "/garbage" in path:
            self.wfile.write(b"this is not HTTP\r\n\r\n")
            self.close_connection = True
            return
        if "/cut" in path:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nonly this")
            self.close_connection = True
            return
        if extension.mode == "error":
            return self.answer({"message": "no"}, 500)
        if extension.custom is not None and extension.custom(self):
            return None
        if extension.mode == "lie" and path in (ROOT, "/apis"):
            return self.answer({"kind": "APIResourceList", "resources": {"a": 1}})
        if path == ROOT:
            return self.answer(RESOURCES)
        if path in extension.openapi:
            return self.answer(extension.openapi[path])
        if path.startswith(ROOT) and "/flunders" in path:
            return self.flunders(path, query, body)
        return self.answer({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"}, 404)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = handle_one

    def flunders(self, path: str, query: str, body: bytes) -> None:
        extension = self.extension
        name = path.partition("/flunders")[2].strip("/")
        if self.headers.get("Upgrade"):
            self.upgrade()
        elif self.command == "POST":
            extension.put(json.loads(body)["metadata"]["name"])
            self.answer(json.loads(body), 201)
        elif "watch=true" in query:
            self.watch()
        elif name == "echo":
            headers = {key: self.headers.get_all(key) for key in {each.lower() for each in self.headers}}
            self.answer({"path": self.path, "headers": headers}, 200, Warning='299 - "be careful"', X_Own="yes")
        elif name == "elsewhere":
            self.answer({"message": "go there"}, 302, Location="https://elsewhere.example/")
        elif name == "big":
            self.answer({"items": ["x" * 100] * 20000})
        elif name:
            found = extension.objects.get(name)
            self.answer(found or {"kind": "Status", "status": "Failure", "code": 404}, 200 if found else 404)
        else:
            items = list(extension.objects.values())
            self.answer({"kind": "FlunderList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items})

    def watch(self) -> None:
        events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.extension.watchers.append(events)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while (event := events.get()) is not None:
            line = json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def upgrade(self) -> None:
        """Echoes its input in capital letters."""
        if self.headers["Upgrade"] != "shout":
            self.answer({"message": "I only shout"}, 403)
            self.close_connection = True
            return
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n")
        self.wfile.flush()
        while data := self.connection.recv(65536):
            self.connection.sendall(data.upper())
        self.close_connection = True


def own_address() -> str:
    """An address of this machine that is not of the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


@contextlib.contextmanager
def extension(folder: Path, proxies: Path, *names: str) -> Iterator[Extension]:
    """Serves on a free port until the end."""
    made = Extension(own_address(), list(names), folder, proxies)
    try:
        yield made
    finally:
        made.close()
