"""Tells what `up` is doing: a live line on a terminal, plain lines anywhere else.

rich is imported only for a terminal, and only once there is something to wait for: importing it takes as long as making
all certificates.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status


class Progress:
    """The steps of a command, each with the time it took."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._status: Status | None = None
        self._began = time.perf_counter()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def begin(self, title: str) -> None:
        """Shows what is waited for, until the next `done`."""
        self._began = time.perf_counter()
        if self._terminal:
            from rich.status import Status

            self._status = Status(f"{title} ...")
            self._status.start()

    def done(self, text: str) -> None:
        """Prints one finished step."""
        self._stop()
        now = time.perf_counter()
        mark = "\x1b[32m✓\x1b[0m" if self._terminal else "-"
        print(f" {mark} {text} ({now - self._began:.2f} s)", flush=True)
        self._began = now

    def _stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
