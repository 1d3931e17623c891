"""Files in which a kubelet remembers what the API server does not know: written whole or not at all, with a checksum.

Names, forms and checksums are upstream's, so that one kubelet can go on where another stopped. The checksum is a hash
of how Go prints the value; `(string)TEXT` for a text, more for structs (`go_map` helps).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from .hashing import fnv32a


class CorruptCheckpoint(Exception):
    """A checkpoint that nobody can trust; the node must be drained and the file removed."""


class _File(msgspec.Struct):
    data: str
    checksum: int


def checksum(text: str) -> int:
    """The checksum of a text."""
    return fnv32a(text.encode())


def write_file(path: Path, content: bytes) -> None:
    """Replace a file as a whole, so that a reader and a crash see the old or the new content."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        fd = os.open(temporary, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(temporary, flags, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(content)
        os.rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def save_text(path: Path, data: str) -> None:
    """Write a text with its checksum."""
    write_file(path, msgspec.json.encode(_File(data, checksum(f"(string){data}"))))


def load_text(path: Path) -> str | None:
    """The text of a checkpoint, None if there is none; `CorruptCheckpoint` if it was changed by others."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_File)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise CorruptCheckpoint(f"checkpoint {path} cannot be read: {error}") from error
    if found.checksum != checksum(f"(string){found.data}"):
        raise CorruptCheckpoint(f"checkpoint is corrupted: {path}")
    return found.data


def go_map(values: Mapping[str, str]) -> str:
    """How Go prints a map of texts, or of what has been printed already, for checksums: `map[a:1 b:2]`."""
    return "map[" + " ".join(f"{key}:{values[key]}" for key in sorted(values)) + "]"
