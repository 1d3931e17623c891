"""A container's log file as a client wants it: the last lines, since a time, as it grows.

A file that is followed is read again when the kernel says that it has changed, and once a second whatever it says. The
file may be rotated meanwhile: the old one is read to its end before the new one is opened.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import BinaryIO

from pybernetes.component import offload
from pybernetes.component.openat2 import open_without_links

from .inotify import FolderWatch, open_watch
from .log_lines import Selection, parse

CHECK = 1.0  # seconds between looks at a file that does not grow; upstream's logForceCheckPeriod
OPEN_WITHIN = 10.0
_BLOCK = 1 << 16


class LogError(Exception):
    """The log cannot be read; the text says why, in upstream's words."""


def open_log(path: str) -> BinaryIO:
    """The file. Raises LogError; also if it is a link or a mount, which a pod may have put there.

    Upstream follows links, for runtimes that keep logs elsewhere; those that serve CRI write the file itself.
    """
    try:
        return _open(path)
    except FileNotFoundError as error:
        why = f"lstat {path}: {(error.strerror or '').lower()}"
        raise LogError(f"failed to try resolving symlinks in path {_quoted(path)}: {why}") from None
    except OSError as error:
        raise LogError(f"failed to open log file {_quoted(path)}: {(error.strerror or '').lower()}") from None


def _open(path: str) -> BinaryIO:
    return open(path, "rb", opener=lambda each, flags: open_without_links(each, flags | os.O_NONBLOCK))


async def read_log(
    file: BinaryIO,
    selection: Selection,
    *,
    tail: int | None = None,
    follow: bool = False,
    running: Callable[[], Awaitable[bool]] | None = None,
) -> AsyncGenerator[bytes, None]:
    """The wanted lines, some at a time. Follows while `running` says that the container does. Closes the file.

    Raises LogError if the file is in no format that is known.
    """
    reader = _Reader(file, selection, tail, limited=tail is not None and not follow)
    watch: FolderWatch | None = None
    try:
        while True:
            while (text := reader.more(final=not follow)) is not None:
                if text:
                    yield text
                await asyncio.sleep(0)  # a long file must not block other requests
            if not follow or reader.done:
                return
            if watch is None:
                folder = os.path.dirname(reader.path)
                watch = FolderWatch(await offload.run(f"log {reader.path}", OPEN_WITHIN, open_watch, folder))
                continue
            if running is not None and not await running():
                # It may have written until just now.
                while (text := reader.more(final=True)) is not None:
                    if text:
                        yield text
                if not reader.reopen():
                    return
                continue
            if not reader.reopen():
                await watch.wait(CHECK)
    finally:
        if watch is not None:
            watch.close()
        reader.close()


class _Reader:
    """Reads lines from where it left off."""

    def __init__(self, file: BinaryIO, selection: Selection, tail: int | None, limited: bool) -> None:
        self.path = file.name
        self.done = False
        self._file = file
        self._selection = selection
        self._rest = b""
        self._known = False  # whether the format is
        self._left = tail if limited else None  # lines
        if tail is not None:
            file.seek(tail_start(file, tail))

    def more(self, *, final: bool) -> bytes | None:
        """The next output, of one block; None at the end of the file. `final`: an incomplete last line counts as a
        line."""
        if self.done:
            return None
        block = self._file.read(_BLOCK)
        if block:
            lines = _split(self._rest + block)
            self._rest = lines.pop()
        elif final and self._rest:
            lines, self._rest = [self._rest], b""
        else:
            return None
        if self._left is None and self._known:
            text = self._selection.take_all(lines)
            if text is not None:
                return text
        made: list[bytes] = []
        for line in lines:
            if self._left == 0 or self._selection.full:
                self.done = True
                break
            if self._left is not None:
                self._left -= 1
            made.append(self._take(line))
        self.done = self.done or self._selection.full
        return b"".join(made)

    def _take(self, line: bytes) -> bytes:
        if not self._known:
            if parse(line) is None:
                raise LogError(f"failed to get parse function: unsupported log format: {_quoted(line)}")
            self._known = True
        return self._selection.take(line)

    def reopen(self) -> bool:
        """Go over to the file that has taken the place of this one, if one has and this one is read to its end."""
        try:
            descriptor = open_without_links(self.path, os.O_PATH)
            try:
                now, mine = os.fstat(descriptor), os.fstat(self._file.fileno())
            finally:
                os.close(descriptor)
        except OSError:
            return False
        if (now.st_ino, now.st_dev) == (mine.st_ino, mine.st_dev):
            if now.st_size < self._file.tell():  # cut short
                self._file.seek(0)
                self._rest = b""
                return True
            return False
        if self._file.tell() < mine.st_size:
            return True  # something was written between our last look and the renaming
        try:
            file = _open(self.path)
        except OSError:
            return False
        self._file.close()
        self._file = file
        self._rest = b""
        return True

    def close(self) -> None:
        """Give back the file."""
        self._file.close()


def _split(data: bytes) -> list[bytes]:
    """Lines with their ends, and last what is not yet a line. Not `splitlines`, which also cuts elsewhere."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [*(line + b"\n" for line in lines), last]


def tail_start(file: BinaryIO, lines: int) -> int:
    """Where the last so many lines of a file begin."""
    end = file.seek(0, os.SEEK_END)
    if lines <= 0:
        return end
    wanted = lines + 1  # the end of the line before them, or the file's beginning
    place = end
    first = True
    while place > 0:
        size = min(_BLOCK, place)
        place -= size
        file.seek(place)
        block = file.read(size)
        if first:
            first = False
            if not block.endswith(b"\n"):
                wanted -= 1  # the last line has no end yet
        found = block.count(b"\n")
        if found < wanted:
            wanted -= found
            continue
        index = len(block)
        for _ in range(wanted):
            index = block.rindex(b"\n", 0, index)
        return place + index + 1
    return 0


def _quoted(text: str | bytes) -> str:
    from pybernetes.api.gocompat.quote import quote

    return quote(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
