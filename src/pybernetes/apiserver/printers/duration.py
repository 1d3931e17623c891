"""Time spans as people say them: one or two units, coarser the longer they are (`3m25s`, `47h`, `5d12h`, `2y30d`)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY

# Below this many seconds: the unit that is written, and the smaller one after it, if any. The limits are upstream's.
_STEPS: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def human(seconds: float) -> str:
    """A span; up to two seconds before zero is taken for clocks that disagree."""
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole == -1 else INVALID
    for limit, size, unit, small_size, small_unit in _STEPS:
        if whole < limit:
            count, rest = divmod(whole, size)
            if small_size and (small := rest // small_size):
                return f"{count}{unit}{small}{small_unit}"
            return f"{count}{unit}"
    return f"{whole // _YEAR}y"


def since(time: str | None, now: float) -> str:
    """How long ago a `Time` or `MicroTime` was, in the form in which they are stored."""
    # Every row has an age, and this parser is ten times as fast as the one for what clients send.
    return human(now - datetime.fromisoformat(time).timestamp()) if time else UNKNOWN
