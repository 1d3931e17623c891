"""OCI archives: the same content gives the same bytes, and other programs read them."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from pybernetes.cluster.images import oci

IMAGE = oci.Image(
    names=["demo:1", "example.org:5000/team/demo:2"],
    entries=[
        oci.file("usr/bin/tool", b"#!/bin/sh\n", 0o755),
        oci.link("bin/tool", "../usr/bin/tool"),
        oci.folder("tmp", 0o1777),
        oci.Entry("etc/own", b"x", mode=0o640, owner=(33, 34)),
    ],
    entrypoint=["/usr/bin/tool"],
    command=["--help"],
    user="65535:65535",
    ports=["80/tcp"],
    labels={"a": "b"},
)


def layer(archive: bytes) -> tarfile.TarFile:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        index = json.loads(_member(tar, "index.json"))
        manifest = json.loads(_blob(tar, index["manifests"][0]["digest"]))
        return tarfile.open(fileobj=io.BytesIO(_blob(tar, manifest["layers"][0]["digest"])), mode="r:gz")


def _blob(tar: tarfile.TarFile, digest: str) -> bytes:
    content = _member(tar, f"blobs/sha256/{digest.removeprefix('sha256:')}")
    assert oci.digest(content) == digest
    return content


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.extractfile(name)
    assert member is not None
    return member.read()


def test_the_same_image_has_the_same_bytes(tmp_path: Path) -> None:
    assert oci.archive(IMAGE) == oci.archive(IMAGE)
    assert oci.write(tmp_path / "one.tar", IMAGE) == oci.write(tmp_path / "two.tar", IMAGE)
    assert (tmp_path / "one.tar").read_bytes() == oci.archive(IMAGE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.tar", "two.tar"]


def test_a_layer_holds_the_paths_with_their_folders_owners_and_modes() -> None:
    with layer(oci.archive(IMAGE)) as tar:
        found = {each.name: each for each in tar.getmembers()}
    assert list(found) == ["usr", "usr/bin", "usr/bin/tool", "bin", "bin/tool", "tmp", "etc", "etc/own"]
    assert found["usr"].isdir()
    assert (found["usr/bin/tool"].mode, found["tmp"].mode) == (0o755, 0o1777)
    assert (found["bin/tool"].issym(), found["bin/tool"].linkname) == (True, "../usr/bin/tool")
    assert (found["etc/own"].uid, found["etc/own"].gid, found["etc/own"].mode) == (33, 34, 0o640)
    assert {each.mtime for each in found.values()} == {0}


def test_a_path_counts_once_and_the_first_wins() -> None:
    out = io.BytesIO()
    oci.write_layer(out, [oci.file("a/b", b"1"), oci.folder("a", 0o700), oci.file("/a/b", b"2")])
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as tar:
        assert tar.getnames() == ["a", "a/b"]
        assert _member(tar, "a/b") == b"1"


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("nginx:1.22", "docker.io/library/nginx:1.22"),
        ("team/app", "docker.io/team/app:latest"),
        ("localhost/app:2", "localhost/app:2"),
        ("10.0.0.1:5000/app", "10.0.0.1:5000/app:latest"),
        ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
    ],
)
def test_names_are_completed_as_runtimes_do(name: str, full: str) -> None:
    assert oci.full_name(name) == full
    assert oci.full_name(full) == full


@pytest.mark.parametrize(
    "name", ["", " a", "A", "a b", "a:", "a:-x", "a//b", "a@sha256:00", "-a", "a:b:c", "a:" + "x" * 129]
)
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="invalid image name"):
        oci.full_name(name)


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="skopeo is not installed")
def test_skopeo_reads_what_was_written(tmp_path: Path) -> None:
    archive = tmp_path / "image.tar"
    digest = oci.write(archive, IMAGE)
    shown = subprocess.run(
        ["skopeo", "inspect", "--config", f"oci-archive:{archive}:2"], capture_output=True, text=True, check=True
    ).stdout
    config = json.loads(shown)
    assert (config["architecture"], config["os"]) == (oci.this_architecture(), "linux")
    assert config["config"]["Entrypoint"] == ["/usr/bin/tool"]
    assert config["config"]["Cmd"] == ["--help"]
    assert config["config"]["User"] == "65535:65535"
    assert config["config"]["ExposedPorts"] == {"80/tcp": {}}
    assert config["config"]["Labels"] == {"a": "b"}
    raw = subprocess.run(["skopeo", "inspect", f"oci-archive:{archive}:1"], capture_output=True, text=True, check=True)
    assert json.loads(raw.stdout)["Digest"] == digest
