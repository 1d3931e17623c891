"""Data of a cluster is removed by several threads, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybernetes.cluster.removing import PARTS, remove_tree
from pybernetes.cri.mounting import bind, may_mount, unmount


def tree(path: Path, folders: int) -> None:
    """Folders two levels deep, each with a file, and something beside them."""
    for number in range(folders):
        (folder := path / f"a{number % 3}" / f"b{number}").mkdir(parents=True)
        (folder / "file").write_text("x")
    (path / "file").write_text("x")


@pytest.mark.parametrize("folders", [0, 1, PARTS + 10])
def test_a_tree_is_removed_and_not_what_its_links_lead_to(tmp_path: Path, folders: int) -> None:
    (outside := tmp_path / "outside").mkdir()
    (outside / "kept").write_text("x")
    (data := tmp_path / "data").mkdir()
    tree(data, folders)
    (data / "link").symlink_to(outside)
    remove_tree(data)
    assert os.listdir(tmp_path) == ["outside"]
    assert os.listdir(outside) == ["kept"]


@pytest.mark.skipif(not may_mount(), reason="may mount nothing")
def test_what_is_mounted_in_it_stays(tmp_path: Path) -> None:
    (outside := tmp_path / "outside").mkdir()
    tree(outside, PARTS + 10)
    tree(data := tmp_path / "data", PARTS + 10)
    (mounted := data / "mounted").mkdir()
    bind(str(outside), mounted)
    try:
        with pytest.raises(OSError, match=r"busy|cross-device"):
            remove_tree(data)
    finally:
        unmount(mounted)
    assert len(list(outside.rglob("file"))) == PARTS + 11
    assert os.listdir(data) == ["mounted"]
