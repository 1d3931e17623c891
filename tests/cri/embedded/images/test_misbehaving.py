"""Registries that are slow, busy, change their mind or lie, and disks that are full: the errors, and what is left."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any

import pytest
from cri.embedded.images.registries import FakeRegistry, digest, free_port, layer, send

from pybernetes.cluster.images import oci
from pybernetes.cri.embedded.images import downloads, pulling
from pybernetes.cri.embedded.images import registry as registry_module
from pybernetes.cri.embedded.images.pulling import PullError, pull
from pybernetes.cri.embedded.images.registry import challenges
from pybernetes.cri.embedded.images.store import ImageStore

# -- who comes in


def test_a_token_that_runs_out_in_the_middle_is_fetched_again(registry: FakeRegistry, store: ImageStore) -> None:
    registry.add("1", *(layer(**{f"f{number}": "x"}) for number in range(4)))
    given: list[str] = []

    def before(handler: Any) -> bool:
        if handler.path.startswith("/token"):
            given.append(f"token-{len(given)}")
            send(handler, 200, json.dumps({"token": given[-1], "expires_in": 1}).encode())
            return True
        used = handler.headers.get("Authorization", "")
        uses[used] = uses.get(used, 0) + 1
        if given and used == f"Bearer {given[-1]}" and uses[used] <= 2:  # a token is good for two requests
            return False
        challenge = f'Bearer realm="http://{registry.host}/token",service="lab",scope="repository:a/b:pull"'
        send(handler, 401, b"", {"WWW-Authenticate": challenge})
        return True

    uses: dict[str, int] = {}
    registry.before = before
    assert pull(store, [], f"{registry.host}/a/b:1").names
    assert len(given) >= 3


def test_an_insufficient_token_is_an_error_and_not_requested_again(registry: FakeRegistry, store: ImageStore) -> None:
    registry.add("1", layer(name="x"))

    def before(handler: Any) -> bool:
        if handler.path.startswith("/token"):
            send(handler, 200, b'{"token": "weak"}')
        else:
            challenge = (
                f'Bearer realm="http://{registry.host}/token",scope="repository:a/b:pull",error="insufficient_scope"'
            )
            send(handler, 401, b'{"errors":[{"code":"DENIED","message":"no"}]}', {"WWW-Authenticate": challenge})
        return True

    registry.before = before
    with pytest.raises(PullError, match="401 Unauthorized"):
        pull(store, [], f"{registry.host}/a/b:1")
    assert len(registry.asked("/token")) == 1


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        (['Basic realm="lab"'], [("basic", {"realm": "lab"})]),
        (["Basic"], [("basic", {})]),
        (
            ['Basic realm="a, b", Bearer realm="https://x/t",service="s",scope="repository:a/b:pull,push"'],
            [
                ("basic", {"realm": "a, b"}),
                ("bearer", {"realm": "https://x/t", "service": "s", "scope": "repository:a/b:pull,push"}),
            ],
        ),
        (["Negotiate, Basic realm=x"], [("negotiate", {}), ("basic", {"realm": "x"})]),
        (['Bearer realm="a\\"b"', "Basic realm=y"], [("bearer", {"realm": 'a"b'}), ("basic", {"realm": "y"})]),
        (["", "=,=", '"'], []),
    ],
)
def test_ways_to_come_in_are_read(headers: list[str], found: list[tuple[str, dict[str, str]]]) -> None:
    assert challenges(headers) == found


# -- patience


@pytest.mark.parametrize("kind", ["seconds", "date"])
def test_a_server_that_says_when_to_come_back_is_asked_then(
    registry: FakeRegistry, store: ImageStore, kind: str
) -> None:
    registry.add("1", layer(name="x"))
    busy = {"/manifests/": 2, "/blobs/": 2}
    waited: list[float] = []

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout or 0.0)
            return False

    def before(handler: Any) -> bool:
        for word in busy:
            if word in handler.path and busy[word]:
                busy[word] -= 1
                send(
                    handler,
                    429,
                    b"",
                    {"Retry-After": "7" if kind == "seconds" else formatdate(time() + 7, usegmt=True)},
                )
                return True
        return False

    registry.before = before
    assert pull(store, [], f"{registry.host}/a/b:1", None, Event()).names
    assert len(waited) == 4
    assert all(0 < each <= 7 for each in waited)


@pytest.mark.parametrize(("said", "waits"), [("3600", 0), ("soon", 0), ("-5", 0), ("0", 60), ("9" * 400, 0)])
def test_patience_has_an_end(
    registry: FakeRegistry, store: ImageStore, said: str, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(registry_module.time, "sleep", waited.append)
    event = threading.Event()
    monkeypatch.setattr(event, "wait", lambda seconds=None: bool(waited.append(seconds or 0.0)))
    registry.before = lambda handler: send(handler, 429, b"", {"Retry-After": said}) is None
    with pytest.raises(PullError, match="429 Too Many Requests"):
        pull(store, [], f"{registry.host}/a/b:1", None, event)
    assert len(waited) == waits


def test_a_cancelled_pull_does_not_wait_for_a_busy_server(registry: FakeRegistry, store: ImageStore) -> None:
    event = threading.Event()
    event.set()
    registry.before = lambda handler: send(handler, 429, b"", {"Retry-After": "30"}) is None
    with pytest.raises(PullError):
        pull(store, [], f"{registry.host}/a/b:1", None, event)
    assert len(registry.requests) == 1


def test_a_server_that_says_nothing_is_given_up(
    registry: FakeRegistry, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_module, "READ_TIMEOUT", 0.2)
    monkeypatch.setattr(downloads, "PAUSE", 0.0001)
    registry.add("1", layer(name="x"))
    done = threading.Event()
    registry.before = lambda handler: "/blobs/" in handler.path and done.wait(20)
    try:
        with pytest.raises(PullError, match="i/o timeout"):
            pull(store, [], f"{registry.host}/a/b:1")
    finally:
        done.set()


# -- servers that answer with something else


def hosts(tmp_path: Path, *mirrors: str, server: str) -> list[Path]:
    folder = tmp_path / "certs.d" / "registry.example"
    folder.mkdir(parents=True)
    tables = "".join(f'[host."http://{mirror}"]\n' for mirror in mirrors)
    (folder / "hosts.toml").write_text(f'server = "http://{server}"\n{tables}')
    return [folder.parent]


@pytest.mark.parametrize("how", ["a page for people", "another platform", "broken blobs", "lying blobs", "no blobs"])
def test_a_mirror_that_fails_in_any_way_is_passed_over(
    registry: FakeRegistry, store: ImageStore, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "PAUSE", 0.0001)
    registry.add("1", layer(name="good"))
    with FakeRegistry().serving() as mirror:
        mirror.manifests, mirror.blobs = dict(registry.manifests), dict(registry.blobs)

        def before(handler: Any) -> bool:
            if how == "a page for people":
                send(handler, 200, b"<html>please log in</html>", {"Content-Type": "text/html"})
                return True
            if "/blobs/" in handler.path and how == "broken blobs":
                send(handler, 500)
                return True
            return False

        mirror.before = before
        if how == "another platform":
            entry = {"mediaType": oci.MANIFEST, "digest": digest(b""), "size": 0}
            other = {"architecture": "s390x", "os": "plan9"}
            mirror.manifest("1", oci.INDEX, {"schemaVersion": 2, "manifests": [{**entry, "platform": other}]})
        if how == "lying blobs":
            mirror.blobs = {name: bytes(reversed(body)) for name, body in mirror.blobs.items()}
        if how == "no blobs":
            mirror.blobs = {}
        image = pull(store, hosts(tmp_path, mirror.host, server=registry.host), "registry.example/a/b:1")
        assert image.names == ["registry.example/a/b:1"]
        assert mirror.requests


def test_if_all_fail_the_registrys_own_error_is_reported(
    registry: FakeRegistry, store: ImageStore, tmp_path: Path
) -> None:
    registry.before = lambda handler: send(handler, 200, b"<html>", {"Content-Type": "text/html"}) is None
    with pytest.raises(PullError, match="a manifest that is not JSON"):
        pull(store, hosts(tmp_path, f"127.0.0.1:{free_port()}", server=registry.host), "registry.example/a/b:1")


def test_layers_that_a_registry_does_not_give_are_refused_by_their_kind(
    registry: FakeRegistry, store: ImageStore
) -> None:
    kind = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
    descriptor = {"mediaType": kind, "digest": digest(b"x"), "size": 1, "urls": ["http://127.0.0.1:1/layer"]}
    config = registry.blob(oci.CONFIG, b"{}")
    manifest = {"schemaVersion": 2, "mediaType": oci.MANIFEST, "config": config, "layers": [descriptor]}
    registry.manifest("1", oci.MANIFEST, manifest)
    with pytest.raises(PullError, match=r"foreign.*not supported"):
        pull(store, [], f"{registry.host}/a/b:1")
    assert not registry.asked("/layer")


# -- disks


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=False).returncode
    ):
        pytest.skip("no tmpfs can be mounted")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def free(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def test_a_full_disk_is_reported_and_nothing_of_the_image_keeps_it_full(
    registry: FakeRegistry, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ImageStore(small / "images")
    registry.add("small", layer(name="x"))
    pull(store, [], f"{registry.host}/a/b:small")
    before = free(small)
    noise = os.urandom(1 << 20).hex()
    registry.add("large", layer(first="y" * 100_000), layer(second=noise), layer(third=noise[::-1]))
    with pytest.raises(PullError, match="No space left on device") as caught:
        pull(store, [], f"{registry.host}/a/b:large")
    assert caught.value.code == "ResourceExhausted"
    assert free(small) >= before - 50_000
    with monkeypatch.context() as patched:  # there was room for it, and others took it meanwhile
        patched.setattr(pulling, "_check_room", lambda *_: None)
        with pytest.raises(PullError, match="No space left on device") as caught:
            pull(store, [], f"{registry.host}/a/b:large")
    assert caught.value.code == "ResourceExhausted"
    assert free(small) >= before - 50_000
    # one that seems to fit, and does not when it is unpacked
    registry.add("bomb", layer(first="y" * 3_000_000))
    with pytest.raises(PullError):
        pull(store, [], f"{registry.host}/a/b:bomb")
    assert free(small) >= before - 50_000
    registry.add("other", layer(name="still works"))
    assert pull(ImageStore(small / "images"), [], f"{registry.host}/a/b:other").names
    assert [image.names for image in store.images()] == [[f"{registry.host}/a/b:small"]]


def test_what_is_here_needs_no_room(registry: FakeRegistry, small: Path) -> None:
    store = ImageStore(small / "images")
    base = layer(name=os.urandom(300_000).hex())
    registry.add("base", base)
    pull(store, [], f"{registry.host}/a/b:base")
    registry.add("app", base, layer(app="x"))
    (small / "others").write_bytes(b"x" * (free(small) - 250_000))
    assert pull(store, [], f"{registry.host}/a/b:app").names
