"""`RUN --mount=type=bind|cache|tmpfs`: what a command sees beside the files of its stage, and leaves no layer.

Secrets and agents (`type=secret`, `type=ssh`) are refused.
"""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pybernetes.cluster.images.dockerfile import copying, running, sources
from pybernetes.cluster.images.dockerfile.ignoring import clean
from pybernetes.cluster.images.dockerfile.keeping import Kept
from pybernetes.cluster.images.dockerfile.stage import Layer, Stage

SCRIPT = "/dev/pipes/script"
"""Where the script of a here-document is."""
_KEYS = {
    "bind": ("target", "source", "from", "ro"),
    "cache": ("target", "id", "sharing", "uid", "gid", "mode", "ro"),
    "tmpfs": ("target", "size"),
}
_OTHER_NAMES = {"dst": "target", "destination": "target", "src": "source", "readonly": "ro"}


@dataclass(frozen=True)
class Wanted:
    """A mount that a flag asks for."""

    kind: str
    target: str
    source: str = ""
    source_of: str = ""
    """The stage or image of a bind; the context if empty."""
    id: str = ""
    owner: tuple[int, int] = (0, 0)
    mode: int = 0o755
    readonly: bool = False


def parse(text: str) -> Wanted:
    """Reads `type=cache,target=/x`. ValueError."""
    values: dict[str, str] = {}
    for word in next(csv.reader([text]), []):
        name, equals, value = word.partition("=")
        name = _OTHER_NAMES.get(name.lower(), name.lower())
        if name in ("rw", "readwrite"):
            name, value, equals = "ro", "false" if value in ("", "true", "1") else "true", "="
        values[name] = value if equals else "true"
    kind = values.pop("type", "bind")
    if kind not in _KEYS:
        raise ValueError(f"--mount=type={kind} is not supported: bind, cache and tmpfs are")
    for name in values:
        if name not in _KEYS[kind]:
            raise ValueError(f"--mount=type={kind} has no {name!r}: {', '.join(_KEYS[kind])}")
    target = values.get("target", "")
    if not target:
        raise ValueError("--mount wants target=PATH")
    try:
        owner = int(values.get("uid", "0")), int(values.get("gid", "0"))
        mode = int(values.get("mode", "0755"), 8)
    except ValueError:
        raise ValueError(f"--mount={text}: uid, gid and mode are numbers") from None
    read_only = values.get("ro", "true" if kind == "bind" else "false") in ("true", "1")
    id = values.get("id", "") or target
    return Wanted(kind, target, values.get("source", ""), values.get("from", ""), id, owner, mode, read_only)


class Ready:
    """A mount of a step: `key` is what it adds to the step's."""

    def __init__(
        self, wanted: Wanted, stage: Stage, kept: Kept, tree: sources.Tree, stack: contextlib.ExitStack
    ) -> None:
        self.wanted = wanted
        self._kept = kept
        self._stack = stack
        self._target = "/" + clean(
            wanted.target if wanted.target.startswith("/") else f"{stage.folder}/{wanted.target}"
        )
        if self._target == "/":
            raise ValueError("--mount: the target cannot be the root")
        self.key: Sequence[object] = [wanted.kind, self._target, wanted.id]
        if wanted.kind == "bind":
            found = sources.find(tree, wanted.source or ".")
            if len(found) != 1:
                raise ValueError(f"--mount: {wanted.source!r} does not name one file or folder")
            self._source = found[0]
            self.key = [*self.key, sources.fingerprint(self._source)]

    def spec(self, layers: Sequence[Layer]) -> dict[str, Any]:
        """As `inside.container` takes it; `layers` are those of the stage or image that a bind is from."""
        wanted = self.wanted
        if wanted.kind == "cache":
            folder = running.cache_folder(self._kept.root / "caches", wanted.id, wanted.mode, wanted.owner)
            return running.bind(folder, self._target, readonly=wanted.readonly)
        if wanted.kind == "tmpfs":
            folder = self._stack.enter_context(self._kept.temporary())
            folder.chmod(0o755)
            return running.bind(folder, self._target)
        if wanted.source_of and wanted.readonly:
            spec = running.bind(self._kept.root, self._target, readonly=True)
            return {**spec, "layers": self._kept.lower(layers), "sub_path": clean(wanted.source)}
        # A copy, because of .dockerignore, and because what is written to it goes nowhere.
        folder = self._stack.enter_context(self._kept.temporary())
        folder.chmod(0o755)
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            target = copying.Target(root)
            target.copy([self._source], "/content", into=False)
            target.finish()
        finally:
            os.close(root)
        return running.bind(folder / "content", self._target, readonly=wanted.readonly)
