"""Which libraries an ELF file needs: its interpreter and its DT_NEEDED entries, read from the file itself.

`ldd` would run the program's loader for each file; reading takes a tenth of the time and runs nothing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29


@dataclass(frozen=True, slots=True)
class Needs:
    """The libraries of a file; `folders` are those it wants to be searched first, `$ORIGIN` filled in."""

    interpreter: str | None
    libraries: tuple[str, ...]
    folders: tuple[str, ...]


def needs(path: Path) -> Needs | None:
    """Read the needs of an ELF file of 64 bits, little endian; None for any other file, also for a damaged one."""
    with open(path, "rb") as file:
        if file.read(6) != b"\x7fELF\x02\x01":
            return None
        file.seek(0)
        content = file.read()
    try:
        return _read(content, path)
    except (struct.error, IndexError, ValueError):
        return None


def _read(content: bytes, path: Path) -> Needs:
    offset, size, count = *struct.unpack_from("<Q", content, 32), *struct.unpack_from("<HH", content, 54)
    segments = [struct.unpack_from("<IIQQQQ", content, offset + index * size) for index in range(count)]
    loads = [(virtual, start, length) for kind, _, start, virtual, _, length in segments if kind == _PT_LOAD]
    interpreter = None
    entries: list[tuple[int, int]] = []
    for kind, _, start, _, _, length in segments:
        if kind == _PT_INTERP:
            interpreter = content[start : start + length].rstrip(b"\0").decode()
        elif kind == _PT_DYNAMIC:
            for place in range(start, start + length, 16):
                tag, value = struct.unpack_from("<qQ", content, place)
                if tag == 0:
                    break
                entries.append((tag, value))
    table = next((_offset(value, loads) for tag, value in entries if tag == _DT_STRTAB), 0)

    def texts(*tags: int) -> list[str]:
        starts = [table + value for tag, value in entries if tag in tags]
        return [content[start : content.index(b"\0", start)].decode() for start in starts]

    folders = [part for text in texts(_DT_RUNPATH, _DT_RPATH) for part in text.split(":") if part]
    origin = str(path.resolve().parent)
    placed = tuple(part.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for part in folders)
    return Needs(interpreter, tuple(texts(_DT_NEEDED)), placed)


def _offset(address: int, loads: list[tuple[int, int, int]]) -> int:
    for virtual, start, length in loads:
        if virtual <= address < virtual + length:
            return start + address - virtual
    raise ValueError("an address outside of the file")
