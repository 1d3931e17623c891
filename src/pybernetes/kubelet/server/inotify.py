"""Waits for changes in a folder by Linux's inotify, called through the C library.

Where there is none to be had (too many watches), waiting takes its time and nothing more: who waits looks anyway.
`open_watch` looks at the folder and may hang with its file system, so it is called in a thread where others mount.
"""

from __future__ import annotations

import asyncio
import ctypes
import os

_MODIFY, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
_EVENTS = _MODIFY | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


def open_watch(folder: str) -> int:
    """A descriptor that becomes readable when something in a folder changes, for `FolderWatch`; -1 if there is none."""
    library = ctypes.CDLL(None, use_errno=True)
    file: int = library.inotify_init1(_FLAGS)
    if file >= 0 and library.inotify_add_watch(file, os.fsencode(folder), _EVENTS) < 0:
        os.close(file)
        return -1
    return file


class FolderWatch:
    """One folder, watched since `open_watch` until `close`."""

    def __init__(self, file: int) -> None:
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._file = file
        if file >= 0:
            self._loop.add_reader(file, self._readable)

    async def wait(self, seconds: float) -> None:
        """Return when something has changed since the last call, or after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    def close(self) -> None:
        """Watch no longer."""
        if self._file >= 0:
            self._loop.remove_reader(self._file)
            os.close(self._file)
            self._file = -1

    def _readable(self) -> None:
        try:
            os.read(self._file, 1 << 16)
        except BlockingIOError:
            return
        self._changed.set()
