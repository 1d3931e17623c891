"""A container's root as a copy of layers."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pybernetes.cri.embedded.images.copying import copy_layers


def test_layers_lie_over_each_other_and_links_stay_inside(tmp_path: Path) -> None:
    lower, upper, root = tmp_path / "lower", tmp_path / "upper", tmp_path / "root"
    for folder in (lower / "etc/old", lower / "bin", upper / "etc/old", upper / "var", root):
        folder.mkdir(parents=True)
    (lower / "etc/name").write_text("lower")
    (lower / "etc/old/hidden").write_text("hidden by an opaque folder")
    (lower / "etc/gone").write_text("taken away")
    (lower / "bin/busybox").write_text("program")
    (lower / "bin/busybox").chmod(0o755)
    (lower / "bin/sh").symlink_to("/bin/busybox")
    (lower / "var").symlink_to("/etc")
    (upper / "etc/name").write_text("upper")
    os.mknod(upper / "etc/gone", stat.S_IFCHR, 0)
    os.setxattr(upper / "etc/old", "user.overlay.opaque", b"y")
    (upper / "etc/old/new").write_text("new")
    os.mkfifo(upper / "etc/pipe")
    copy_layers([lower, upper], root)
    assert (root / "etc/name").read_text() == "upper"
    assert sorted(path.name for path in (root / "etc").iterdir()) == ["name", "old", "pipe"]
    assert [path.name for path in (root / "etc/old").iterdir()] == ["new"]
    assert os.readlink(root / "bin/sh") == "busybox"
    assert os.access(root / "bin/sh", os.X_OK)
    assert (root / "var").is_dir()
    assert not (root / "var").is_symlink()
