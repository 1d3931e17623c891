"""Registries for tests: Debian's docker-registry with a password, and one of Python that misbehaves as configured."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import tools
from pybernetes.cluster.images import oci
from tools import free_port

USER, PASSWORD = "alice", "s3cret"


@contextmanager
def docker_registry(folder: Path, enter: Callable[[list[str]], list[str]] = list) -> Iterator[str]:
    """Debian's, which needs a password; its host. `enter` makes a command run in another machine."""
    host = f"127.0.0.1:{free_port()}"
    folder.mkdir(parents=True, exist_ok=True)
    words = ["htpasswd", "-Bbn", USER, PASSWORD]
    (folder / "htpasswd").write_bytes(subprocess.run(words, check=True, capture_output=True).stdout)
    settings = {
        "version": "0.1",
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": host},
        "auth": {"htpasswd": {"realm": "lab", "path": str(folder / "htpasswd")}},
    }
    (folder / "config.yml").write_text(json.dumps(settings))
    with (folder / "log").open("wb") as log:
        command = enter(["docker-registry", "serve", str(folder / "config.yml")])
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        tools.wait_until(lambda: _listens(host, enter), f"the registry ({folder}/log)")
        yield host
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def missing() -> list[str]:
    """Programs that the registry needs and that are not here."""
    return [each for each in ("docker-registry", "htpasswd", "skopeo") if shutil.which(each) is None]


def push(
    folder: Path,
    host: str,
    name: str,
    entries: list[oci.Entry],
    enter: Callable[[list[str]], list[str]] = list,
    **image: Any,
) -> None:
    """Makes an image and pushes it."""
    oci.write(folder / "push.tar", oci.Image(names=[f"x/{name}"], entries=entries, **image))
    command = ["skopeo", "copy", "--insecure-policy", "--dest-tls-verify=false", f"--dest-creds={USER}:{PASSWORD}"]
    done = subprocess.run(
        enter([*command, f"oci-archive:{folder}/push.tar", f"docker://{host}/{name}"]),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def _listens(host: str, enter: Callable[[list[str]], list[str]]) -> bool:
    address, _, port = host.partition(":")
    probe = f"import socket, sys; sys.exit(socket.socket().connect_ex(({address!r}, {port})))"
    return subprocess.run(enter([sys.executable, "-c", probe]), check=False).returncode == 0


def digest(body: bytes) -> str:
    return "sha256:" + hashlib.sha256(body).hexdigest()


def layer(**files: str) -> bytes:
    """A plain tar of files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content.encode())
            tar.addfile(info, io.BytesIO(content.encode()))
    return out.getvalue()


class FakeRegistry:
    """Blobs and manifests in dictionaries; `before` may answer a request itself (True) to misbehave."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, tuple[str, bytes]] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.before: Callable[[Any], bool] = lambda handler: False
        self.host = ""

    def add(self, tag: str, *layers: bytes, config: dict[str, Any] | None = None) -> str:
        """An image; the manifest's digest."""
        diffs = [digest(each) for each in layers]
        body = json.dumps(
            {"architecture": "amd64", "os": "linux", "config": config or {}, "rootfs": {"diff_ids": diffs}}
        )
        packed = [gzip.compress(each, mtime=0) for each in layers]
        manifest = {
            "schemaVersion": 2,
            "mediaType": oci.MANIFEST,
            "config": self.blob(oci.CONFIG, body.encode()),
            "layers": [self.blob(oci.LAYER, each) for each in packed],
        }
        return self.manifest(tag, oci.MANIFEST, manifest)

    def blob(self, kind: str, body: bytes) -> dict[str, Any]:
        """Its descriptor."""
        self.blobs[digest(body)] = body
        return {"mediaType": kind, "digest": digest(body), "size": len(body)}

    def manifest(self, tag: str, kind: str, content: Any) -> str:
        """Puts a manifest or an index at a tag; its digest."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.manifests[tag] = self.manifests[digest(body)] = (kind, body)
        return digest(body)

    def asked(self, word: str) -> list[tuple[str, str, dict[str, str]]]:
        """The requests whose path has a word."""
        return [each for each in self.requests if word in each[1]]

    @contextmanager
    def serving(self, tls: ssl.SSLContext | None = None) -> Iterator[FakeRegistry]:
        """Serves on loopback."""
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry._answer(self)

            do_HEAD = do_POST = do_GET

            def log_message(self, *words: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 128  # else many at once wait for a second

        server = Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self.host = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()

    def _answer(self, handler: Any) -> None:
        self.requests.append((handler.command, handler.path, dict(handler.headers.items())))
        if self.before(handler):
            return
        what, _, which = handler.path.partition("?")[0].rpartition("/")
        if what.endswith("/manifests") and which in self.manifests:
            kind, body = self.manifests[which]
            send(handler, 200, body, {"Content-Type": kind, "Docker-Content-Digest": digest(body)})
        elif what.endswith("/blobs") and which in self.blobs:
            body, headers, code = self.blobs[which], {}, 200
            if wanted := handler.headers.get("Range"):
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                headers, code = {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}, 206
                body = body[start:]
            send(handler, code, body, headers)
        else:
            send(handler, 404, b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')


def send(handler: Any, code: int, body: bytes = b"", headers: dict[str, str] | None = None, cut: int = 0) -> None:
    """Answers; with `cut`, breaks off after so many bytes."""
    handler.send_response(code)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body[:cut] if cut else body)
    if cut:
        handler.close_connection = True


def basic(user: str = USER, password: str = PASSWORD) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
