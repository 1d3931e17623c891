"""Letting the kernel's worker run while our thread is busy.

The kernel runs what it was asked to do in the background on the processor that asked (`syncing`). If our thread is busy
there, the worker waits until our slice of time is over, 1 to 3 ms, though the disk takes a tenth of that: under a flood
of reads, writes take as many times longer. Linux prefers those who ask for shorter slices (sched_setattr(2), since
6.12), so a thread that keeps others waiting asks for a longer one; and no more once it is idle again, because then
whoever it wakes with an answer would interrupt it before it is done.

p99 of a PUT beside a flood, in terms of the quiet server: 1.8 to 5.0 times without this, 2.0 to 3.6 times with it,
depending on what the flood asks for (`tests/apiserver/flowcontrol/test_flood.py`).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from time import monotonic, thread_time

STARVED = 0.0005  # seconds that a sync takes when the worker had to wait; else it takes a fifth of that
BUSY, IDLE = 0.6, 0.3  # shares of that time in which our thread was at work
_NUMBERS = {"x86_64": 314, "aarch64": 274}
_LONG = 50_000_000  # nanoseconds
_ATTRIBUTES = "=IIQiIQQQ"  # size, policy, flags, nice, priority, runtime (the slice), deadline, period


class Slices:
    """Watches what becomes of the kernel's work, from the thread that asks for it."""

    def __init__(self) -> None:
        number = _NUMBERS.get(platform.machine())
        self._number = None if number is None else ctypes.c_long(number)
        self._call = ctypes.PyDLL(None).syscall
        self.long = False
        """Whether our slices are long."""
        self._asked = (0.0, 0.0)

    def asked(self) -> None:
        """The kernel was asked for something."""
        self._asked = (monotonic(), thread_time())

    def done(self) -> None:
        """It has done it, and our thread has noticed."""
        began, worked = self._asked
        elapsed = monotonic() - began
        share = (thread_time() - worked) / elapsed if elapsed else 0.0
        if not self.long and elapsed > STARVED and share > BUSY:
            self._set(_LONG)
        elif self.long and share < IDLE:
            self._set(0)

    def _set(self, nanoseconds: int) -> None:
        if self._number is None:
            return
        self.long = nanoseconds > 0
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        attributes = struct.pack(_ATTRIBUTES, struct.calcsize(_ATTRIBUTES), 0, 0, nice, 0, nanoseconds, 0, 0)
        self._call(self._number, 0, attributes, 0)  # a kernel that does not know this leaves everything as it is
