"""How the seats of the server are shared among levels, and what levels lend each other. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

SMOOTHING = (
    0.977  # how much of the demand of the past counts in the next period; upstream's seatDemandSmoothingCoefficient
)


class Bounds(msgspec.Struct, frozen=True):
    """What a level has by its shares, and the least and most it can have by lending and borrowing."""

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
