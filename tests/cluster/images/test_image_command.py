"""`pyb image` without a running node: images wait in the data of the cluster, and mistakes are one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybernetes.cluster import cli
from pybernetes.cluster.commands import image
from pybernetes.cluster.images import oci


@pytest.fixture
def pyb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> object:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    os.makedirs(tmp_path / "home")

    def run(*words: str, code: int = 0) -> str:
        got = cli.main(["image", *words])
        said = capsys.readouterr()
        assert got == code, said.out + said.err
        return said.out + said.err

    return run


def archive(folder: Path, *names: str) -> str:
    path = folder / "image.tar"
    oci.write(path, oci.Image(names=names, entries=[oci.file("x", b"x")]))
    return str(path)


def test_images_may_be_there_before_the_clusters_first_start(pyb, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    said = pyb("import", archive(tmp_path, "mine:1", "mine:2"))
    assert "No node runs" in said
    assert "Imported docker.io/library/mine:1, docker.io/library/mine:2" in said
    listed = pyb("ls")
    assert "docker.io/library/mine:1" in listed
    assert "none runs" in listed
    assert "Removed docker.io/library/mine:2" in pyb("rm", "mine:2")
    assert "mine" not in pyb("ls")


def test_an_image_gets_one_more_name_which_another_one_loses(pyb, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pyb("import", archive(tmp_path, "mine:1"))
    pyb("import", archive(tmp_path, "other:1", "other:2"))
    said = pyb("tag", "mine:1", "other:1")
    assert "Tagged docker.io/library/mine:1 as docker.io/library/other:1" in said
    names = sorted(line.split()[0].rpartition("/")[2] for line in pyb("ls").splitlines()[1:])
    assert names == ["mine:1", "other:1", "other:2"]
    pyb("rm", "mine:1")
    assert "other:2" in (listed := pyb("ls"))
    assert "other:1" not in listed, "it was a name of the image that is gone"
    assert "no image docker.io/library/none:1 is kept here" in pyb("tag", "none:1", "x:1", code=1)
    assert "0 images, 0.0 MB" in pyb("prune")


def test_mistakes_are_one_line(pyb, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert "there is no cluster 'pybernetes'; `pyb up` makes one" in pyb("ls", code=1)
    assert "No such file" in pyb("import", str(tmp_path / "absent.tar"), code=1)
    assert "invalid image name 'UP'" in pyb("from-package", "--tag", "UP", "bash", code=1)
    pyb("import", archive(tmp_path, "mine:1"))
    assert "no node has an image docker.io/library/other:1" in pyb("rm", "other:1", code=1)
    assert "invalid image name" in pyb("rm", "a b", code=1)


def test_a_purge_removes_what_nests_deeper_than_python_goes(pyb, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    data = tmp_path / "data"
    pyb("import", "--data-dir", str(data), archive(tmp_path, "mine:1"))
    here = os.getcwd()
    try:
        os.chdir(data / "images")
        for _ in range(2000):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    assert cli.main(["down", "--purge", "--data-dir", str(data)]) == 0
    assert not data.exists()


def test_what_commands_left_that_were_killed_goes_and_nothing_else(pyb, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pyb("import", archive(tmp_path, "mine:1"))
    images = tmp_path / "home/.pybernetes/pybernetes/images"
    [kept] = images.iterdir()
    gone = 2**22 + 1  # no process has such a number
    for name in (f".import.{gone}", f".build.{gone}", ".a.tar.new", f".a.tar.{gone}", f".build.{os.getpid()}"):
        (images / name).write_text("x")
    for name in (".old.tar.downloads", ".new.tar.downloads"):
        (images / name).mkdir()
    os.utime(images / ".old.tar.downloads", (1, 1))
    pyb("ls")
    assert sorted(images.iterdir()) == sorted([images / f".build.{os.getpid()}", images / ".new.tar.downloads", kept])


def test_a_command_may_have_words_that_begin_with_a_dash() -> None:
    parsed = image._parse(["from-package", "nginx", "--tag", "n:1", "--command", "nginx", "-g", "daemon off;", "--x"])
    assert (parsed.package, parsed.command) == ("nginx", ["nginx", "-g", "daemon off;", "--x"])
