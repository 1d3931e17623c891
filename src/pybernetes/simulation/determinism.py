"""Makes a process repeatable: randomness from a seed, no threads, no addresses that differ from run to run.

`install()` runs before anything else is imported. What remains of chance is in C libraries (signatures with random
numbers), which nothing in a simulation depends on.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
from typing import Any

ADDR_NO_RANDOMIZE = 0x0040000
_source = random.Random(0)
_unseeded: list[random.Random] = []
"""Generators that were made without a seed, such as the scheduler's: they begin anew with each run."""


def install() -> None:
    """Let every random number of this process come from `seed`."""
    os.urandom = _bytes
    random._urandom = _bytes  # type: ignore[attr-defined]
    begin = random.Random.__init__

    def without_machine(self: random.Random, x: Any = None) -> None:
        begin(self, _source.getrandbits(64) if x is None else x)  # the machine's randomness is below Python's
        if x is None and type(self) is random.Random:
            _unseeded.append(self)

    random.Random.__init__ = without_machine  # type: ignore[method-assign]
    seed("start")


def seed(name: int | str) -> None:
    """Begin anew with a seed. No run may draw what the start has drawn: UIDs would come twice."""
    _source.seed(f"bytes {name}")
    random.seed(f"numbers {name}")
    for number, each in enumerate(_unseeded):
        each.seed(f"generator {number} {name}")


def _bytes(count: int, /) -> bytes:
    return _source.randbytes(count)


def without_chance(argv: list[str]) -> None:
    """Start this program again with fixed hashes of texts and fixed addresses, if it has not been."""
    if os.environ.get("PYTHONHASHSEED") == "0":
        return
    libc: Any = ctypes.CDLL(None)
    libc.personality(ctypes.c_ulong(ADDR_NO_RANDOMIZE))
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, *argv])
