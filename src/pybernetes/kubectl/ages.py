"""How long ago: the short durations of tables and descriptions (`5s`, `3m10s`, `2d4h`)."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def timestamp(text: Any) -> float | None:
    """Seconds since 1970 of an RFC 3339 time."""
    if not isinstance(text, str) or len(text) < 20:
        return None
    try:
        fields = (int(text[0:4]), int(text[5:7]), int(text[8:10]), int(text[11:13]), int(text[14:16]), int(text[17:19]))
        from calendar import timegm

        seconds = float(timegm((*fields, 0, 0, 0)))
        rest = text[19:]
        if rest.startswith("."):
            end = 1
            while end < len(rest) and rest[end].isdigit():
                end += 1
            seconds += float(rest[:end])
            rest = rest[end:]
        if rest[:1] in "+-" and len(rest) >= 6:
            offset = int(rest[1:3]) * 3600 + int(rest[4:6]) * 60
            seconds += -offset if rest[0] == "+" else offset
        return seconds
    except ValueError:
        return None


def age(text: Any, now: float | None = None) -> str:
    """How long ago a time was, or <unknown>."""
    when = timestamp(text)
    if when is None:
        return "<unknown>"
    return human((time.time() if now is None else now) - when)


def human(seconds: float) -> str:
    """A duration with two to three significant digits, as kubectl prints ages."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 10:
        rest = whole % 60
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = whole // 3600
    if hours < 8:
        rest = whole // 60 % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        rest = hours % 24
        return f"{hours // 24}d{rest}h" if rest else f"{hours // 24}d"
    if hours < 24 * 365 * 2:
        return f"{hours // 24}d"
    if hours < 24 * 365 * 8:
        days = hours // 24 % 365
        return f"{hours // 24 // 365}y{days}d" if days else f"{hours // 24 // 365}y"
    return f"{hours // 24 // 365}y"
