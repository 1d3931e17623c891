"""How the seats of the server are shared among levels, and what levels lend each other. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

SMOOTHING = (
    0.977  # how much of the demand of the past counts in the next period; upstream's seatDemandSmoothingCoefficient
)


class Demand:
    """How many seats were wanted, over time: taken ones and those that requests wait for."""

    __slots__ = ("_area", "_began", "_changed", "_squares", "high", "wanted")

    def __init__(self, now: float) -> None:
        self.wanted = self.high = 0
        """Now, and the most since the last look."""
        self._began = self._changed = now
        self._area = self._squares = 0.0

    def change(self, seats: int, now: float) -> None:
        """So many more are wanted, or fewer."""
        wanted, passed = self.wanted, now - self._changed
        if passed > 0:
            area = wanted * passed
            self._area += area
            self._squares += wanted * area
            self._changed = now
        self.wanted = wanted = wanted + seats
        if wanted > self.high:
            self.high = wanted

    def look(self, now: float) -> tuple[int, float]:
        """The most, and what is enough but for peaks (average and deviation), since the last look."""
        self.change(0, now)
        high, passed = self.high, now - self._began
        average = self._area / passed if passed > 0 else 0.0
        deviation = math.sqrt(max(self._squares / passed - average * average, 0.0)) if passed > 0 else 0.0
        self.high = self.wanted
        self._began, self._area, self._squares = now, 0.0, 0.0
        return high, average + deviation


class Bounds(msgspec.Struct, frozen=True):
    """The seats of a level by its shares, and the least and most it can have by lending and borrowing."""

    nominal: int
    least: int
    most: int


def bounds(total: int, levels: Sequence[tuple[int, int, int | None]]) -> list[Bounds]:
    """From shares, lendable percent and borrowing limit percent (None = no limit) of each level."""
    shares = sum(each[0] for each in levels) or 1
    nominal = [math.ceil(total * each[0] / shares) for each in levels]
    lendable = [round(seats * each[1] / 100) for seats, each in zip(nominal, levels, strict=True)]
    everything = sum(nominal)
    found = []
    for seats, lent, (_, _, limit) in zip(nominal, lendable, levels, strict=True):
        most = everything if limit is None else seats + round(seats * limit / 100)
        found.append(Bounds(seats, seats - lent, most))
    return found


def smoothed(previous: float, demand: float) -> float:
    """Demand grows at once and shrinks slowly."""
    return max(demand, SMOOTHING * previous + (1 - SMOOTHING) * demand)


def allocate(total: int, items: Sequence[tuple[float, float, float]]) -> list[int]:
    """Seats for each of (least, target, most): in proportion to the targets, within the bounds, `total` in sum.

    The proportion is found by halving: what is given out never shrinks when it grows.
    """
    if not items:
        return []
    wanted = [max(target, 0.1) for _, target, _ in items]

    def given(proportion: float) -> list[float]:
        return [
            min(max(target * proportion, least), most) for (least, _, most), target in zip(items, wanted, strict=True)
        ]

    low, high = 0.0, 1.0
    while sum(given(high)) < total and high < 1e9:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if sum(given(middle)) < total:
            low = middle
        else:
            high = middle
    return [round(each) for each in given(high)]
