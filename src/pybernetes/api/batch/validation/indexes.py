"""Indexes of an Indexed Job written as `1,3-5,7`: increasing, without overlap, below the number of completions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...gocompat.quote import quote

_is_integer = re.compile("[+-]?[0-9]{1,19}", re.ASCII).fullmatch


class IndexesError(ValueError):
    """A text that is no list of indexes."""


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a text stands for. Raises IndexesError."""
    last: int | None = None
    total = 0
    for interval in text.split(",") if text else ():
        first, end = _interval(interval, completions)
        if last is not None and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index that is in both texts, if any; malformed intervals are skipped, others report them."""
    mine, theirs = list(_valid(completed, completions)), list(_valid(failed, completions))
    at, other = 0, 0
    while at < len(mine) and other < len(theirs):
        (first, end), (their_first, their_end) = mine[at], theirs[other]
        if first <= their_end and their_first <= end:
            return max(first, their_first)
        if first <= their_first:
            at += 1
        else:
            other += 1
    return None


def _valid(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for interval in text.split(",") if text else ():
        try:
            yield _interval(interval, completions)
        except IndexesError:
            continue


def _interval(text: str, completions: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        raise IndexesError(
            f"the fragment {quote(text)} violates the requirement that an index interval can have at most two parts "
            "separated by '-'"
        )
    first = _index(limits[0], completions)
    if len(limits) == 1:
        return first, first
    end = _index(limits[1], completions)
    if first >= end:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {end}")
    return first, end


def _index(text: str, completions: int) -> int:
    if not _is_integer(text):
        raise IndexesError(f"cannot convert string to integer for index: {quote(text)}")
    if int(text) >= completions:
        raise IndexesError(f"too large index: {quote(text)}")
    return int(text)
