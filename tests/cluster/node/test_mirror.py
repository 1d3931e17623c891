"""The registry of a node: what is in archives is served as a registry would, the rest is not found."""

from __future__ import annotations

import http.client
import io
import json
import select
import socket
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import tools
from pybernetes.cluster.images import oci
from pybernetes.cluster.node import mirror
from pybernetes.cri.embedded.images.hosts import hosts

IMAGE = oci.Image(names=["small:1", "small:latest", "example.com/a/b:2"], entries=[oci.file("f", b"content")])
KEY = "0123456789abcdef"


class Registry:
    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self._port = port

    def __call__(self, path: str, method: str = "GET", key: str = KEY) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        connection.request(method, path, headers={"x-pybernetes-mirror-key": key} if key else {})
        answer = connection.getresponse()
        found = (answer.status, dict(answer.headers.items()), answer.read())
        connection.close()
        return found


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = mirror.Mirror(listener, tmp_path, KEY)
        ending = threading.Event()

        def serve() -> None:
            while True:
                select.select([listener], [], [])
                if ending.is_set():
                    return
                served.serve()

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        yield Registry(tmp_path, port)
        ending.set()
        socket.create_connection(("127.0.0.1", port)).close()
        thread.join()
        tools.wait_until(lambda: served.reap() or not served._children, "no child is left")


def test_an_image_is_found_by_each_name_and_by_digest(registry: Registry) -> None:
    assert registry("/v2/")[0] == 200
    digest = oci.write(registry.folder / "small.tar", IMAGE)
    for path in (
        "/v2/library/small/manifests/1?ns=docker.io",
        "/v2/library/small/manifests/latest",
        "/v2/a/b/manifests/2?ns=example.com",
        f"/v2/library/small/manifests/{digest}?ns=docker.io",
    ):
        status, headers, body = registry(path)
        assert (status, headers["Docker-Content-Digest"], headers["Content-Type"]) == (200, digest, oci.MANIFEST)
        assert oci.digest(body) == digest
        assert registry(path, "HEAD") == (200, headers, b"")
    manifest = json.loads(body)
    for part in (manifest["config"], *manifest["layers"]):
        status, _, content = registry(f"/v2/library/small/blobs/{part['digest']}")
        assert (status, oci.digest(content), len(content)) == (200, part["digest"], part["size"])


@pytest.mark.parametrize("key", ["", "0123456789abcde", KEY.upper(), "x" * 5000])
def test_without_the_nodes_key_requests_are_refused(registry: Registry, key: str) -> None:
    """A pod on the node's network shares its loopback."""
    oci.write(registry.folder / "a.tar", IMAGE)
    for path in ("/v2/", "/v2/library/small/manifests/1", "/v2/library/none/manifests/1"):
        status, _, body = registry(path, key=key)
        assert status == 401
        assert b"small" not in body


def test_the_key_of_a_node_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    key = mirror.key_of(tmp_path)
    assert len(key) == 64
    assert mirror.key_of(tmp_path) == key
    assert (tmp_path / mirror.KEY_FILE).stat().st_mode & 0o777 == 0o600
    (tmp_path / "_default").mkdir()
    (tmp_path / "_default" / "hosts.toml").write_text(mirror.hosts(key))
    first, *_ = hosts([tmp_path], "docker.io")
    assert dict(first.headers) == {"X-Pybernetes-Mirror-Key": (key,)}


def test_an_archive_that_changes_is_read_again_and_one_that_is_none_is_passed_over(registry: Registry) -> None:
    path = "/v2/library/small/manifests/1"
    (registry.folder / "bad.tar").write_bytes(b"no archive")
    assert registry(path)[0] == 404
    first = oci.write(registry.folder / "small.tar", IMAGE)
    assert registry(path)[1]["Docker-Content-Digest"] == first
    second = oci.write(registry.folder / "small.tar", oci.Image(["small:1"], [oci.file("f", b"another, longer")]))
    assert registry(path)[1]["Docker-Content-Digest"] == second != first
    (registry.folder / "small.tar").unlink()
    assert registry(path)[0] == 404


def test_dockers_archives_get_manifests(registry: Registry) -> None:
    layer = io.BytesIO()
    oci.write_layer(layer, [oci.file("f", b"content")])
    config = json.dumps({"rootfs": {"type": "layers", "diff_ids": [oci.digest(layer.getvalue())]}}).encode()
    listed = [{"Config": "c.json", "RepoTags": ["old:1"], "Layers": ["l/layer.tar"]}]
    parts = {"c.json": config, "l/layer.tar": layer.getvalue(), "manifest.json": json.dumps(listed).encode()}
    with tarfile.open(registry.folder / "old.tar", "w") as tar:
        for name, content in parts.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    status, headers, body = registry("/v2/library/old/manifests/1")
    assert (status, headers["Docker-Content-Digest"]) == (200, oci.digest(body))
    manifest = json.loads(body)
    assert manifest["layers"][0]["mediaType"] == "application/vnd.oci.image.layer.v1.tar"
    assert registry(f"/v2/library/old/blobs/{manifest['config']['digest']}")[2] == config
    assert registry(f"/v2/library/old/blobs/{manifest['layers'][0]['digest']}")[2] == layer.getvalue()


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/v2/library/other/manifests/1", "GET", 404),
        ("/v2/library/small/manifests/9", "GET", 404),
        ("/v2/library/small/manifests/1?ns=elsewhere.example", "GET", 404),
        ("/v2/library/small/blobs/sha256:00", "GET", 404),
        ("/v2/../../etc/passwd", "GET", 404),
        ("/", "GET", 404),
        ("/v2/library/small/manifests/1", "PUT", 405),
    ],
)
def test_what_is_not_here_is_not_found(registry: Registry, path: str, method: str, status: int) -> None:
    oci.write(registry.folder / "small.tar", IMAGE)
    assert registry(path, method)[0] == status


def test_a_child_that_has_answered_is_reaped_without_a_further_request(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        served = mirror.Mirror(listener, tmp_path, KEY)
        with socket.create_connection(listener.getsockname(), timeout=30) as client:
            select.select(served.descriptors(), [], [], 30)
            served.serve()
            assert len(served.descriptors()) == 2
            client.sendall(b"GET /v2/ HTTP/1.1\r\n\r\n")
            while client.recv(4096):
                pass
        assert select.select(served.descriptors(), [], [], 30)[0] == served.descriptors()[1:]
        served.serve()
        assert served.descriptors() == [listener.fileno()]
