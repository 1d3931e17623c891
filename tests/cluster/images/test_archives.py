"""Archives that `pyb image import` is given: packed in any way, of any maker, damaged or hostile."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from pybernetes.cluster.commands import image
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import archives, oci
from pybernetes.cri.embedded.images.archive import NAME as NAME_KEY
from pybernetes.cri.embedded.images.archive import REFERENCE
from pybernetes.cri.embedded.images.store import ImageStore

NAME = "docker.io/library/mine:1"


def tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as out:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return path


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as opened:
        return {each.name: opened.extractfile(each).read() for each in opened if each.isreg()}  # type: ignore[union-attr]


def good(path: Path) -> Path:
    oci.write(path, oci.Image(names=["mine:1"], entries=[oci.file("x", os.urandom(5000))]))
    return path


def run(data: Path, *words: str) -> None:
    image.main([words[0], "--data-dir", str(data), *words[1:]])


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress]
)
def test_an_archive_may_be_packed_as_a_whole(tmp_path: Path, pack: Any) -> None:
    plain = good(tmp_path / "a.tar").read_bytes()
    (tmp_path / "packed").write_bytes(pack(plain))
    run(tmp_path / "data", "import", str(tmp_path / "packed"))
    [kept] = (tmp_path / "data" / "images").iterdir()
    assert kept.read_bytes() == plain
    (tmp_path / "cut").write_bytes(pack(plain)[:3000])
    with pytest.raises(ClusterError, match=r"cut is (damaged|not an archive of images)"):
        run(tmp_path / "data", "import", str(tmp_path / "cut"))
    assert [each.name for each in (tmp_path / "data" / "images").iterdir()] == [kept.name]


def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"\0" * (64 << 20)))
    real = os.statvfs(tmp_path)

    class Disk:
        f_bavail, f_frsize, f_blocks = (8 << 20) // real.f_frsize, real.f_frsize, 0

    monkeypatch.setattr(os, "statvfs", lambda path: Disk)
    with pytest.raises(ClusterError, match="no room"):
        run(tmp_path / "data", "import", str(tmp_path / "bomb.gz"))
    assert list((tmp_path / "data" / "images").iterdir()) == []


def test_names_that_only_oci_knows_are_passed_to_containerd_too(tmp_path: Path) -> None:
    parts = members(good(tmp_path / "a.tar"))
    index = json.loads(parts["index.json"])
    index["manifests"][0]["annotations"] = {REFERENCE: "localhost/other:2"}
    tar(tmp_path / "b.tar", {**parts, "index.json": json.dumps(index).encode()})
    run(tmp_path / "data", "import", str(tmp_path / "b.tar"))
    [kept] = (tmp_path / "data" / "images").iterdir()
    assert archives.names(kept) == ["localhost/other:2"]
    told = json.loads(members(kept)["index.json"])["manifests"][0]["annotations"]
    assert told[NAME_KEY] == "localhost/other:2"
    assert {**members(kept), "index.json": b""} == {**parts, "index.json": b""}


@pytest.mark.parametrize("kind", ["oci with a tag only", "oci", "docker's without a name"])
def test_an_archive_is_imported_under_another_name(tmp_path: Path, kind: str) -> None:
    source = good(tmp_path / "good.tar")
    parts = members(source)
    index = json.loads(parts["index.json"])
    if kind == "oci with a tag only":
        index["manifests"][0]["annotations"] = {REFERENCE: "1"}
        tar(source, {**parts, "index.json": json.dumps(index).encode()})
    if kind == "docker's without a name":
        found = json.loads(parts[f"blobs/sha256/{index['manifests'][0]['digest'][7:]}"])
        layers = [f"blobs/sha256/{each['digest'][7:]}" for each in found["layers"]]
        config = f"blobs/sha256/{found['config']['digest'][7:]}"
        documents = [{"Config": config, "RepoTags": None, "Layers": layers}]
        tar(
            source,
            {"manifest.json": json.dumps(documents).encode(), **{each: parts[each] for each in [config, *layers]}},
        )
    run(tmp_path / "data", "import", str(source), "--tag", "lab.example/x:2", "-t", "y")
    [kept] = (tmp_path / "data" / "images").iterdir()
    assert sorted(archives.names(kept)) == ["docker.io/library/y:latest", "lab.example/x:2"]
    with pytest.raises(ClusterError, match="invalid image name 'UP'"):
        run(tmp_path / "data", "import", str(source), "--tag", "UP")


def blob(parts: dict[str, bytes], content: Any, kind: str, **more: Any) -> dict[str, Any]:
    """Puts a document in; its descriptor."""
    body = json.dumps(content).encode()
    parts[f"blobs/sha256/{hashlib.sha256(body).hexdigest()}"] = body
    return {"mediaType": kind, "digest": oci.digest(body), "size": len(body), **more}


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_of_images_for_several_machines_this_ones_is_taken(tmp_path: Path, depth: int) -> None:
    parts = members(good(tmp_path / "good.tar"))
    [own] = json.loads(parts["index.json"])["manifests"]
    annotations = own.pop("annotations")
    unknown = {"architecture": "unknown", "os": "unknown"}  # what builders put beside, to vouch for it
    other = blob(parts, {"config": {"digest": "sha256:" + "0" * 64}, "layers": []}, oci.MANIFEST)
    entries = [
        {**other, "platform": {"architecture": "s390x", "os": "linux"}},
        {**own, "digest": "sha256:" + "1" * 64},  # an entry without its image
        own,
        {**other, "platform": unknown},
    ]
    if not depth:
        del entries[1]
        entries = [{**each, "annotations": annotations} for each in entries]
    for _ in range(depth):
        entries = [blob(parts, {"schemaVersion": 2, "manifests": entries}, oci.INDEX, annotations=annotations)]
    tar(tmp_path / "many.tar", {**parts, "index.json": json.dumps({"manifests": entries}).encode()})
    run(tmp_path / "data", "import", str(tmp_path / "many.tar"))
    [kept] = (tmp_path / "data" / "images").iterdir()
    assert archives.names(kept) == ["docker.io/library/mine:1"]
    [found] = ImageStore(tmp_path / "store").import_archive(kept)
    assert len(found.layers) == 1


def test_one_name_is_not_for_several_images(tmp_path: Path) -> None:
    parts = members(good(tmp_path / "good.tar"))
    index = json.loads(parts["index.json"])
    index["manifests"].append({**index["manifests"][0], "digest": "sha256:" + "0" * 64})
    tar(tmp_path / "two.tar", {**parts, "index.json": json.dumps(index).encode()})
    with pytest.raises(ClusterError, match=r"two\.tar holds 2 images, and a name is for one"):
        run(tmp_path / "data", "import", str(tmp_path / "two.tar"), "--tag", "x")
    docker = [{"Config": f"{number}.json", "RepoTags": None, "Layers": []} for number in range(2)]
    tar(tmp_path / "two.tar", {"manifest.json": json.dumps(docker).encode()})
    with pytest.raises(ClusterError, match=r"two\.tar holds 2 images"):
        run(tmp_path / "data", "import", str(tmp_path / "two.tar"), "--tag", "x")
    with pytest.raises(ClusterError, match="not an archive of images"):
        run(tmp_path / "data", "import", __file__, "--tag", "x")


def bad(tmp_path: Path, what: str) -> bytes:
    parts = members(good(tmp_path / "good.tar"))
    index = json.loads(parts["index.json"])
    layer = max((name for name in parts if name.startswith("blobs")), key=lambda name: len(parts[name]))
    changed: dict[str, dict[str, bytes]] = {
        "only a tag": {**parts, "index.json": json.dumps({"manifests": [
            {**index["manifests"][0], "annotations": {REFERENCE: "1"}}]}).encode()},
        "a changed layer": {**parts, layer: parts[layer][:-1] + b"?"},
        "a missing layer": {name: content for name, content in parts.items() if name != layer},
        "a name that is none": {**parts, "index.json": parts["index.json"].replace(b"library/mine:1", b"Bad Name")},
        "an index of another shape": {**parts, "index.json": b"[]"},
        "an index that nests without an end": {**parts, "index.json": b"[" * 100_000},
        "an index that is too long": {**parts, "index.json": b" " * (17 << 20) + b"{}"},
        "a digest that is a path": {**parts, "index.json": b'{"manifests":[{"digest":"sha256:../../etc/passwd"}]}'},
        "no documents": {"readme": b""},
        "docker's without images": {"manifest.json": b"[]"},
        "docker's of another shape": {"manifest.json": b"[1]"},
        "another processor": {"index.json": b'{"manifests":[]}'},
    }  # fmt: skip
    if what == "no tar file":
        return b"hello"
    if what == "nothing":
        return b""
    if what == "half of one":
        return good(tmp_path / "good.tar").read_bytes()[:3000]
    return tar(tmp_path / "made.tar", changed[what]).read_bytes()


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("no tar file", "no tar file, plain or packed"),
        ("nothing", "no tar file, plain or packed"),
        ("half of one", "unexpected end of data"),
        ("only a tag", "no image with a name"),
        ("a changed layer", "other content than its name says"),
        ("a missing layer", "the archive has no blobs/"),
        ("a name that is none", "invalid image name"),
        ("an index of another shape", "not an archive"),
        ("an index that nests without an end", "not an archive"),
        ("an index that is too long", "longer than"),
        ("a digest that is a path", "no sha256 digest"),
        ("no documents", "neither an OCI layout"),
        ("docker's without images", "no image for this machine"),
        ("docker's of another shape", "not an archive"),
        ("another processor", "no image for this machine"),
    ],
)
def test_a_bad_archive_is_one_line_and_is_not_kept(tmp_path: Path, what: str, told: str) -> None:
    (tmp_path / "bad.tar").write_bytes(bad(tmp_path, what))
    with pytest.raises(ClusterError, match=told) as caught:
        run(tmp_path / "data", "import", str(tmp_path / "bad.tar"))
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "bad.tar") in str(caught.value)
    assert list((tmp_path / "data" / "images").iterdir()) == []


def test_a_damaged_archive_among_those_that_are_kept_hides_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "data", "import", str(good(tmp_path / "a.tar")))
    (tmp_path / "data" / "images" / "broken.tar").write_bytes(b"x" * 600)
    run(tmp_path / "data", "ls")
    listed = capsys.readouterr().out
    assert NAME in listed
    assert "<broken.tar cannot be read>" in listed
    run(tmp_path / "data", "export", "mine:1", str(tmp_path / "out.tar"))
    run(tmp_path / "data", "rm", "mine:1")
    assert [each.name for each in (tmp_path / "data" / "images").iterdir()] == ["broken.tar"]
    run(tmp_path / "data", "import", str(tmp_path / "out.tar"))
    with pytest.raises(ClusterError, match=r"absent/out.tar: No such file"):
        run(tmp_path / "data", "export", "mine:1", str(tmp_path / "absent" / "out.tar"))


def layout(tmp_path: Path) -> Path:
    """The folder of an OCI layout."""
    for name, content in members(good(tmp_path / "good.tar")).items():
        path = tmp_path / "layout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "layout"


def largest_blob(folder: Path) -> Path:
    return max((folder / "blobs" / "sha256").iterdir(), key=lambda path: path.stat().st_size)


def test_the_folder_of_a_layout_is_imported_like_its_archive(tmp_path: Path) -> None:
    folder = layout(tmp_path)
    (folder / "notes").write_text("mine")
    (folder / "blobs" / "sha256" / "half.partial").write_text("mine")
    real = largest_blob(folder).rename(tmp_path / "elsewhere")  # as builders do that keep blobs in one place
    (folder / "blobs" / "sha256" / hashlib.sha256(real.read_bytes()).hexdigest()).symlink_to(real)
    run(tmp_path / "data", "import", str(folder))
    [kept] = (tmp_path / "data" / "images").iterdir()
    assert members(kept) == members(tmp_path / "good.tar")
    [found] = ImageStore(tmp_path / "store").import_archive(kept)
    assert found.names == [NAME]
    run(tmp_path / "data", "import", str(folder), "--tag", "other:2")
    assert len(list((tmp_path / "data" / "images").iterdir())) == 2


def test_the_folder_that_docker_saved_has_its_names(tmp_path: Path) -> None:
    folder = layout(tmp_path)
    index = json.loads((folder / "index.json").read_bytes())
    found = json.loads((folder / "blobs" / "sha256" / index["manifests"][0]["digest"][7:]).read_bytes())
    del index["manifests"][0]["annotations"]
    (folder / "index.json").write_text(json.dumps(index))
    config = f"blobs/sha256/{found['config']['digest'][7:]}"
    layers = [f"blobs/sha256/{each['digest'][7:]}" for each in found["layers"]]
    (folder / "manifest.json").write_text(json.dumps([{"Config": config, "RepoTags": ["saved:3"], "Layers": layers}]))
    run(tmp_path / "data", "import", str(folder))
    [kept] = (tmp_path / "data" / "images").iterdir()
    assert archives.names(kept) == ["docker.io/library/saved:3"]


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("no layout", "layout is a folder, but not that of an OCI layout: it has no oci-layout and no index.json"),
        ("no index", "not that of an OCI layout: it has no index.json"),
        ("no blobs", "layout is not an archive of images: the archive has no blobs/sha256/"),
        ("a missing blob", "layout is not an archive of images: the archive has no blobs/sha256/"),
        ("a changed blob", "has other content than its name says"),
        ("a blob of this machine", "has other content than its name says"),
        ("a pipe", "is no file"),
        ("a folder in place of a blob", "is no file"),
        ("a link to nothing", "No such file or directory"),
        ("an index that is too long", "index.json is longer than"),
        ("no room", "no room"),
    ],
)
def test_a_folder_that_is_no_layout_is_one_line_and_is_not_kept(
    tmp_path: Path, what: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = layout(tmp_path)
    blob = largest_blob(folder)
    if what in ("no layout", "no index"):
        (folder / "index.json").unlink()
    if what == "no layout":
        (folder / "oci-layout").unlink()
    elif what == "no blobs":
        shutil.rmtree(folder / "blobs")
    elif what == "a changed blob":
        blob.write_bytes(blob.read_bytes()[:-1] + b"?")
    elif what == "an index that is too long":
        (folder / "index.json").write_bytes(b" " * (17 << 20) + b"{}")
    elif what == "no room":
        nothing = os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255))
        monkeypatch.setattr(os, "statvfs", lambda path: nothing)
    elif what != "no index":
        blob.unlink()
        if what == "a blob of this machine":
            blob.symlink_to("/etc/passwd")
        elif what == "a pipe":
            os.mkfifo(blob)
        elif what == "a folder in place of a blob":
            blob.mkdir()
        elif what == "a link to nothing":
            blob.symlink_to("absent")
    with pytest.raises(ClusterError, match=told) as caught:
        run(tmp_path / "data", "import", str(folder))
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
    assert list((tmp_path / "data" / "images").iterdir()) == []
