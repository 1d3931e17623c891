"""Plans the faults of a run: decided by the seed before it begins, so that it can be repeated and made smaller."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much may go wrong; the seed decides when."""

    delay: float = 0.05
    """Seconds that bytes are on their way at most; connections overtake each other."""
    slow: float = 0.02
    """Probability that a connection is slow for once: up to `slow_delay`."""
    slow_delay: float = 5.0
    resets: int = 4
    """Connections that break at most."""
    crashes: int = 2
    """Components that crash and start again at most, the user's own among them."""
    down: float = 20.0
    """Seconds at most that a component is down."""
    within: float = 120.0
    """Seconds of the beginning in which faults happen."""


class Crash(msgspec.Struct, frozen=True):
    """A component ends at a moment, and starts again."""

    at: float
    component: int
    """Modulo the number of components."""
    down: float


class Reset(msgspec.Struct, frozen=True):
    """The connection that delivers at that moment breaks."""

    at: float


class Plan(msgspec.Struct, frozen=True):
    """The faults of one run."""

    delay: float
    slow: float
    slow_delay: float
    resets: tuple[Reset, ...] = ()
    crashes: tuple[Crash, ...] = ()

    def smaller(self) -> Iterator[Plan]:
        """Plans with fewer faults, the greatest steps first."""
        replace = msgspec.structs.replace
        if self.crashes:
            yield replace(self, crashes=())
        if self.resets:
            yield replace(self, resets=())
        if self.slow:
            yield replace(self, slow=0.0)
        for index in range(len(self.crashes)):
            yield replace(self, crashes=_without(self.crashes, index))
        for index in range(len(self.resets)):
            yield replace(self, resets=_without(self.resets, index))
        if self.delay:
            yield replace(self, delay=0.0)

    def describe(self) -> str:
        """In words."""
        parts = [f"{len(self.crashes)} crashes" if self.crashes else "", f"{len(self.resets)} broken connections"]
        parts = [part for part in parts if part and not part.startswith("0 ")]
        if self.slow:
            parts.append(f"slow connections (up to {self.slow_delay:g} s)")
        if self.delay:
            parts.append(f"delays up to {self.delay:g} s")
        return ", ".join(parts) or "no faults"


def plan(seed: int, faults: Faults) -> Plan:
    """The faults that a seed decides."""
    chance = random.Random(f"faults {seed}")
    crashes = sorted(
        (
            Crash(chance.uniform(0, faults.within), chance.randrange(1 << 16), chance.uniform(0, faults.down))
            for _ in range(chance.randint(0, faults.crashes))
        ),
        key=lambda crash: crash.at,
    )
    resets = sorted(
        (Reset(chance.uniform(0, faults.within)) for _ in range(chance.randint(0, faults.resets))),
        key=lambda reset: reset.at,
    )
    return Plan(faults.delay, faults.slow, faults.slow_delay, tuple(resets), tuple(crashes))


def _without(items: Sequence[msgspec.Struct], index: int) -> tuple[msgspec.Struct, ...]:
    return (*items[:index], *items[index + 1 :])
