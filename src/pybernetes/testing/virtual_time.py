"""The time of a test cluster: the machine's, plus what the cluster was moved ahead.

`install()` replaces the clocks of the module `time` in this process. It must run before anything is imported that takes
its time from them, the event loop included: the whole control plane then sees one time, and to move it is one addition.

In a simulation time stands still. It passes by being moved, and by TICK in each round of the event loop: how often
somebody reads a clock changes nothing, and neither does how long the machine takes. Only the time of day grows by READ
from one read to the next within a round, so that two events have different times.
"""

from __future__ import annotations

import time
from collections.abc import Callable

machine_time: Callable[[], float] = time.time
machine_monotonic: Callable[[], float] = time.monotonic

_ahead = 0.0
_reads = 0
_stands_still = False
TICK = 1e-4
"""Seconds of one round of the event loop while time stands still."""
READ = 1e-6
"""Seconds between two reads of the time of day in one round."""
MOST_READS = 99
"""Reads of one round that have times of their own: together they are less than TICK."""
EPOCH = 1_767_225_600.0
"""When time that stands still begins: 2026-01-01T00:00:00Z."""


def install(*, stands_still: bool = False) -> None:
    """Let this process see the cluster's time from now on.

    One that `stands_still` knows no clock of the machine: what measures work finds that it took no time.
    """
    global machine_time, machine_monotonic, _stands_still
    if not stands_still:
        time.time, time.monotonic = now, monotonic
        return
    machine_time, machine_monotonic, _stands_still = _epoch, _zero, True
    time.time, time.monotonic = _read, monotonic
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
    global _ahead, _reads
    _ahead += seconds
    _reads = 0


def tick() -> None:
    """A round of the event loop begins."""
    if _stands_still:
        move(TICK)


def stands_still() -> bool:
    """Whether time passes only by being moved."""
    return _stands_still


def ahead() -> float:
    """How far the cluster's time is ahead of the machine's, in seconds."""
    return _ahead


def _read() -> float:
    global _reads
    if _reads < MOST_READS:
        _reads += 1
    return EPOCH + _ahead + _reads * READ


def _nanoseconds(clock: Callable[[], float]) -> Callable[[], int]:
    return lambda: int(clock() * 1e9)


def _epoch() -> float:
    return EPOCH


def _zero() -> float:
    return 0.0
