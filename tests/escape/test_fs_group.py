"""fsGroup on a volume that another pod changes meanwhile: a link in place of a file leads to nothing of the node."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from escape.racing import exchange

from pybernetes.kubelet.volumes import ownership

GROUP = 4711


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_that_comes_between_the_look_and_the_change_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    outside, volume = tmp_path / "outside", tmp_path / "volume"
    for each in (outside, volume):
        each.mkdir(mode=0o700)
    inner = volume / "inner"
    if kind == "file":
        (target := outside / "shadow").touch(0o600)
        inner.touch(0o600)
    else:
        (target := outside / "etc").mkdir(mode=0o700)
        (target / "shadow").touch(0o600)
        inner.mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(target)
    before = [(os.stat(each).st_mode, os.stat(each).st_gid) for each in (target, *outside.rglob("*"))]

    # Wherever the kernel is asked, the exchange happens right before.
    for name in ("chmod", "chown", "lchown", "scandir"):
        real = getattr(os, name)

        def racing(*words: object, real: object = real, **more: object) -> object:
            if link.is_symlink():
                exchange(inner, link)
            return real(*words, **more)  # type: ignore[operator]

        monkeypatch.setattr(ownership.os, name, racing)
    ownership.set_group(volume, GROUP, read_only=False)
    monkeypatch.undo()
    assert [(os.stat(each).st_mode, os.stat(each).st_gid) for each in (target, *outside.rglob("*"))] == before
