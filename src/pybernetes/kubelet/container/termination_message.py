"""Reads a container's termination message: its termination message file, or the last lines of its log.

Both may be on a volume or a mount that never answers: call these in a thread with a deadline.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pybernetes.component.openat2 import open_without_links

# upstream's numbers
MESSAGE_LENGTH: Final = 4096
LOG_LENGTH: Final = 2048
LOG_LINES: Final = 80
POD_LENGTH: Final = 12 * 1024
"""All messages of a pod together; each container has its share."""
_LOG_BLOCK: Final = 64 * 1024


def read_message(path: Path) -> str:
    """The end of a termination message file; empty if there is none."""
    try:
        # The container may have put anything there: no waiting for the writer of a FIFO, no following of its links.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        return _tail(descriptor, MESSAGE_LENGTH).decode(errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"Error on reading termination log {path}: {error.strerror}"


def last_log_lines(path: Path) -> str:
    """The end of a log in the CRI's format, without its timestamps."""
    try:
        data = _tail(open_without_links(str(path), os.O_RDONLY | os.O_NONBLOCK), _LOG_BLOCK)
    except OSError as error:
        return f"Error on reading termination message from logs: {error.strerror}"
    whole = len(data) < _LOG_BLOCK
    lines = data.split(b"\n")[0 if whole else 1 :]
    pieces: list[bytes] = []
    for line in [each for each in lines if each][-LOG_LINES:]:
        parts = line.split(b" ", 3)
        if len(parts) == 4:
            pieces.append(parts[3] + (b"" if parts[2].startswith(b"P") else b"\n"))
    return b"".join(pieces)[-LOG_LENGTH:].decode(errors="replace")


def _tail(descriptor: int, length: int) -> bytes:
    """The last bytes of a file, which is closed."""
    with open(descriptor, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - length))
        return file.read(length)
