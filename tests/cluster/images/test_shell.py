"""The image `shell`, made of this machine's own programs where there is no static busybox."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from pybernetes.cluster.images import builtin, oci, shell, store
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import programs
from pybernetes.cri.embedded.images.archive import NAME


def names(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        file = tar.extractfile("index.json")
        assert file is not None
        return [each["annotations"][NAME] for each in json.load(file)["manifests"]]


def test_there_is_always_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "busybox_program", lambda: None)
    layout = Layout("c", tmp_path)
    store.ensure_builtin(layout)
    made = [name for path in layout.images.glob("*.tar") for name in names(path)]
    assert sorted(made) == [shell.NAME, builtin.PAUSE]


@pytest.mark.skipif(builtin.busybox_program() is None, reason="no static busybox")
def test_busybox_is_the_shell_where_it_is(tmp_path: Path) -> None:
    layout = Layout("c", tmp_path)
    store.ensure_builtin(layout)
    assert shell.NAME in names(store.archive_path(layout, builtin.BUSYBOX))
    assert not store.archive_path(layout, shell.NAME).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_its_programs_find_their_libraries(tmp_path: Path) -> None:
    made = shell.image()
    assert made is not None
    with open(tmp_path / "layer.tar", "wb") as file:
        oci.write_layer(file, made.entries)
    root = tmp_path / "root"
    subprocess.run(["tar", "-C", tmp_path, "-xf", tmp_path / "layer.tar", "--one-top-level=root"], check=True)
    command = ["chroot", root, "sh", "-c", "echo one two | sed s/one/1/; ls -d /tmp; id -u; sleep 0"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": programs.PATH})
    assert (done.stdout, done.stderr) == ("1 two\n/tmp\n0\n", "")


def test_a_machine_without_a_shell_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PATH", "/nowhere")
    assert shell.image() is None
