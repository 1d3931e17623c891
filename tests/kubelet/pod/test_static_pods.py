"""Static pods from a folder and a URL."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from damage import damage

from pybernetes.api.core.v1 import Pod
from pybernetes.client.clock import SystemClock
from pybernetes.kubelet.sources import following
from pybernetes.kubelet.sources.following import FolderSource, StaticPods, URLSource
from pybernetes.kubelet.sources.invalid import InvalidManifest
from pybernetes.kubelet.sources.static import pods_from

MANIFEST = b"""
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {a: b}}
spec: {containers: [{name: c, image: nginx}]}
"""


def read(data: bytes, source: str = "/etc/x.yaml", *, file: bool = True) -> list[Pod]:
    return pods_from(data, source, "node-1", "2026-01-01T00:00:00Z", file=file)


def test_a_static_pod_has_the_nodes_name_in_its_own() -> None:
    (pod,) = read(MANIFEST)
    assert pod.metadata is not None
    assert pod.spec is not None
    assert (pod.metadata.name, pod.metadata.namespace) == ("web-node-1", "default")
    assert pod.spec.node_name == "node-1"
    assert pod.spec.restart_policy == "Always"  # defaults are there
    notes = pod.metadata.annotations or {}
    assert notes["kubernetes.io/config.source"] == "file"
    assert notes["kubernetes.io/config.hash"] == pod.metadata.uid
    assert [(each.operator, each.effect) for each in pod.spec.tolerations or ()] == [("Exists", "NoExecute")]
    (from_url,) = read(MANIFEST, "http://x", file=False)
    assert from_url.metadata is not None
    assert (from_url.metadata.annotations or {})["kubernetes.io/config.source"] == "http"


def test_the_uid_is_that_of_content_and_place() -> None:
    uids = {
        each.metadata.uid  # type: ignore[union-attr]
        for each in (
            *read(MANIFEST),
            *read(MANIFEST),
            *read(MANIFEST, "/etc/y.yaml"),
            *read(MANIFEST.replace(b"nginx", b"nginx:2")),
        )
    }
    assert len(uids) == 3


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "couldn't parse as pod"),
        (b"kind: Service\napiVersion: v1", "couldn't parse as pod"),
        (MANIFEST.replace(b"name: web, ", b""), "invalid pod: name is needed"),
        (MANIFEST.replace(b"containers", b"containerz"), "invalid pod"),
        (MANIFEST.replace(b"image: nginx", b"image: nginx, ports: [{containerPort: 0}]"), "containerPort"),
        (MANIFEST.replace(b"spec: {", b"spec: {serviceAccountName: x, "), "may not reference serviceaccounts"),
        (MANIFEST.replace(b"image: nginx", b"image: nginx, envFrom: [{secretRef: {name: s}}]"), "reference secrets"),
        (
            MANIFEST.replace(b"spec: {", b"spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}], "),
            "may not reference persistentvolumeclaims",
        ),
    ],
)
def test_what_is_no_pod_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(InvalidManifest, match=words):
        read(data)


def test_a_list_has_many_pods() -> None:
    item = b'{"metadata": {"name": "%s"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}'
    data = b'{"apiVersion": "v1", "kind": "PodList", "items": [' + item % b"a" + b"," + item % b"b" + b"]}"
    assert [each.metadata.name for each in read(data)] == ["a-node-1", "b-node-1"]  # type: ignore[union-attr]


class Heard:
    """What a source has told."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.pods = StaticPods(self._added, self._removed)

    def _added(self, pod: Pod) -> None:
        self.names.append(f"+{pod.metadata.name}")  # type: ignore[union-attr]

    def _removed(self, pod: Pod) -> None:
        self.names.append(f"-{pod.metadata.name}")  # type: ignore[union-attr]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


async def test_a_folder_is_followed(tmp_path: Path) -> None:
    heard = Heard()
    source = FolderSource(tmp_path, "n", SystemClock(), heard.pods, every=200.0)
    running = asyncio.create_task(source.run())
    try:
        await until(heard.pods.seen.is_set)
        assert heard.names == []
        (tmp_path / ".hidden.yaml").write_bytes(MANIFEST)
        file = tmp_path / "a.yaml"
        file.write_bytes(MANIFEST)
        await until(lambda: heard.names == ["+web-n"])
        file.write_bytes(MANIFEST.replace(b"nginx", b"nginx:2"))
        await until(lambda: heard.names == ["+web-n", "-web-n", "+web-n"])
        file.write_bytes(b"kind: nonsense")  # half-written files end no pods
        (tmp_path / "b.yaml").write_bytes(MANIFEST.replace(b"web", b"other"))
        await until(lambda: heard.names[-1] == "+other-n")
        assert len(heard.names) == 4
        file.unlink()
        await until(lambda: heard.names[-1] == "-web-n")
    finally:
        running.cancel()


async def test_a_url_is_followed() -> None:
    answers: dict[str, tuple[int, bytes]] = {"now": (200, MANIFEST)}
    asked: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers["now"]
            asked.append(self.headers.get("X-Who"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        heard = Heard()
        url = f"http://127.0.0.1:{server.server_port}/pods?x=1"
        source = URLSource(url, {"X-Who": ["me"]}, "n", SystemClock(), heard.pods, every=200.0)
        await source.look()
        assert heard.names == ["+web-n"]
        assert asked == ["me"]
        answers["now"] = (500, b"sorry")
        with pytest.raises(InvalidManifest, match="500"):
            await source.look()
        assert heard.names == ["+web-n"]  # a server that is ill ends no pods
        answers["now"] = (200, MANIFEST.replace(b"web", b"other"))
        await source.look()
        assert heard.names == ["+web-n", "-web-n", "+other-n"]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "content",
    [
        b"apiVersion: v1\nkind: PodList\nitems: 5\n",
        b"apiVersion: v1\nkind: PodList\nitems: [5, null]\n",
        b"apiVersion: v1\nkind: PodList\nitems: {a: b}\n",
        b"apiVersion: v1\nkind: Pod\nmetadata: 7\nspec: []\n",
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: {a: b}}\n",
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: 5, annotations: [a]}\nspec: {}\n",
        b"\xff\xfe\x00",
        b'apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: "../../x"}\nspec: {containers: [{name: c, image: i}]}\n',
        b"{" * 100_000,
        b"[" * 100_000,
        b"",
        b"null",
    ],
    ids=lambda content: content[:60].decode(errors="replace"),
)
async def test_an_odd_manifest_is_reported_and_the_others_count(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()
    (tmp_path / "a-odd.yaml").write_bytes(content)
    (tmp_path / "b-good.yaml").write_bytes(MANIFEST)
    source = FolderSource(tmp_path, "n", SystemClock(), heard.pods, every=200.0)
    running = asyncio.create_task(source.run())
    try:
        await until(lambda: heard.names == ["+web-n"] or running.done())
        assert not running.done()
        assert "could not process manifest file" in caplog.text
    finally:
        running.cancel()


@pytest.mark.parametrize("how", ["folder", "loop", "pipe", "device", "hangs"])
async def test_what_is_no_file_among_manifests_is_passed_over(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, odd = Heard(), tmp_path / "a-odd.yaml"
    (tmp_path / "b-good.yaml").write_bytes(MANIFEST)
    release = threading.Event()
    if how == "device":
        odd.symlink_to("/dev/zero")
    elif how == "hangs":
        odd.write_bytes(MANIFEST.replace(b"web", b"hung"))
        monkeypatch.setattr(following, "MANIFEST_WITHIN", 0.05)
        read = FolderSource._read

        def hang(self: FolderSource, path: Path, before: Any) -> Any:
            if path == odd:
                release.wait(30)
            return read(self, path, before)

        monkeypatch.setattr(FolderSource, "_read", hang)
    else:
        damage(odd, how)
    source = FolderSource(tmp_path, "n", SystemClock(), heard.pods, every=0.01)
    running = asyncio.create_task(source.run())
    try:
        await until(lambda: "+web-n" in heard.names or running.done())
        assert not running.done()
        release.set()
        if how == "hangs":
            await until(lambda: "+hung-n" in heard.names)
        assert "-web-n" not in heard.names
    finally:
        release.set()
        running.cancel()


async def test_a_folder_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    heard = Heard()
    source = FolderSource(tmp_path / "not/there", "n", SystemClock(), heard.pods, every=0.01)
    running = asyncio.create_task(source.run())
    try:
        await until(heard.pods.seen.is_set)
        (tmp_path / "not/there").mkdir(parents=True)
        (tmp_path / "not/there/a.yaml").write_bytes(MANIFEST)
        await until(lambda: heard.names == ["+web-n"])
    finally:
        running.cancel()
