"""Time as the API writes it, and clocks to take it from.

`Time` is RFC 3339 in UTC to the second, `MicroTime` to the microsecond; whatever offset a client sends, that is what is
kept. Durations are Go's (`1h2m3.5s`), counted in nanoseconds. Nothing else in the project asks the system for the time:
a `Clock` is passed in, so that tests need not wait.

Times are those that Go's RFC 3339 parser takes: the years 0 to 9999, offsets up to 24:60, an hour of one digit, and
fractions after a comma. Python's `datetime` has no year 0 and refuses some of these, so nothing else reads times from
objects: whatever `canonical_time` accepts, `parse_time` can read.
"""

from __future__ import annotations

import re
import time
from datetime import date, datetime
from typing import Final, NamedTuple, Protocol

from .gocompat.quote import quote


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> float:
        """Seconds since 1970, for what is written down."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment, for measuring; never goes back."""
        ...


class SystemClock:
    """The machine's clock."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


class FakeClock:
    """A clock that the test moves."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._monotonic = 0.0

    def now(self) -> float:
        """The time set last."""
        return self._now

    def monotonic(self) -> float:
        """How far the clock has been moved forward."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise ValueError("time does not go back; set it with `set`")
        self._now += seconds
        self._monotonic += seconds

    def set(self, now: float) -> None:
        """Change the wall clock, as an operator or NTP would; the monotonic clock does not notice."""
        self._now = now


# --- Time and MicroTime

_last = (-1, "")  # one tuple, so that a thread sees a second together with its own text


def rfc3339(seconds: float) -> str:
    """Seconds since 1970 as a `Time`; asking within the same second again is nearly free.

    What lies outside of the years 0 to 9999 becomes the first or the last second of these.
    """
    global _last
    second = int(seconds // 1)
    last = _last
    if last[0] == second:
        return last[1]
    text = f"{civil(min(max(second, FIRST), LAST))}Z"
    _last = (second, text)
    return text


def now() -> str:
    """This second as a `Time`."""
    return rfc3339(time.time())


def rfc3339_micro(seconds: float) -> str:
    """Seconds since 1970 as a `MicroTime`."""
    second, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{rfc3339(second)[:-1]}.{micros:06d}Z"


def now_micro() -> str:
    """This microsecond as a `MicroTime`."""
    return rfc3339_micro(time.time())


class TimeError(ValueError):
    """Text that is no time or duration; its words are Go's."""


_TIME: Final = "2006-01-02T15:04:05Z07:00"
_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"
_ZERO: Final = "0001-01-01T00:00:00"
_CACHE_SIZE = 4096
_CACHED_LENGTH = 40  # characters of text that is remembered: a fraction may have any number of digits

_times: dict[str, str | None] = {}
_micro_times: dict[str, str | None] = {}


def canonical_time(text: str) -> str | None:
    """A `Time` from a client as it is kept: in UTC, without fractions; None for Go's zero time, written as null."""
    try:
        return _times[text]
    except KeyError:
        pass
    result = _utc(_parse(text, _TIME))
    return _remember(_times, text, None if result == _ZERO else f"{result}Z")


def canonical_micro_time(text: str) -> str | None:
    """A `MicroTime` from a client as it is kept: in UTC, six digits; None for Go's zero time."""
    try:
        return _micro_times[text]
    except KeyError:
        pass
    moment = _parse(text, _MICRO)
    result = _utc(moment)
    zero = result == _ZERO and not moment.nanos
    return _remember(_micro_times, text, None if zero else f"{result}.{moment.nanos // 1000:06d}Z")


def parse_time(text: str) -> float:
    """Seconds since 1970 of a `Time` or `MicroTime`. Raises TimeError."""
    if _CANONICAL.fullmatch(text):  # as objects keep it: ten times as fast as reading it piece by piece
        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            pass  # year 0, or a day that the month does not have
    moment = parse_moment(text)
    return moment.seconds + moment.nanos / 1e9


def parse_moment(text: str) -> Moment:
    """A time to the nanosecond, with the offset it was written with. Raises TimeError."""
    return _parse(text, _TIME)


class Moment(NamedTuple):
    """Seconds since 1970, nanoseconds after that, and the offset from UTC in seconds that it was written with."""

    seconds: int
    nanos: int
    offset: int


FIRST: Final = -62_167_219_200
"""0000-01-01T00:00:00Z in seconds since 1970."""
LAST: Final = 253_402_300_799
"""9999-12-31T23:59:59Z in seconds since 1970."""
_CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{6})?Z", re.ASCII)
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097  # after which the calendar repeats: year 0 is like year 400
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _remember(cache: dict[str, str | None], key: str, value: str | None) -> str | None:
    if len(key) <= _CACHED_LENGTH:
        if len(cache) >= _CACHE_SIZE:
            cache.clear()
        cache[key] = value
    return value


def _utc(moment: Moment) -> str:
    """The civil time in UTC; Go's zero time for what the offset moves out of the years 0 to 9999."""
    return civil(moment.seconds) if FIRST <= moment.seconds <= LAST else _ZERO


def civil(seconds: int) -> str:
    """`2006-01-02T15:04:05` of seconds since 1970, from year 0 to 9999."""
    days, rest = divmod(seconds, 86_400)
    day = days + _EPOCH_DAY
    shift = 0 if day > 0 else 1  # the year 0 is counted in the next cycle
    at = date.fromordinal(day + shift * _CYCLE_DAYS)
    hours, minutes = divmod(rest // 60, 60)
    return f"{at.year - shift * _CYCLE_YEARS:04d}-{at.month:02d}-{at.day:02d}T{hours:02d}:{minutes:02d}:{rest % 60:02d}"


def _parse(text: str, layout: str) -> Moment:
    """Read piece by piece as Go does, to fail at the same one."""
    reader = _Reader(text, layout)
    year = reader.digits(4, 4, "2006")
    reader.literal("-")
    month = reader.digits(2, 2, "01")
    if not 1 <= month <= 12:
        reader.range("month")
    reader.literal("-")
    day = reader.digits(2, 2, "02")
    reader.literal("T")
    hour = reader.digits(1, 2, "15")
    if hour > 23:
        reader.range("hour")
    reader.literal(":")
    minute = reader.digits(2, 2, "04")
    if minute > 59:
        reader.range("minute")
    reader.literal(":")
    second = reader.digits(2, 2, "05")
    if second > 59:
        reader.range("second")
    nanos = reader.exact_micros() if layout is _MICRO else reader.fraction()
    offset = reader.offset()
    reader.end()
    days = 29 if month == 2 and (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)) else _DAYS[month - 1]
    if not 1 <= day <= days:
        reader.range("day")
    shift = 0 if year else 1  # the year 0 is counted in the next cycle
    days = date(year + shift * _CYCLE_YEARS, month, day).toordinal() - shift * _CYCLE_DAYS - _EPOCH_DAY
    return Moment(days * 86_400 + hour * 3600 + minute * 60 + second - offset, nanos, offset)


class _Reader:
    def __init__(self, text: str, layout: str) -> None:
        self.text, self.layout, self.at = text, layout, 0

    def bad(self, element: str) -> TimeError:
        rest = self.text[self.at :]
        return TimeError(
            f"parsing time {quote(self.text)} as {quote(self.layout)}: cannot parse {quote(rest)} as {quote(element)}"
        )

    def range(self, what: str) -> None:
        raise TimeError(f"parsing time {quote(self.text)}: {what} out of range")

    def digits(self, least: int, most: int, element: str) -> int:
        end = self.at
        while end < len(self.text) and end - self.at < most and "0" <= self.text[end] <= "9":
            end += 1
        if end - self.at < least:
            raise self.bad(element)
        value, self.at = int(self.text[self.at : end]), end
        return value

    def literal(self, char: str) -> None:
        if not self.text.startswith(char, self.at):
            raise self.bad(char)
        self.at += 1

    def fraction(self) -> int:
        """Digits after the seconds are taken although the layout has none."""
        match = _FRACTION.match(self.text, self.at)
        if match is None:
            return 0
        self.at = match.end()
        return int(match[1][:9].ljust(9, "0"))

    def exact_micros(self) -> int:
        match = _SIX.match(self.text, self.at)
        if match is None:
            raise self.bad(".000000")
        self.at = match.end()
        return int(match[1]) * 1000

    def offset(self) -> int:
        if self.text.startswith("Z", self.at):
            self.at += 1
            return 0
        match = _OFFSET.match(self.text, self.at)
        if match is None:
            raise self.bad("Z07:00")
        hours, minutes = int(match[2]), int(match[3])
        if hours > 24:
            self.range("time zone offset hour")
        if minutes > 60:
            self.range("time zone offset minute")
        self.at = match.end()
        return (hours * 3600 + minutes * 60) * (-1 if match[1] == "-" else 1)

    def end(self) -> None:
        if self.at < len(self.text):
            raise TimeError(f"parsing time {quote(self.text)}: extra text: {quote(self.text[self.at :])}")


_FRACTION = re.compile(r"[.,](\d+)", re.ASCII)
_SIX = re.compile(r"[.,](\d{6})", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)", re.ASCII)


# --- durations

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PIECE = re.compile(r"(\d*)(?:(\.)(\d*))?([^.0-9]*)", re.ASCII)
_MAX = 1 << 63


def parse_duration(text: str) -> int:
    """Nanoseconds of a duration such as `1h2m3.5s`."""
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise TimeError(f"time: invalid duration {quote(text)}")
    total, at = 0, 0
    while at < len(rest):
        match = _PIECE.match(rest, at)
        if match is None or not (match[1] or match[3]):
            raise TimeError(f"time: invalid duration {quote(text)}")
        whole, _, fraction, unit = match.groups(default="")
        if not unit:
            raise TimeError(f"time: missing unit in duration {quote(text)}")
        size = _UNITS.get(unit)
        if size is None:
            raise TimeError(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
        if len(whole) > 19 or len(fraction) > 4000:
            raise TimeError(f"time: invalid duration {quote(text)}")
        total += int(whole or "0") * size
        if fraction:
            total += int(fraction) * size // int(10 ** len(fraction))
        if total > _MAX:
            raise TimeError(f"time: invalid duration {quote(text)}")
        at = match.end()
    if total == _MAX and not negative:
        raise TimeError(f"time: invalid duration {quote(text)}")
    return -total if negative else total


def format_duration(nanos: int) -> str:
    """A duration as Go prints it: `1h0m0s`, `1.5s`, `20ms`, `0s`."""
    if nanos == 0:
        return "0s"
    sign, rest = ("-", -nanos) if nanos < 0 else ("", nanos)
    if rest < 1_000_000_000:
        for unit, size in (("ns", 1), ("\u00b5s", 1_000), ("ms", 1_000_000)):
            if rest < size * 1000:
                return f"{sign}{_fraction(rest, size)}{unit}"
    minutes, rest = divmod(rest, 60_000_000_000)
    text = f"{_fraction(rest, 1_000_000_000)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _fraction(value: int, size: int) -> str:
    whole, rest = divmod(value, size)
    if not rest:
        return str(whole)
    digits = str(rest).rjust(len(str(size)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"
