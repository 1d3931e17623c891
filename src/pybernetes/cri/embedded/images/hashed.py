"""Streams that are checked while they are read."""

from __future__ import annotations

import hashlib
from typing import IO

TRAILER = 1 << 24
"""Bytes after the end of a layer's tar: padding, not more."""


class Hashed:
    """A stream whose digest is known when it has been read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """The stream's."""
        data = self._stream.read(size)
        self._hash.update(data)
        return data

    def finish(self) -> None:
        """Reads what the archive's reader had no need of."""
        left = TRAILER
        while data := self.read(1 << 16):
            left -= len(data)
            if left < 0:
                raise ValueError("the layer goes on after its end")

    @property
    def digest(self) -> str:
        """As images name it."""
        return f"sha256:{self._hash.hexdigest()}"
