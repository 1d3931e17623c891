"""Pulls from registries that want tokens, break off, lie, or are mirrors of others."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import zstandard
from cri.embedded.images.registries import FakeRegistry, basic, digest, free_port, layer, send

from pybernetes.cluster.images import oci
from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded.images import downloads
from pybernetes.cri.embedded.images.pulling import PullError, pull
from pybernetes.cri.embedded.images.registry import Credentials
from pybernetes.cri.embedded.images.service import ImageService
from pybernetes.cri.embedded.images.store import ImageStore


def hosts(tmp_path: Path, name: str, text: str) -> Path:
    (tmp_path / "certs.d" / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "certs.d" / name / "hosts.toml").write_text(text)
    return tmp_path / "certs.d"


def content(store: ImageStore, name: str, path: str) -> str:
    root = store.rootfs(name, "test")
    return next((root.layers / each / path).read_text() for each in root.lower if (root.layers / each / path).exists())


def wants_token(registry: FakeRegistry, credentials: str) -> None:
    def before(handler: Any) -> bool:
        if handler.path.startswith("/token"):
            given = handler.headers.get("Authorization", "")
            length = int(handler.headers.get("Content-Length") or 0)
            given = given or handler.rfile.read(length).decode()
            if credentials in given:
                send(handler, 200, json.dumps({"token": "good"}).encode())
            else:
                send(handler, 401, b'{"errors":[{"code":"UNAUTHORIZED","message":"who are you?"}]}')
            return True
        if handler.headers.get("Authorization") == "Bearer good":
            return False
        challenge = f'Bearer realm="http://{registry.host}/token",service="lab",scope="repository:a/b:pull"'
        send(handler, 401, b"", {"WWW-Authenticate": challenge})
        return True

    registry.before = before


@pytest.mark.parametrize(
    ("wanted", "login"),
    [
        ("", None),
        (basic(), Credentials("alice", "s3cret")),
        ("grant_type=refresh_token&refresh_token=t0ken", Credentials(identity_token="t0ken")),
        ("never asked for", Credentials(registry_token="good")),
    ],
    ids=["anonymous", "password", "identity token", "registry token"],
)
def test_a_token_is_fetched_where_the_registry_says(
    registry: FakeRegistry, store: ImageStore, wanted: str, login: Credentials | None
) -> None:
    registry.add("1", layer(name="token"))
    wants_token(registry, wanted)
    image = pull(store, [], f"{registry.host}/a/b:1", login)
    assert content(store, image.id, "name") == "token"
    asked = registry.asked("/token")
    assert len(asked) == (0 if login and login.registry_token else 1)  # one token for all requests
    if login is None:
        assert asked[0][1] == "/token?service=lab&scope=repository%3Aa%2Fb%3Apull"


def test_a_token_that_is_refused_is_reported(registry: FakeRegistry, store: ImageStore) -> None:
    wants_token(registry, basic())
    with pytest.raises(PullError, match=r"failed to authorize: failed to fetch anonymous token: .*401 .*who are you"):
        pull(store, [], f"{registry.host}/a/b:1")


def test_a_password_is_not_taken_along_to_another_server(registry: FakeRegistry, store: ImageStore) -> None:
    with FakeRegistry().serving() as elsewhere:
        registry.add("1", layer(name="moved"))
        elsewhere.blobs = registry.blobs

        def before(handler: Any) -> bool:
            if handler.headers.get("Authorization") != basic():
                send(handler, 401, b"", {"WWW-Authenticate": 'Basic realm="lab"'})
            elif "/blobs/" in handler.path:
                send(handler, 307, b"", {"Location": f"http://{elsewhere.host}{handler.path}"})
            else:
                return False
            return True

        registry.before = before
        pull(store, [], f"{registry.host}/a/b:1", Credentials("alice", "s3cret"))
        assert len(elsewhere.requests) == 2
        assert not any("Authorization" in headers for _, _, headers in elsewhere.requests)


def test_a_download_that_breaks_off_goes_on_where_it_was(
    registry: FakeRegistry, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "PAUSE", 0.001)
    import random

    big = random.Random(1).randbytes(200_000).hex()
    registry.add("1", layer(big=big))
    name, body = max(registry.blobs.items(), key=lambda each: len(each[1]))
    left = [3]

    def before(handler: Any) -> bool:
        if name not in handler.path or not left[0]:
            return False
        left[0] -= 1
        start = int((handler.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        told = {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}
        send(handler, 206 if start else 200, body[start:], told, cut=40_000)
        return True

    registry.before = before
    image = pull(store, [], f"{registry.host}/a/b:1")
    assert content(store, image.id, "big") == big
    asked = [headers.get("Range") for _, _, headers in registry.asked(name)]
    assert asked == [None, "bytes=40000-", "bytes=80000-", "bytes=120000-"]


def test_a_pull_goes_on_after_the_runtime_was_killed(registry: FakeRegistry, store: ImageStore) -> None:
    registry.add("1", layer(big="x" * 100_000), layer(other="y"))
    name = next(iter(registry.manifests.values()))
    first = json.loads(name[1])["layers"][0]["digest"]
    part = store.root / "downloads" / (first.replace(":", "-") + ".part")
    part.parent.mkdir()
    part.write_bytes(registry.blobs[first][:50])
    pull(store, [], f"{registry.host}/a/b:1")
    assert [headers["Range"] for _, _, headers in registry.asked(first)] == ["bytes=50-"]


@pytest.mark.parametrize("ranges", [True, False], ids=["with ranges", "without ranges"])
def test_a_wrong_beginning_does_not_spoil_the_image(registry: FakeRegistry, store: ImageStore, ranges: bool) -> None:
    registry.add("1", layer(name="right"))
    digest_of_layer = json.loads(registry.manifests["1"][1])["layers"][0]["digest"]
    part = store.root / "downloads" / (digest_of_layer.replace(":", "-") + ".part")
    part.parent.mkdir()
    part.write_bytes(b"wrong")
    if not ranges:

        def before(handler: Any) -> bool:
            if digest_of_layer in handler.path:
                send(handler, 200, registry.blobs[digest_of_layer])
                return True
            return False

        registry.before = before
        pull(store, [], f"{registry.host}/a/b:1")
        return
    with pytest.raises(PullError, match="unexpected commit digest"):
        pull(store, [], f"{registry.host}/a/b:1")
    image = pull(store, [], f"{registry.host}/a/b:1")  # nothing of it was kept
    assert content(store, image.id, "name") == "right"


@pytest.mark.parametrize("what", ["blob", "manifest", "longer", "shorter"])
def test_what_is_not_what_its_digest_says_is_refused(
    registry: FakeRegistry, store: ImageStore, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "PAUSE", 0.0001)
    top = registry.add("1", layer(name="x" * 5000))
    name = json.loads(registry.manifests["1"][1])["layers"][0]["digest"]
    body = registry.blobs[name]
    if what == "manifest":
        kind, manifest = registry.manifests[top]
        registry.manifests[top] = (kind, manifest + b" ")
    registry.blobs[name] = {"blob": body[:-9] + b"\0" * 9, "longer": body + b"1", "shorter": body[:-1]}.get(what, body)
    with pytest.raises(PullError, match=r"unexpected|EOF") as caught:
        pull(store, [], f"{registry.host}/a/b:1")
    assert store.images() == []
    assert caught.value.code in ("FailedPrecondition", "Unknown")
    assert not list(store.layers.iterdir())


def test_a_layer_that_is_not_what_the_configuration_says_is_refused(registry: FakeRegistry, store: ImageStore) -> None:
    registry.add("1", layer(name="one"))
    manifest = json.loads(registry.manifests["1"][1])
    import gzip

    manifest["layers"] = [registry.blob(oci.LAYER, gzip.compress(layer(name="two")))]
    registry.manifest("1", oci.MANIFEST, manifest)
    with pytest.raises(PullError, match="has other content than its image says"):
        pull(store, [], f"{registry.host}/a/b:1")
    assert store.images() == []


def test_a_layer_may_be_compressed_with_zstd(registry: FakeRegistry, store: ImageStore) -> None:
    registry.add("1", layer(name="one"), layer(name="two"))
    manifest = json.loads(registry.manifests["1"][1])
    packed = zstandard.ZstdCompressor().compress(layer(name="two"))
    manifest["layers"][1] = registry.blob(oci.LAYER.replace("gzip", "zstd"), packed)
    registry.manifest("1", oci.MANIFEST, manifest)
    image = pull(store, [], f"{registry.host}/a/b:1")
    assert (store.layers / image.layers[1] / "name").read_text() == "two"


def test_of_an_index_the_image_of_this_machine_is_taken(registry: FakeRegistry, store: ImageStore) -> None:
    here = oci.this_architecture()
    entries = []
    for architecture in ("s390x" if here != "s390x" else "amd64", here, "unknown"):
        made = registry.add(architecture, layer(name=architecture))
        size = len(registry.manifests[made][1])
        where = {"os": "linux" if architecture != "unknown" else "unknown", "architecture": architecture}
        entries.append({"mediaType": oci.MANIFEST, "digest": made, "size": size, "platform": where})
    top = registry.manifest("1", oci.INDEX, {"schemaVersion": 2, "mediaType": oci.INDEX, "manifests": entries})
    image = pull(store, [], f"{registry.host}/a/b:1")
    assert content(store, image.id, "name") == here
    assert image.digests == [f"{registry.host}/a/b@{top}"]
    registry.manifest("2", oci.INDEX, {"schemaVersion": 2, "mediaType": oci.INDEX, "manifests": entries[:1]})
    with pytest.raises(PullError, match="no match for platform") as caught:
        pull(store, [], f"{registry.host}/a/b:2")
    assert caught.value.code == "NotFound"


def test_a_tag_that_moved_takes_its_name_along(registry: FakeRegistry, store: ImageStore) -> None:
    registry.add("1", layer(base="same"), layer(name="old"))
    old = pull(store, [], f"{registry.host}/a/b:1")
    assert pull(store, [], f"{registry.host}/a/b:1") is old
    asked = len(registry.asked("/blobs/"))
    assert asked == 3
    registry.add("1", layer(base="same"), layer(name="new"))
    new = pull(store, [], f"{registry.host}/a/b:1")
    assert len(registry.asked("/blobs/")) == asked + 2  # the configuration and the layer that differs
    assert new.id != old.id
    assert old.names == []
    assert len(old.digests) == 1
    assert content(store, f"{registry.host}/a/b:1", "name") == "new"
    assert {each.id for each in ImageStore(store.root).images()} == {old.id, new.id}


def test_mirrors_come_first_and_get_the_registrys_name(
    registry: FakeRegistry, store: ImageStore, tmp_path: Path
) -> None:
    with FakeRegistry().serving() as mirror:
        mirror.add("1", layer(name="mirror"))
        registry.add("2", layer(name="itself"))
        text = f'server = "http://{registry.host}"\n[host."http://{mirror.host}/sub"]\n'
        text += 'capabilities = ["pull", "resolve"]\n'
        text += f'[host."http://{mirror.host}/sub".header]\nX-Lab = ["yes"]\n'
        folders = [tmp_path / "nothing", hosts(tmp_path, "registry.example", text)]
        image = pull(store, folders, "registry.example/a/b:1")
        assert image.names == ["registry.example/a/b:1"]
        assert content(store, image.id, "name") == "mirror"
        assert registry.requests == []
        method, path, headers = mirror.requests[0]
        assert (method, path) == ("HEAD", "/sub/v2/a/b/manifests/1?ns=registry.example")
        assert headers["X-Lab"] == "yes"
        assert content(store, pull(store, folders, "registry.example/a/b:2").id, "name") == "itself"
        with pytest.raises(PullError) as caught:
            pull(store, folders, "registry.example/a/b:3")
        assert caught.value.code == "NotFound"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("server = 1", "server must be a URL"),
        ("[host", "hosts.toml"),
        ('[host."ftp://x"]', "is not the URL of a server"),
        ('[host."http://x"]\nca = 1', "ca must be a string"),
        ('[host."http://x"]\nskip_verfy = true', "unknown skip_verfy"),
        ('[host."http://x"]\ncapabilities = ["pul"]', "unknown capability pul"),
        ('[host."http://u:p@x"]', "no password"),
    ],
)
def test_mistakes_in_hosts_toml_are_reported(store: ImageStore, tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(PullError, match=told):
        pull(store, [hosts(tmp_path, "_default", text)], "registry.example/a/b:1")


MANIFEST: dict[str, Any] = {"schemaVersion": 2, "mediaType": oci.MANIFEST}
DESCRIPTOR = {"digest": digest(b""), "size": 0}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"no json", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        ([], "not an object"),
        ({"schemaVersion": 1}, "schema 1"),
        ({**MANIFEST, "layers": []}, "descriptor is missing"),
        ({**MANIFEST, "layers": [], "manifests": []}, "both an index and a manifest"),
        ({**MANIFEST, "config": {**DESCRIPTOR, "mediaType": "application/wasm"}, "layers": []}, "application/wasm"),
        (
            {**MANIFEST, "config": {"mediaType": oci.CONFIG, "digest": "sha256:../..", "size": 1}, "layers": []},
            "digest",
        ),
        ({**MANIFEST, "config": {**DESCRIPTOR, "mediaType": oci.CONFIG, "size": -1}, "layers": []}, "no size"),
        (
            {
                **MANIFEST,
                "config": {**DESCRIPTOR, "mediaType": oci.CONFIG},
                "layers": [{**DESCRIPTOR, "mediaType": oci.LAYER.replace("gzip", "brotli")}],
            },
            "brotli.*not supported",
        ),
        (
            {**MANIFEST, "config": {**DESCRIPTOR, "mediaType": oci.CONFIG, "size": 1 << 40}, "layers": []},
            "configuration of",
        ),
    ],
)
def test_invalid_manifests_are_reported(registry: FakeRegistry, store: ImageStore, body: Any, told: str) -> None:
    registry.manifest("1", oci.MANIFEST, body)
    with pytest.raises(PullError, match=told):
        pull(store, [], f"{registry.host}/a/b:1")


def test_a_disconnect_ends_the_pull(registry: FakeRegistry, store: ImageStore) -> None:
    registry.add("1", layer(name="x"))
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(PullError, match="context canceled") as caught:
        pull(store, [], f"{registry.host}/a/b:1", None, cancelled)
    assert caught.value.code == "Canceled"


def test_a_registry_that_is_busy_is_asked_again(
    registry: FakeRegistry, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "PAUSE", 0.0001)
    registry.add("1", layer(name="x"))
    left = [2]

    def before(handler: Any) -> bool:
        if "/blobs/" in handler.path and left[0]:
            left[0] -= 1
            send(handler, 503)
            return True
        return False

    registry.before = before
    pull(store, [], f"{registry.host}/a/b:1")
    left[0] = 1000
    registry.add("2", layer(name="y"))
    with pytest.raises(PullError, match="503 Service Unavailable"):
        pull(store, [], f"{registry.host}/a/b:2")


def test_many_pulls_of_one_image_at_once_all_get_it(registry: FakeRegistry, store: ImageStore) -> None:
    registry.add("1", layer(name="x" * 100_000))
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(pull(store, [], f"{registry.host}/a/b:1").id)) for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert content(store, found[0], "name") == "x" * 100_000


@pytest.mark.parametrize(
    "config",
    [
        {"User": {"name": 1}},
        {"Env": 5},
        {"Env": [1]},
        {"Entrypoint": "sh"},
        {"Volumes": ["x"]},
        {"WorkingDir": "a\0b"},
        {"Cmd": ["\ud800"]},
    ],
)
def test_a_configuration_of_another_shape_is_refused_and_harms_no_other_image(
    registry: FakeRegistry, store: ImageStore, config: dict[str, Any]
) -> None:
    registry.add("1", layer(name="x"), config=config)
    with pytest.raises(PullError, match="the image's configuration is none"):
        pull(store, [], f"{registry.host}/a/b:1")
    assert store.images() == []


def test_a_mirror_that_is_away_does_not_hide_what_the_registry_says(
    registry: FakeRegistry, store: ImageStore, tmp_path: Path
) -> None:
    text = f'server = "http://{registry.host}"\n[host."http://127.0.0.1:{free_port()}"]\n'
    folders = [hosts(tmp_path, "registry.example", text)]
    with pytest.raises(PullError) as caught:
        pull(store, folders, "registry.example/a/b:1")
    assert caught.value.code == "NotFound"
    registry.add("1", layer(name="x"))
    assert pull(store, folders, "registry.example/a/b:1").names == ["registry.example/a/b:1"]


def test_of_several_names_the_one_is_shown_that_was_asked_for(registry: FakeRegistry, store: ImageStore) -> None:
    for tag in ("1", "2"):
        registry.add(tag, layer(name="x"))
        pull(store, [], f"{registry.host}/a/b:{tag}")
    [image] = store.images()
    assert image.shown_name(f"{registry.host}/a/b:2") == f"{registry.host}/a/b:2"
    assert image.shown_name("") == image.shown_name("other") == f"{registry.host}/a/b:1"
    image.names.clear()
    assert image.shown_name("other") == image.digests[0]


async def test_pulls_that_hang_hold_up_neither_other_calls_nor_the_next_pull(
    registry: FakeRegistry, store: ImageStore
) -> None:
    registry.add("1", layer(name="x"))
    registry.add("slow", layer(name="y"))
    hanging, go = threading.Semaphore(0), threading.Event()

    def before(handler: Any) -> bool:
        if handler.path.endswith("/slow"):
            hanging.release()
            go.wait(60)
        return False

    registry.before = before
    service = ImageService(store, None)

    def request(tag: str) -> Any:
        return cri.PullImageRequest(image=cri.ImageSpec(image=f"{registry.host}/a/b:{tag}"))

    many = min(32, (os.cpu_count() or 1) + 4) + 1  # more than asyncio has threads
    slow = [asyncio.create_task(service.pull_image(request("slow"))) for _ in range(many)]
    for _ in range(many):
        await asyncio.to_thread(hanging.acquire)
    async with asyncio.timeout(30):
        assert (await service.pull_image(request("1"))).image_ref
        await service.image_fs_info(cri.ImageFsInfoRequest())
    slow[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow[0]
    go.set()
    assert len({answer.image_ref for answer in await asyncio.gather(*slow[1:])}) == 1
