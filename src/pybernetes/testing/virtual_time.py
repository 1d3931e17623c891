"""The time of a test cluster: the machine's, plus what the cluster was moved ahead.

`install()` replaces `time.time` and `time.monotonic` of this process. It must run before anything is imported that
takes its time from them, the event loop included: the whole control plane then sees one time, and to move it is one
addition. `time.perf_counter` stays the machine's: it measures work.
"""

from __future__ import annotations

import time
from collections.abc import Callable

machine_time: Callable[[], float] = time.time
machine_monotonic: Callable[[], float] = time.monotonic

_ahead = 0.0
_stands_still = False
TICK = 1e-6
"""Seconds that pass each time the clock is read while time stands still."""
EPOCH = 1_767_225_600.0
"""When time that stands still begins: 2026-01-01T00:00:00Z."""


def install(*, stands_still: bool = False) -> None:
    """Let this process see the cluster's time from now on.

    One that `stands_still` passes only by being moved, and by TICK each time the clock is read, so that two events have
    different times. Not every run reads it equally often: that is why runs of one seed may differ by microseconds.
    """
    global machine_time, machine_monotonic, _stands_still
    if stands_still:
        machine_time, machine_monotonic, _stands_still = _epoch, _zero, True
        time.time, time.monotonic = _ticking(now), _ticking(monotonic)
    else:
        time.time, time.monotonic = now, monotonic


def now() -> float:
    """Seconds since 1970."""
    return machine_time() + _ahead


def monotonic() -> float:
    """Seconds since some moment."""
    return machine_monotonic() + _ahead


def move(seconds: float) -> None:
    """Add to the cluster's time; negative: take back what passed while the cluster stood still."""
    global _ahead
    _ahead += seconds


def _ticking(clock: Callable[[], float]) -> Callable[[], float]:
    def look() -> float:
        global _ahead
        _ahead += TICK
        return clock()

    return look


def stands_still() -> bool:
    """Whether time passes only by being moved."""
    return _stands_still


def _epoch() -> float:
    return EPOCH


def _zero() -> float:
    return 0.0


def ahead() -> float:
    """How far the cluster's time is ahead of the machine's, in seconds."""
    return _ahead
