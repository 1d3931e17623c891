"""Time spans as people say them: one or two units, coarser the longer they are (`3m25s`, `47h`, `5d12h`, `2y30d`)."""

from __future__ import annotations

from typing import Final

from pybernetes.api.times import TimeError, parse_time

UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY
_LONGEST: Final = (1 << 63) // 1_000_000_000
"""Seconds: what is longer is as long as Go's longest duration, 292 years."""

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
    whole = int(min(max(seconds, -_LONGEST), _LONGEST))
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
    """How long ago a `Time` or `MicroTime` was; `<invalid>` for invalid text, which custom resources can hold."""
    if not time:
        return UNKNOWN
    try:
        return human(now - parse_time(time))
    except TimeError:
        return INVALID
