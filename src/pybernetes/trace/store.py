"""The spans of a cluster as the API server keeps them: encoded batches, bounded by size and age, in memory and on disk.

A batch is kept as the bytes that came, and decoded by the command that shows a trace. On disk the same lines are in
segments, `spans-<number>.jsonl`; the oldest segment goes when all together are too large. A segment that cannot be read
or written costs its spans and nothing else: the log names it.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

SPANS = "/debug/pyb/trace/spans"
"""Where the API server takes them (POST) and gives them (GET)."""
SIZE = 32 << 20  # bytes of all batches together; some 100,000 spans
AGE = 24 * 3600.0  # seconds
SEGMENTS = 4
log = logging.getLogger(__name__)


class _Kept(NamedTuple):
    number: int
    at: float
    """When it came, in seconds since 1970."""
    raw: bytes


class SpanStore:
    """Batches in the order in which they came. The oldest go first."""

    def __init__(
        self,
        folder: Path | None = None,
        size: int = SIZE,
        age: float = AGE,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._limit = size
        self._age = age
        self._now = now
        self._batches: deque[_Kept] = deque()
        self.size = 0
        """Bytes of all batches."""
        self.next = 1
        """The number of the batch that comes next."""
        self._segment = 0
        self._segment_size = 0
        self._unwritten: list[bytes] = []
        if folder is not None:
            self._load(folder)

    def add(self, raw: bytes) -> None:
        """Keep one batch (`span.Batch`, encoded). What is larger than a segment is not kept."""
        if len(raw) > self._limit // SEGMENTS:
            log.warning("a batch of %d bytes of spans is too large to be kept", len(raw))
            return
        self._keep(self._now(), raw)
        if self._folder is not None:
            self._unwritten.append(raw)

    def after(self, number: int = 0, since: float = 0.0) -> Iterator[bytes]:
        """The batches behind a number that came at a time or later (seconds since 1970)."""
        for kept in self._batches:
            if kept.number > number and kept.at >= since:
                yield kept.raw

    def write(self) -> None:
        """Append to the segment on disk what came since the last time. Blocks: for a thread."""
        batches, self._unwritten = self._unwritten, []
        if self._folder is None or not batches:
            return
        lines = b"".join(b"%d %b\n" % (self._now(), raw) for raw in batches)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._segment_size + len(lines) > self._limit // SEGMENTS:
                self._segment, self._segment_size = self._segment + 1, 0
                old = self._path(self._folder, self._segment - SEGMENTS)
                old.unlink(missing_ok=True)
            with open(self._path(self._folder, self._segment), "ab", opener=_private) as file:
                file.write(lines)
            self._segment_size += len(lines)
        except OSError as error:
            log.warning("spans cannot be written to %s: %s", self._folder, error)

    def _keep(self, at: float, raw: bytes) -> None:
        self._batches.append(_Kept(self.next, at, raw))
        self.next += 1
        self.size += len(raw)
        oldest = self._now() - self._age
        while self._batches and (self.size > self._limit or self._batches[0].at < oldest):
            self.size -= len(self._batches.popleft().raw)

    def _load(self, folder: Path) -> None:
        """Read what the last process has written; a line that was not written to its end is left out."""
        try:
            numbers = sorted(int(path.stem[6:]) for path in folder.glob("spans-*.jsonl") if path.stem[6:].isdecimal())
        except OSError as error:
            log.warning("spans cannot be read from %s: %s", folder, error)
            return
        for number in numbers:
            try:
                whole = self._path(folder, number).read_bytes()
            except OSError as error:
                log.warning("spans cannot be read: %s", error)
                continue
            for line in whole.split(b"\n")[:-1]:
                at, _, raw = line.partition(b" ")
                if at.isdigit() and raw.endswith(b"}"):
                    self._keep(int(at), raw)
            self._segment, self._segment_size = number, len(whole)
        if numbers:  # a new segment: the last line of the old one may be incomplete
            self._segment, self._segment_size = self._segment + 1, 0

    @staticmethod
    def _path(folder: Path, number: int) -> Path:
        return folder / f"spans-{number:06}.jsonl"


def _private(path: str, flags: int) -> int:
    """Spans name objects and users: a file is its owner's alone, as all of a cluster."""
    return os.open(path, flags, 0o600)
