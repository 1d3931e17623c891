"""Files in which a kubelet remembers what the API server does not know, with a checksum.

`state_files` writes them durably and sets one aside that cannot be read: the kubelet then begins without it.

Names, forms and checksums are upstream's, so that one kubelet can go on where another stopped. The checksum is a hash
of how Go prints the value; `(string)TEXT` for a text, more for structs (`go_map` helps).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from pybernetes.component import state_files

from .container.hash import fnv32a


class CorruptCheckpoint(Exception):
    """The checksum of a checkpoint is wrong, or its content cannot be read."""


class _File(msgspec.Struct):
    data: str
    checksum: int


def checksum(text: str) -> int:
    """The checksum of a text."""
    return fnv32a(text.encode())


def save_text(path: Path, data: str) -> None:
    """Write a text with its checksum; raises OSError."""
    state_files.write(path, msgspec.json.encode(_File(data, checksum(f"(string){data}"))))


def decode_text(content: bytes) -> str:
    """The text of a checkpoint; raises `CorruptCheckpoint` or `msgspec.MsgspecError`: for `state_files.read`."""
    found = msgspec.json.decode(content, type=_File)
    if found.checksum != checksum(f"(string){found.data}"):
        raise CorruptCheckpoint("checkpoint is corrupted")
    return found.data


def go_map(values: Mapping[str, str]) -> str:
    """How Go prints a map of texts, or of what has been printed already, for checksums: `map[a:1 b:2]`."""
    return "map[" + " ".join(f"{key}:{values[key]}" for key in sorted(values)) + "]"
