"""Files that may be replaced while the server runs: certificates, authorities, configurations.

Nothing waits for a change. Who uses what was read of a file asks `changed` first, which looks at the files at most once
a second: a new certificate is used by the next connection, and an idle server does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

_EVERY = 1.0  # seconds between two looks

_State = tuple[tuple[int, int, int] | None, ...]


class Watched:
    """Some files that belong together."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._state = self._look()
        self._next = 0.0

    def changed(self) -> bool:
        """Whether any of them is another file, or has another content, than when this was true last."""
        now = monotonic()
        if now < self._next:
            return False
        self._next = now + _EVERY
        state = self._look()
        if state == self._state:
            return False
        self._state = state
        return True

    def _look(self) -> _State:
        return tuple(_of(path) for path in self._paths)


def _of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
