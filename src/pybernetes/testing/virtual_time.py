"""The time of a test cluster: the machine's, plus what the cluster was moved ahead.

`install()` replaces the clocks of the module `time` in this process. It must run before anything is imported that takes
its time from them, the event loop included: the whole control plane then sees one time, and to move it is one addition.

In a simulation time stands still. It passes by being moved: reading a clock changes nothing, and neither does how long
the machine takes or how many rounds of the event loop that is in one version of Python. Only the time of day is READ
later at each read than at the one before, so that two events have different times.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

machine_time: Callable[[], float] = time.time
machine_monotonic: Callable[[], float] = time.monotonic

_ahead = 0.0
_last_read = 0.0
_rounds = 0
_stands_still = False
READ = 1e-6
"""Seconds at least between two reads of the time of day while time stands still."""
MOST_ROUNDS = 1000
TICK = 1e-3
"""Seconds that pass after so many rounds of the event loop without a jump: a task polls in a loop."""
EPOCH = 1_767_225_600.0
"""When time that stands still begins: 2026-01-01T00:00:00Z."""


def install(*, stands_still: bool = False) -> None:
    """Let this process see the cluster's time from now on.

    One that `stands_still` knows no clock of the machine: what measures work finds that it took no time.
    """
    global machine_time, machine_monotonic, _stands_still
    if not stands_still:
        time.time, time.monotonic = now, monotonic
        time.time_ns, time.monotonic_ns = _nanoseconds(now), _nanoseconds(monotonic)
        return
    machine_time, machine_monotonic, _stands_still = _epoch, _zero, True
    time.time, time.monotonic = _read, monotonic
    datetime.datetime = _Datetime  # type: ignore[misc]
    time.perf_counter = time.thread_time = time.process_time = monotonic
    time.time_ns, time.monotonic_ns, time.perf_counter_ns = (
        _nanoseconds(_read),
        _nanoseconds(monotonic),
        _nanoseconds(monotonic),
    )


def now() -> float:
    """Seconds since 1970."""
    return machine_time() + _ahead


def monotonic() -> float:
    """Seconds since some moment."""
    return machine_monotonic() + _ahead


def move(seconds: float) -> None:
    """Add to the cluster's time; negative: take back what passed while the cluster stood still."""
    global _ahead, _rounds
    _ahead += seconds
    _rounds = 0


def tick() -> None:
    """A round of the event loop begins."""
    global _rounds
    if _stands_still:
        _rounds += 1
        if _rounds > MOST_ROUNDS:
            move(TICK)


def stands_still() -> bool:
    """Whether time passes only by being moved."""
    return _stands_still


def ahead() -> float:
    """How far the cluster's time is ahead of the machine's, in seconds."""
    return _ahead


def _read() -> float:
    global _last_read
    _last_read = max(EPOCH + _ahead, _last_read + READ)
    return _last_read


_machine_datetime = datetime.datetime


class _Like(type):
    """Makes every datetime an instance of the class below."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _machine_datetime)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _machine_datetime)


class _Datetime(_machine_datetime, metaclass=_Like):
    """The standard library's, whose present is the simulation's: users' controllers ask it (kopf does)."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return _machine_datetime.fromtimestamp(_read(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return _machine_datetime.fromtimestamp(_read(), datetime.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        return _machine_datetime.fromtimestamp(_read())


def _nanoseconds(clock: Callable[[], float]) -> Callable[[], int]:
    return lambda: int(clock() * 1e9)


def _epoch() -> float:
    return EPOCH


def _zero() -> float:
    return 0.0
