"""Sentences about kinds and fields, for `kubectl explain`.

Upstream's are not part of this project. The PyPI package `lightkube-models`, which is installed with this one, carries
them in its docstrings; at another level of the API, or without it, our own short words about a kind have to do. The
modules are read as text when the first document is asked for, and never imported: that would need more packages.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from pathlib import Path

from pybernetes.version import GIT_VERSION

_CLASS = re.compile(r'^class (\w+)\(\w+\):\n    r?"""(.*?)"""', re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^      \* \*\*(\S+?)\*\* ``.*?`` - ?", re.MULTILINE)
_NOTHING: tuple[str, dict[str, str]] = ("", {})


class Descriptions:
    """Finds the sentences of a definition; knows none unless the package is there."""

    def __init__(self) -> None:
        self._folder = _folder()

    def of(self, definition: str) -> tuple[str, dict[str, str]]:
        """The description of a definition, and those of its fields."""
        if self._folder is None:
            return _NOTHING
        package, version, name = definition.split(".")[-3:]
        return _module(self._folder / f"{package}_{version}.py").get(name, _NOTHING)


def _folder() -> Path | None:
    level = GIT_VERSION.removeprefix("v").rpartition(".")[0].partition("+")[0]
    try:
        if not metadata.version("lightkube-models").startswith(f"{level}."):
            return None
        folder = Path(str(metadata.distribution("lightkube-models").locate_file("lightkube/models")))
    except metadata.PackageNotFoundError:
        return None
    return folder if folder.is_dir() else None


@cache
def _module(path: Path) -> dict[str, tuple[str, dict[str, str]]]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    return {match[1]: _docstring(match[2]) for match in _CLASS.finditer(text)}


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    described, _, parameters = text.partition("**parameters**")
    parts = _FIELD.split(parameters)[1:]
    names = [_wire(name) for name in parts[::2]]
    return _words(described), {name: _words(words) for name, words in zip(names, parts[1::2], strict=True)}


def _wire(name: str) -> str:
    """The name of a field that could not be one in Python: `from_`, `x_kubernetes_list_type`."""
    return name.replace("_", "-") if name.startswith("x_") else name.rstrip("_")


def _words(text: str) -> str:
    """The text without the layout of the docstring: paragraphs stay, their lines are joined."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n")).strip()
