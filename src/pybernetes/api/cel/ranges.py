"""A least and a most, with upstream's arithmetic: 64 bits that stop at their end instead of overflowing."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

MAX = 2**64 - 1


class Range(NamedTuple):
    """From min to max."""

    min: int
    max: int

    def add(self, other: Range) -> Range:
        """Both together."""
        return Range(min(self.min + other.min, MAX), min(self.max + other.max, MAX))

    def multiply(self, other: Range) -> Range:
        """One for each of the other."""
        return Range(min(self.min * other.min, MAX), min(self.max * other.max, MAX))

    def factor(self, by: float) -> Range:
        """So many for each, rounded up."""
        return Range(_factor(self.min, by), _factor(self.max, by))

    def union(self, other: Range) -> Range:
        """Either of both."""
        return Range(min(self.min, other.min), max(self.max, other.max))


def _factor(value: int, by: float) -> int:
    return min(ceil(float(value) * by), MAX)


def fixed(value: int) -> Range:
    """Exactly so much."""
    return Range(value, value)


ZERO, ONE, UNKNOWN = fixed(0), fixed(1), Range(0, MAX)
