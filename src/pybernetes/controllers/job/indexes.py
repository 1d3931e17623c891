"""Sets of completion indexes, as `0-3,5,7,8` in a Job's status.

Kept as intervals: a Job may have a hundred thousand indexes, its status names them in a few characters, and each sync
must not cost more than what has changed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator


class Indexes:
    """An immutable set of indexes; intervals are ordered, apart from each other, ends included."""

    __slots__ = ("intervals",)

    def __init__(self, intervals: Iterable[tuple[int, int]] = ()) -> None:
        merged: list[tuple[int, int]] = []
        for first, last in sorted(intervals):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        self.intervals: tuple[tuple[int, int], ...] = tuple(merged)

    @classmethod
    def parse(cls, text: str | None, completions: int) -> Indexes:
        """The indexes below `completions` that a status names; what cannot be read is left out."""
        return cls(_readable(text or "", completions))

    @classmethod
    def of(cls, indexes: Iterable[int]) -> Indexes:
        """A set of single indexes."""
        return cls((index, index) for index in indexes)

    def __or__(self, other: Indexes) -> Indexes:
        if not other.intervals:
            return self
        return Indexes(self.intervals + other.intervals)

    def __and__(self, other: Indexes) -> Indexes:
        return Indexes(_overlaps(self.intervals, other.intervals))

    def __contains__(self, index: int) -> bool:
        position = bisect_left(self.intervals, index, key=lambda interval: interval[1])
        return position < len(self.intervals) and self.intervals[position][0] <= index

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Indexes) and self.intervals == other.intervals

    def __hash__(self) -> int:
        return hash(self.intervals)

    def __repr__(self) -> str:
        return f"Indexes({self})"

    def __str__(self) -> str:
        """As a status has it: a pair is written as two, longer runs with a hyphen."""
        return ",".join(_written(first, last) for first, last in self.intervals)

    def missing(self, below: int) -> Iterator[int]:
        """The indexes below a limit that are not in the set, in order."""
        start = 0
        for first, last in self.intervals:
            yield from range(start, min(first, below))
            start = last + 1
        yield from range(start, below)


def _written(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def _readable(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(","):
        first, hyphen, last = part.partition("-")
        if not first.isdecimal() or (hyphen and not last.isdecimal()):
            continue
        start = int(first)
        end = min(int(last), completions - 1) if hyphen else start
        if start < completions and start <= end:
            yield start, end


def _overlaps(left: tuple[tuple[int, int], ...], right: tuple[tuple[int, int], ...]) -> Iterator[tuple[int, int]]:
    i = j = 0
    while i < len(left) and j < len(right):
        first, last = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if first <= last:
            yield first, last
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
