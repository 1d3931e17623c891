"""`pyb image pull` and `export`: from a registry with a password into the cluster's archives, and out of them."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cri.embedded.images.registries import PASSWORD, USER, FakeRegistry, basic, digest, layer, send

from pybernetes.cluster.commands import image
from pybernetes.cluster.errors import ClusterError
from pybernetes.cri.embedded.images import archiving
from pybernetes.cri.embedded.images.store import ImageStore


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry().serving() as serving:
        serving.add("1", layer(name="one"), layer(name="two"))
        yield serving


@pytest.fixture(autouse=True)
def nobody_is_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))


def wants_password(registry: FakeRegistry) -> None:
    def before(handler: Any) -> bool:
        if handler.headers.get("Authorization") == basic():
            return False
        send(handler, 401, b"", {"WWW-Authenticate": 'Basic realm="lab"'})
        return True

    registry.before = before


def run(data: Path, *words: str) -> int:
    return image.main([words[0], "--data-dir", str(data), *words[1:]])


def test_what_is_pulled_is_kept_and_can_be_exported_and_imported(
    registry: FakeRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{registry.host}/a/b:1"
    assert run(tmp_path / "data", "pull", name) == 0
    assert f"Pulled {name}" in capsys.readouterr().out
    assert [each.suffix for each in (tmp_path / "data" / "images").iterdir()] == [".tar"]
    with pytest.raises(ClusterError, match="there is no cluster"):
        run(tmp_path / "other", "export", name, str(tmp_path / "x.tar"))
    [archive] = (tmp_path / "data" / "images").iterdir()
    assert run(tmp_path / "data", "export", name, str(tmp_path / "out.tar")) == 0
    assert archive.read_bytes() == (tmp_path / "out.tar").read_bytes()
    [found] = ImageStore(tmp_path / "store").import_archive(tmp_path / "out.tar")
    assert found.names == [name]
    assert len(found.layers) == 2
    with pytest.raises(ClusterError, match=r"no archive of docker.io/library/other:1 is kept"):
        run(tmp_path / "data", "export", "other:1", str(tmp_path / "out.tar"))


def test_an_export_writes_through_links_and_to_what_is_no_file(registry: FakeRegistry, tmp_path: Path) -> None:
    name = f"{registry.host}/a/b:1"
    run(tmp_path / "data", "pull", name)
    [archive] = (tmp_path / "data" / "images").iterdir()
    (tmp_path / "link.tar").symlink_to(tmp_path / "real.tar")
    run(tmp_path / "data", "export", name, str(tmp_path / "link.tar"))
    assert (tmp_path / "link.tar").is_symlink()
    assert (tmp_path / "real.tar").read_bytes() == archive.read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    run(tmp_path / "data", "export", name, str(pipe))
    reader.join()
    assert (pipe.is_fifo(), read) == (True, [archive.read_bytes()])
    with pytest.raises(ClusterError, match="Is a directory"):
        run(tmp_path / "data", "export", name, str(tmp_path))


def docker_archive(path: Path, tag: str) -> str:
    """As `docker save` wrote them for years: a folder for each layer, links to those that are there; the image's id."""
    one, two = layer(first="1"), layer(second="2")
    diffs = [digest(each) for each in (one, two, one)]
    config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"diff_ids": diffs}}, indent=1).encode()
    entry = {"Config": "c.json", "RepoTags": [tag], "Layers": ["a/layer.tar", "b/layer.tar", "c/layer.tar"]}
    with tarfile.open(path, "w") as out:
        for name, content in (
            ("a/layer.tar", one),
            ("b/layer.tar", gzip.compress(two)),
            ("c.json", config),
            ("manifest.json", json.dumps([entry]).encode()),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("c/layer.tar")
        link.type, link.linkname = tarfile.SYMTYPE, "../a/layer.tar"
        out.addfile(link)
    return digest(config)


def test_what_docker_saved_is_exported_as_oci_and_stays_the_same_image(tmp_path: Path) -> None:
    id = docker_archive(tmp_path / "saved.tar", "mine:1")
    run(tmp_path / "data", "import", str(tmp_path / "saved.tar"))
    run(tmp_path / "data", "export", "mine:1", str(tmp_path / "out.tar"))
    with tarfile.open(tmp_path / "out.tar") as opened:
        assert {"oci-layout", "index.json"} <= set(opened.getnames())
    [found] = ImageStore(tmp_path / "store").import_archive(tmp_path / "out.tar")
    assert (found.id, found.names, len(found.layers)) == (id, ["docker.io/library/mine:1"], 3)
    assert [path.name for path in (tmp_path / "data" / "images").iterdir()] == ["docker.io_library_mine_1.tar"]
    if shutil.which("skopeo"):
        copy = ["skopeo", "--insecure-policy", "copy", f"oci-archive:{tmp_path}/out.tar"]
        done = subprocess.run([*copy, f"docker-archive:{tmp_path}/back.tar:back:1"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        run(tmp_path / "data", "import", str(tmp_path / "back.tar"))


def test_a_password_comes_from_stdin_or_from_docker_login(
    registry: FakeRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wants_password(registry)
    name = f"{registry.host}/a/b:1"
    with pytest.raises(ClusterError, match="401 Unauthorized"):
        run(tmp_path / "data", "pull", name)
    with pytest.raises(ClusterError, match="go together"):
        run(tmp_path / "data", "pull", name, "--username", USER)
    monkeypatch.setattr(sys, "stdin", io.StringIO(PASSWORD + "\n"))
    assert run(tmp_path / "data", "pull", name, "--username", USER, "--password-stdin") == 0
    (tmp_path / "docker").mkdir()
    auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    (tmp_path / "docker" / "config.json").write_text(json.dumps({"auths": {registry.host: {"auth": auth}}}))
    assert run(tmp_path / "data", "pull", name) == 0
    (tmp_path / "docker" / "config.json").write_text(f'{{"auths": {{"{registry.host}": 5}}}}')
    with pytest.raises(ClusterError, match="docker login"):
        run(tmp_path / "data", "pull", name)


def test_a_pull_that_was_ended_goes_on_where_it_was(
    registry: FakeRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.add("2", layer(big=random.Random(1).randbytes(400_000).hex()))
    name, _ = max(registry.blobs.items(), key=lambda each: len(each[1]))

    def interrupted(blob: Any, have: int) -> None:
        if 100_000 < have < blob.size:
            raise KeyboardInterrupt

    target = tmp_path / "x.tar"
    with pytest.raises(KeyboardInterrupt):
        archiving.archive([], f"{registry.host}/a/b:2", None, target, interrupted)
    assert not target.exists()
    archiving.archive([], f"{registry.host}/a/b:2", None, target)
    begins = [headers["Range"] for _, path, headers in registry.requests if name in path and "Range" in headers]
    assert len(begins) == 1
    assert int(begins[0].removeprefix("bytes=").removesuffix("-")) > 100_000
    assert [each.name for each in tmp_path.glob("*x.tar*")] == ["x.tar"]


def test_progress_is_a_line_for_each_blob_or_a_bar_on_a_terminal(
    registry: FakeRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "data", "pull", f"{registry.host}/a/b:1")
    said = capsys.readouterr().out
    assert len(re.findall(r"(?m)^[0-9a-f]{12}  0\.0 MB$", said)) == 3
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    run(tmp_path / "data", "pull", f"{registry.host}/a/b:1")
    assert re.search(r"[0-9a-f]{12} .*bytes", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "told"),
    [("{host}/a/b:2", "not found"), ("Bad//Name", "failed to parse"), ("{host}/a@sha256:" + "0" * 64, "has a tag")],
)
def test_mistakes_are_reported_and_leave_nothing(registry: FakeRegistry, tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(ClusterError, match=told):
        run(tmp_path / "data", "pull", name.format(host=registry.host))
    assert list((tmp_path / "data" / "images").iterdir()) == []


def test_an_image_that_lies_is_not_kept(registry: FakeRegistry, tmp_path: Path) -> None:
    name = json.loads(registry.manifests["1"][1])["layers"][0]["digest"]
    registry.blobs[name] = registry.blobs[name][:-1] + b"x"
    with pytest.raises(ClusterError, match="unexpected commit digest"):
        run(tmp_path / "data", "pull", f"{registry.host}/a/b:1")
    assert not list((tmp_path / "data" / "images").glob("*.tar"))
