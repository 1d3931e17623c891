"""The store: archives of all kinds, also hostile ones; removal, collection, and what a crash leaves."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import tarfile
import threading
from pathlib import Path
from typing import IO, Any

import pytest
import zstandard
from cri.embedded.images.registries import digest, layer
from damage import DAMAGES, damage

from pybernetes.cluster.images import oci
from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded.images.archive import Contained
from pybernetes.cri.embedded.images.service import ImageService
from pybernetes.cri.embedded.images.store import ImageStore

if os.geteuid() != 0:
    pytest.skip("needs root: owners and whiteouts", allow_module_level=True)


def write(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def docker_archive(*layers: bytes, config: Any = None) -> dict[str, bytes]:
    body = config or {"config": {"User": "5"}, "rootfs": {"diff_ids": [digest(each) for each in layers]}}
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": "c.json", "RepoTags": ["mine:1"], "Layers": names}]
    return {
        "manifest.json": json.dumps(manifest).encode(),
        "c.json": json.dumps(body).encode(),
        **dict(zip(names, layers, strict=True)),
    }


def good(path: Path, name: str = "good:1") -> Path:
    oci.write(path, oci.Image(names=[name], entries=[oci.file("x", name.encode())]))
    return path


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress])
def test_layers_of_an_archive_may_be_compressed(store: ImageStore, tmp_path: Path, pack: Any) -> None:
    members = docker_archive(layer(a="1"))
    [image] = store.import_archive(write(tmp_path / "a.tar", {**members, "0/layer.tar": pack(members["0/layer.tar"])}))
    assert (store.layers / image.layers[0] / "a").read_text() == "1"


def test_dockers_archives_are_read(store: ImageStore, tmp_path: Path) -> None:
    [image] = store.import_archive(write(tmp_path / "a.tar", docker_archive(layer(a="1"), layer(b="2"))))
    assert image.names == ["docker.io/library/mine:1"]
    root = store.rootfs("mine:1", "c")
    assert [(root.layers / each).joinpath(name).read_text() for each, name in zip(root.lower, "ba", strict=True)] == [
        "2",
        "1",
    ]


evil = tarfile.TarInfo("../../evil")
BAD: dict[str, bytes | dict[str, bytes]] = {
    "no tar": b"x" * 2000,
    "empty": b"",
    "no image": {"readme": b""},
    "manifest of another shape": {"manifest.json": b'{"a": 1}'},
    "index of another shape": {"index.json": b"[]"},
    "index nested without an end": {"index.json": b"[" * 200_000},
    "digest that is a path": {"index.json": b'{"manifests":[{"digest":"sha256:../../../etc/passwd"}]}'},
    "blob that is not its digest": {
        "index.json": json.dumps({"manifests": [{"digest": digest(b"1")}]}).encode(),
        f"blobs/sha256/{digest(b'1')[7:]}": b"2",
    },
    "layer that is not its digest": {**docker_archive(layer(a="1")), "0/layer.tar": layer(a="2")},
    "layer that leads out": docker_archive(evil.tobuf() + b"\0" * 1024),
    "layer that ends early": docker_archive(layer(a="1" * 2000)[:1000]),
    "layer that is missing": {k: v for k, v in docker_archive(layer(a="1")).items() if k != "0/layer.tar"},
    "damaged gzip": {**docker_archive(layer(a="1")), "0/layer.tar": b"\x1f\x8b\x08" + b"\xff" * 500},
    "damaged zstd": {**docker_archive(layer(a="1")), "0/layer.tar": b"\x28\xb5\x2f\xfd" + b"\0" * 500},
    "configuration of another shape": docker_archive(layer(a="1"), config={"rootfs": {"diff_ids": 5}}),
    "user of another shape": docker_archive(config={"config": {"User": ["x"]}, "rootfs": {"diff_ids": []}}),
    "name that is none": {**docker_archive(), "manifest.json": b'[{"Config":"c.json","RepoTags":["a b"],"Layers":[]}]'},
    "names without an end": docker_archive(layer(**{"n" * 300: "x"})),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_archive_is_passed_over_and_harms_no_other(store: ImageStore, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "archives"
    folder.mkdir()
    bad = BAD[what]
    if isinstance(bad, bytes):
        (folder / "a.tar").write_bytes(bad)
    else:
        write(folder / "a.tar", bad)
    good(folder / "b.tar")
    found = store.import_folder(folder)
    assert [each.names for each in found] == [["docker.io/library/good:1"]]
    store.collect()
    assert len([each for each in store.layers.iterdir() if each.is_dir()]) == 1
    assert store.import_folder(folder) == []  # nothing is new
    assert len(ImageStore(store.root).images()) == 1


async def test_an_image_that_was_removed_comes_back_from_its_archive_when_it_is_pulled(
    store: ImageStore, tmp_path: Path
) -> None:
    folder = tmp_path / "archives"
    folder.mkdir()
    good(folder / "a.tar")
    service = ImageService(store, folder)
    await service.look()
    spec = cri.ImageSpec(image="good:1")
    await service.remove_image(cri.RemoveImageRequest(image=spec))
    assert not (await service.image_status(cri.ImageStatusRequest(image=spec))).HasField("image")
    answer = await service.pull_image(cri.PullImageRequest(image=spec))
    assert (await service.image_status(cri.ImageStatusRequest(image=spec))).image.id == answer.image_ref


def test_what_a_crash_left_goes(store: ImageStore, tmp_path: Path) -> None:
    good(tmp_path / "a.tar")
    store.import_archive(tmp_path / "a.tar")
    kept = {each.name for each in store.layers.iterdir()}
    configs = {each.name for each in (store.root / "configs").iterdir()}
    (store.root / "configs" / ("0" * 64)).write_bytes(b"{}")
    (store.layers / ".new-1" / "deep").mkdir(parents=True)
    (store.layers / ".old-1").mkdir()
    (store.layers / ("0" * 24)).mkdir()
    again = ImageStore(store.root)
    again.collect()
    assert {each.name for each in store.layers.iterdir()} == kept
    assert {each.name for each in (store.root / "configs").iterdir()} == configs
    assert again.find("good:1") is not None


def test_layers_of_an_image_that_is_being_taken_in_are_not_collected(store: ImageStore) -> None:
    first, second = layer(a="1"), layer(b="2")
    waiting, go = threading.Event(), threading.Event()

    class Slow:
        def layer(self, member: str) -> IO[bytes]:
            if member == "2":
                waiting.set()
                assert go.wait(10)
            return io.BytesIO({"1": first, "2": second}[member])

    config = json.dumps({"rootfs": {"diff_ids": [digest(first), digest(second)]}}).encode()
    thread = threading.Thread(target=lambda: store.add(Slow(), Contained(("x",), config, ("1", "2"))))
    thread.start()
    assert waiting.wait(10)
    store.collect()  # answers at once, and leaves the first layer
    go.set()
    thread.join()
    [image] = store.images()
    assert all((store.layers / each).is_dir() for each in image.layers)


def _busy(path: Path) -> None:
    raise OSError(errno.EBUSY, "busy", str(path))


def test_files_of_a_container_that_cannot_be_removed_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ImageStore(tmp_path)
    folder = tmp_path / "containers/c1"
    (folder / "fs").mkdir(parents=True)
    with monkeypatch.context() as patched:
        patched.setattr("pybernetes.cri.embedded.leftovers.remove_tree", _busy)
        store.release("c1")
        store.release("c1")
    assert caplog.text.count(f"{folder} cannot be removed and is left for later: [Errno 16]") == 1
    caplog.clear()
    store.release("c2")
    assert not folder.exists()
    assert not caplog.text


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_files_of_the_store_cost_at_most_their_image(tmp_path: Path, how: str) -> None:
    """A store that begins with them takes the image in once more, and containers keep their layers."""
    root = tmp_path / "store"
    store = ImageStore(root)
    [image] = store.import_archive(good(tmp_path / "a.tar"))
    rootfs = store.rootfs("good:1", "c1")
    config = root / "configs" / image.id.removeprefix("sha256:")
    for damaged in (
        [root / "index.json"],
        [config],
        [store.layers / f"{image.layers[0]}.size"],
        [root / "containers/c1/layers"],
        [root / "index.json", config, store.layers / f"{image.layers[0]}.size", root / "containers/c1/layers"],
    ):
        for path in damaged:
            damage(path, how)
        store = ImageStore(root)
        store.collect()
        assert (rootfs.layers / rootfs.lower[0] / "x").exists()
        [again] = store.import_archive(tmp_path / "a.tar")
        assert again.id == image.id
        assert store.config(again) == rootfs.config
        assert (rootfs.layers / rootfs.lower[0] / "x").exists()
        store.release("c1")
        rootfs = store.rootfs("good:1", "c1")
    store.remove("good:1")
    store.release("c1")
    assert not [each for each in store.layers.iterdir() if each.name != "empty"]
