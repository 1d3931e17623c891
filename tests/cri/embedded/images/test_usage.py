"""Trees that strangers made are removed whole, also by the second who tries because the first was killed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pybernetes.cri.embedded.images.usage import remove_tree

FOLDERS = ("fs/dev/pts/a", "fs/etc/b/c", "fs/proc/d/e", "fs/scratch/f/g", "fs/usr/lib/h", "fs/var/run/i", "work/work")


class Killed(BaseException):
    """In place of a kill -9: nobody catches it."""


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
