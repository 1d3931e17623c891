"""What can happen to a file of a program's state: each makes another thing of what is at a path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pybernetes.component.removal import remove_tree


def _text(text: str) -> Callable[[Path, bytes], object]:
    return lambda path, _: path.write_text(text)


DAMAGES: dict[str, Callable[[Path, bytes], object]] = {
    "half": lambda path, before: path.write_bytes(before[: len(before) // 2]),
    "empty": _text(""),
    "garbage": lambda path, _: path.write_bytes(bytes(range(255, 127, -1))),
    "zeros": lambda path, before: path.write_bytes(bytes(len(before))),
    "list": _text("[]"),
    "object": _text('{"a": {"b": []}}'),
    "null": _text("null"),
    "number": _text("12"),
    "folder": lambda path, _: (path / "inner").mkdir(parents=True),
    "loop": lambda path, _: path.symlink_to(path.name),
    "pipe": lambda path, _: os.mkfifo(path),
}


def damage(path: Path, how: str) -> None:
    """Put something else in the place of a file, if it is there or not."""
    before = path.read_bytes() if path.is_file() else b""
    remove_tree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    DAMAGES[how](path, before)
