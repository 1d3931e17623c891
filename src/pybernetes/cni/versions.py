"""Versions of the CNI specification: which we speak, and how they compare."""

from __future__ import annotations

from .errors import DECODING_FAILURE, CNIError

SUPPORTED = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
CURRENT = SUPPORTED[-1]


def parse(version: str) -> tuple[int, int, int]:
    """Major, minor and micro; a missing version is 0.1.0, the first one, which had no field for it."""
    parts = (version or "0.1.0").split(".")
    if not 1 <= len(parts) <= 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise CNIError(f'invalid version "{version}": must be numbers with dots between', DECODING_FAILURE)
    numbers = [*map(int, parts), 0, 0]
    return numbers[0], numbers[1], numbers[2]


def at_least(version: str, other: str) -> bool:
    """Whether `version` is `other` or newer."""
    return parse(version) >= parse(other)
