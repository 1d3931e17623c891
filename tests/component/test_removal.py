"""`remove_tree`: however deep a tree is, nothing of it is left, and nothing beside it is touched."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pybernetes.component.removal import remove_tree

FOLDERS = ("fs/dev/pts/a", "fs/etc/b/c", "fs/proc/d/e", "fs/scratch/f/g", "fs/usr/lib/h", "fs/var/run/i", "work/work")


class Killed(BaseException):
    """In place of a kill -9: it is not caught anywhere."""


def until_killed(step: int, monkeypatch: pytest.MonkeyPatch, tree: Path) -> bool:
    """Removes a tree until right before the step of that number; whether it came so far."""
    steps = itertools.count(1)

    def counted(function: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any, **more: Any) -> None:
            if next(steps) == step:
                raise Killed
            function(*arguments, **more)

        return call

    with monkeypatch.context() as patched:
        for name in ("rename", "rmdir", "unlink"):
            patched.setattr(os, name, counted(getattr(os, name)))
        try:
            remove_tree(tree)
        except Killed:
            return True
    return False


def test_a_removal_that_was_killed_at_any_step_is_finished_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    for step in itertools.count(1):
        for folder in FOLDERS:
            (tree / folder).mkdir(parents=True)
            (tree / folder / "file").touch()
        killed = until_killed(step, monkeypatch, tree)
        assert tree.exists() == killed
        remove_tree(tree)  # by a process that may have the pid of the one that was killed, as this one has
        assert not tree.exists(), f"step {step}"
        if not killed:
            break
    assert step > 30


def nested(top: Path, depth: int) -> None:
    """Folders in folders, deeper than a path may be long."""
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=folder)
        deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)


def test_folders_nested_deeper_than_a_path_may_be_long_are_removed(tmp_path: Path) -> None:
    nested(tmp_path / "tree", 5000)
    remove_tree(tmp_path / "tree")
    assert list(tmp_path.iterdir()) == []


def test_a_symbolic_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").touch()
    (tmp_path / "tree/inner").mkdir(parents=True)
    (tmp_path / "tree/inner/link").symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "tree")
    remove_tree(tmp_path / "link")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept/file").exists()


def test_a_folder_that_becomes_a_link_while_it_is_removed_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").touch()
    (tmp_path / "tree/inner").mkdir(parents=True)
    scandir = os.scandir

    def swap(folder: int) -> Any:
        entries = scandir(folder)
        if (tmp_path / "tree/inner").is_dir() and not (tmp_path / "tree/inner").is_symlink():
            (tmp_path / "tree/inner").rmdir()
            (tmp_path / "tree/inner").symlink_to(tmp_path / "kept")
        return entries

    monkeypatch.setattr(os, "scandir", swap)
    remove_tree(tmp_path / "tree", ignore_errors=True)
    assert (tmp_path / "kept/file").exists()


def test_what_is_left_is_reported_and_the_rest_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "busy", "c"):
        (tmp_path / "tree" / name).mkdir(parents=True)
        (tmp_path / "tree" / name / "file").touch()
    rmdir = os.rmdir

    def refuse(name: str, dir_fd: int) -> None:
        if name == "busy":
            raise OSError(16, "Device or resource busy", name)
        rmdir(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", refuse)
    with pytest.raises(OSError, match="busy"):
        remove_tree(tmp_path / "tree")
    assert [path.name for path in (tmp_path / "tree").iterdir()] == ["busy"]


def test_why_a_folder_cannot_be_listed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree/a").mkdir(parents=True)

    def fail(folder: int) -> None:
        raise OSError(5, "Input/output error")

    (tmp_path / "tree/a/file").touch()
    monkeypatch.setattr(os, "scandir", fail)
    with pytest.raises(OSError, match="Input/output error"):
        remove_tree(tmp_path / "tree")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.parametrize("place", ["tree", "tree/a", "tree/a/b"])
def test_nothing_behind_a_mount_point_is_removed(tmp_path: Path, place: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").touch()
    (tmp_path / "tree/a/b").mkdir(parents=True)
    subprocess.run(["mount", "--bind", tmp_path / "data", tmp_path / place], check=True)
    try:
        with pytest.raises(OSError, match=r"cross-device|busy|not empty"):
            remove_tree(tmp_path / "tree")
        assert (tmp_path / "data/file").exists()
    finally:
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if str(tmp_path) in line:
                subprocess.run(["umount", line.split()[4]], check=True)
    remove_tree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
