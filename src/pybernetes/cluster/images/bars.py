"""Shows blobs on their way: a bar for each on a terminal, a line for each that has arrived anywhere else.

rich is imported only for a terminal: it takes as long as a small image.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from pybernetes.cri.embedded.images.manifests import Descriptor


class Bars:
    """Call it with a blob and how many bytes of it are here."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._arrived: set[str] = set()

    def __enter__(self) -> Bars:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def __call__(self, blob: Descriptor, have: int) -> None:
        """More of a blob is here."""
        short = blob.digest.removeprefix("sha256:")[:12]
        if sys.stdout.isatty():
            self._bar(short, blob.size, have)
        elif have >= blob.size and short not in self._arrived:
            self._arrived.add(short)
            print(f"{short}  {blob.size / 1e6:.1f} MB", flush=True)

    def _bar(self, short: str, size: int, have: int) -> None:
        if self._progress is None:
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
            self._progress = Progress(*columns)
            self._progress.start()
        if short not in self._tasks:
            self._tasks[short] = self._progress.add_task(short, total=size)
        self._progress.update(self._tasks[short], completed=have)
