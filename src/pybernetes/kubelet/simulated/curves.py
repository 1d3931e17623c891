"""How much of something a simulated container uses, over its life: a value, a range, or a curve. Pure.

    250m                           always so much
    100m..500m                     up and down between the two, once in five minutes, each container at another moment
    0s=100m, 30s=2, 5m=100m        straight lines between points, by the container's age; then as at the last point
    0s=100m, 30s=2, 1m=100m, repeat    the same, from the beginning again after the last point

All are lines between points, so what was used since the start is known at any moment without having been counted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pybernetes.api.quantity import parse
from pybernetes.api.times import parse_duration

PERIOD: Final = 300.0
"""Seconds of a range's way up and down."""
REPEAT: Final = "repeat"
_MOMENT: Final = 1e-5
"""Seconds; times since 1970 are not known more exactly."""

Point = tuple[float, float]
"""Age in seconds, and how much then."""


@dataclass(frozen=True, slots=True)
class Curve:
    """How much at which age. The first point is at 0; `period` is 0 unless it begins again."""

    points: tuple[Point, ...]
    period: float = 0.0
    wanders: bool = False
    """Whether each container is at another place of it when it starts."""

    def at(self, age: float) -> float:
        """How much at this age."""
        if self.period:
            age %= self.period
        index = bisect_right(self.points, age, key=lambda point: point[0])
        if index == len(self.points):
            return self.points[-1][1]
        (left, low), (right, high) = self.points[index - 1], self.points[index]
        return low + (high - low) * (age - left) / (right - left)

    def total(self, age: float) -> float:
        """How much from the start to this age, in unit times seconds."""
        if not self.period:
            return self._total(age)
        rounds, rest = divmod(age, self.period)
        return rounds * self._total(self.period) + self._total(rest)

    def _total(self, age: float) -> float:
        total = 0.0
        for (left, low), (right, high) in pairwise(self.points):
            if age <= left:
                return total
            until = min(age, right)
            end = low + (high - low) * (until - left) / (right - left)
            total += (low + end) / 2 * (until - left)
        last, value = self.points[-1]
        return total + max(0.0, age - last) * value

    def first_above(self, limit: float, start: float = 0.0) -> float | None:
        """The first age from `start` on at which it is more; None: never."""
        if max(value for _, value in self.points) <= limit:
            return None
        if self.at(start) > limit:
            return start
        first = start - start % self.period if self.period else 0.0
        for begin in (first, first + self.period) if self.period else (0.0,):
            for age in self._crossings(limit):
                if begin + age >= start - _MOMENT:
                    return max(start, begin + age)
        return None

    def _crossings(self, limit: float) -> Iterator[float]:
        """The ages, in one round, at which it comes to be more."""
        if self.points[0][1] > limit:
            yield 0.0
        for (left, low), (right, high) in pairwise(self.points):
            if low <= limit < high:
                yield left + (limit - low) / (high - low) * (right - left)

    def capped(self, limit: float) -> Curve:
        """The same, but never more than the limit."""
        if all(value <= limit for _, value in self.points):
            return self
        return Curve(tuple(_capped(self.points, limit)), self.period, self.wanders)

    def moved(self, by: float) -> Moved:
        """As one sees it who starts in the middle."""
        return Moved(self, by)


@dataclass(frozen=True, slots=True)
class Moved:
    """A curve whose beginning was some time before."""

    curve: Curve
    by: float

    def at(self, age: float) -> float:
        """How much at this age."""
        return self.curve.at(age + self.by)

    def total(self, age: float) -> float:
        """How much from the start to this age."""
        return self.curve.total(age + self.by) - self.curve.total(self.by)

    def first_above(self, limit: float, start: float = 0.0) -> float | None:
        """The first age from `start` on at which it is more."""
        found = self.curve.first_above(limit, start + self.by)
        return None if found is None else found - self.by

    def capped(self, limit: float) -> Moved:
        """The same, but never more than the limit."""
        return Moved(self.curve.capped(limit), self.by)


def constant(value: float) -> Curve:
    """Always so much."""
    return Curve(((0.0, value),))


def read_curve(text: str) -> Curve:
    """Parse a setting. Raises ValueError."""
    if "=" in text:
        return _read_points(text)
    low, dots, high = text.partition("..")
    if not dots:
        return constant(_amount(text))
    least, most = _amount(low), _amount(high)
    if least > most:
        raise ValueError(f"a range goes from the lesser to the greater: {text!r}")
    return Curve(((0.0, least), (PERIOD / 2, most), (PERIOD, least)), PERIOD, wanders=True)


def _read_points(text: str) -> Curve:
    words = [each.strip() for each in text.split(",")]
    repeat = words[-1] == REPEAT
    points: list[Point] = []
    for word in words[:-1] if repeat else words:
        age, equals, amount = word.partition("=")
        if not equals:
            raise ValueError(f"not a point of a curve (AGE=AMOUNT): {word!r}")
        seconds = parse_duration(age.strip()) / 1e9
        if not points and seconds > 0:
            points.append((0.0, _amount(amount)))
        if points and seconds <= points[-1][0]:
            raise ValueError(f"each point of a curve is later than the one before: {text!r}")
        if seconds < 0:
            raise ValueError(f"an age cannot be negative: {word!r}")
        points.append((seconds, _amount(amount)))
    if repeat and len(points) < 2:
        raise ValueError(f"a curve that is repeated has two points at least: {text!r}")
    return Curve(tuple(points), points[-1][0] if repeat else 0.0)


def _amount(text: str) -> float:
    quantity = parse(text.strip())
    if quantity.sign() < 0:
        raise ValueError(f"must not be negative: {text.strip()}")
    return float(quantity.decimal())


def _capped(points: tuple[Point, ...], limit: float) -> Iterator[Point]:
    for index, (age, value) in enumerate(points):
        if index:
            left, before = points[index - 1]
            if (before > limit) != (value > limit):
                crossing = left + (limit - before) / (value - before) * (age - left)
                if left < crossing < age:
                    yield crossing, limit
        yield age, min(value, limit)
