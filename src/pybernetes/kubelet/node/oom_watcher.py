"""Reports processes that the kernel killed because the whole node was out of memory: event SystemOOM.

Woken by the kernel's log (/dev/kmsg), read from its end on. Kills for the limit of one cgroup are the containers' own
affair, and are seen in their cgroups.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pybernetes.client.events import WARNING

LOG: Final = Path("/dev/kmsg")
RECORD: Final = 8192
"""Bytes that a record of the kernel's log has at most."""
AT_ONCE: Final = 200
"""Records that are read before others have their turn."""
_KILLED: Final = re.compile(rb"[0-7],[^;\n]*;Out of memory: Killed process (\d+) \(([^)\n]*)\)")
"""Records from 8 on are not the kernel's own."""
log = logging.getLogger(__name__)


class OOMWatcher:
    """Follows the kernel's log. `event(type, reason, message)` is about the node."""

    def __init__(self, event: Callable[[str, str, str], None], path: Path = LOG) -> None:
        self._event, self._path = event, path

    async def run(self) -> None:
        """Follow the log until cancelled; return if it may not be read."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            log.info("no events about a node without memory: %s cannot be read: %s", self._path, error.strerror)
            return
        news, loop = asyncio.Event(), asyncio.get_running_loop()
        try:
            try:
                os.lseek(descriptor, 0, os.SEEK_END)
            except OSError as error:
                if error.errno != errno.ESPIPE:
                    raise
            loop.add_reader(descriptor, news.set)
            while True:
                await news.wait()
                news.clear()
                if self._read(descriptor):
                    news.set()  # there may be more
                    await asyncio.sleep(0)
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    def _read(self, descriptor: int) -> bool:
        """Take some records; whether there may be more."""
        for _ in range(AT_ONCE):
            try:
                record = os.read(descriptor, RECORD)
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno != errno.EPIPE:  # older records were overwritten meanwhile
                    raise
                continue
            if not record:
                raise OSError(errno.EIO, f"{self._path} has ended")
            if killed := _KILLED.match(record):
                pid, name = int(killed[1]), killed[2].decode(errors="replace")
                self._event(WARNING, "SystemOOM", f"System OOM encountered, victim process: {name}, pid: {pid}")
        return True
