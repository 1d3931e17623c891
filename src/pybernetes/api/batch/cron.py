"""Cron schedules: which moments a text such as `*/5 8-18 * * mon-fri` or `@daily` stands for.

Accepts and refuses what upstream's parser does, in its words: five fields, names of months and days, steps, `?` for
`*`, descriptors, `@every` with a duration. Day of month and day of week must both match if either is a star, else one
of them is enough: the oldest surprise of cron, and part of the interface.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from ..gocompat.quote import quote
from ..times import TimeError, parse_duration

_LOOK_AHEAD: Final = 5
"""Years after which a schedule counts as never due (30 February)."""


class CronError(ValueError):
    """A text that is no schedule."""


class _Bounds(NamedTuple):
    low: int
    high: int
    names: dict[str, int]


def _numbered(names: str, start: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), start)}


_MINUTES = _Bounds(0, 59, {})
_HOURS = _Bounds(0, 23, {})
_DAYS = _Bounds(1, 31, {})
_MONTHS = _Bounds(1, 12, _numbered("jan feb mar apr may jun jul aug sep oct nov dec", 1))
_WEEKDAYS = _Bounds(0, 6, _numbered("sun mon tue wed thu fri sat", 0))

# What Go takes for white space; Python has four control characters more.
_split = re.compile("[^\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+").findall
_is_integer = re.compile("[+-]?[0-9]+", re.ASCII).fullmatch

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Field(NamedTuple):
    """The values of one field; a star matters for days."""

    values: frozenset[int]
    star: bool


class Schedule(NamedTuple):
    """The moments at which all fields match."""

    minutes: Field
    hours: Field
    days: Field
    months: Field
    weekdays: Field
    zone: tzinfo | None

    def following(self, after: datetime) -> datetime | None:
        """The first moment after the given one (which has a zone), in its zone; None if there is none for years.

        A time that the switch to summer time leaves out does not happen, one that comes twice happens twice.
        """
        zone = self.zone or after.tzinfo
        moment = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = moment + timedelta(days=366 * _LOOK_AHEAD)
        while moment < end:
            local = moment.astimezone(zone)
            if local.month not in self.months.values or not self._matches_day(local.day, local.isoweekday() % 7):
                midnight = datetime(local.year, local.month, local.day, tzinfo=zone) + timedelta(days=1)
                moment = max(midnight.astimezone(UTC), moment + timedelta(minutes=1))
                continue
            minutes = self.minutes.values if local.hour in self.hours.values else ()
            later = [minute for minute in minutes if minute >= local.minute]
            if later:
                return (moment + timedelta(minutes=min(later) - local.minute)).astimezone(after.tzinfo)
            moment += timedelta(minutes=60 - local.minute)
        return None

    def _matches_day(self, day: int, weekday: int) -> bool:
        matches = (day in self.days.values, weekday in self.weekdays.values)
        return all(matches) if self.days.star or self.weekdays.star else any(matches)


class Every(NamedTuple):
    """At equal distances, counted from the last time."""

    seconds: int

    def following(self, after: datetime) -> datetime | None:
        """The given moment, in whole seconds, and the distance."""
        return after.replace(microsecond=0) + timedelta(seconds=self.seconds)


def parse(text: str) -> Schedule | Every:
    """The schedule a text stands for. Raises CronError."""
    if not text:
        raise CronError("empty spec string")
    zone = None
    if text.startswith(("TZ=", "CRON_TZ=")):
        name, blank, rest = text.partition("=")[2].partition(" ")
        if not blank:
            # What upstream says when its parser falls over this.
            raise CronError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        try:
            zone = load_location(name)
        except CronError as error:
            raise CronError(f"provided bad location {name}: {error}") from None
        text = rest.strip()
    if text.startswith("@"):
        if text.startswith("@every "):
            return _every(text)
        if text not in _DESCRIPTORS:
            raise CronError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    fields = _split(text)
    if len(fields) != 5:
        raise CronError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    return Schedule(
        _field(fields[0], _MINUTES),
        _field(fields[1], _HOURS),
        _field(fields[2], _DAYS),
        _field(fields[3], _MONTHS),
        _field(fields[4], _WEEKDAYS),
        zone,
    )


def load_location(name: str) -> tzinfo | None:
    """A time zone by its name in the tz database; None for the machine's own. Raises CronError."""
    if name in ("", "UTC"):
        return UTC
    if name == "Local":
        return None
    if ".." in name or name[0] in "/\\" or "\\" in name:
        raise CronError("time: invalid location name")
    try:
        return ZoneInfo(name)
    except IsADirectoryError:
        raise CronError("is a directory") from None
    except (ValueError, OSError, KeyError):
        raise CronError(f"unknown time zone {name}") from None


def _every(text: str) -> Every:
    try:
        nanoseconds = parse_duration(text.removeprefix("@every "))
    except TimeError as error:
        raise CronError(f"failed to parse duration {text}: {error}") from None
    return Every(max(1, nanoseconds // 1_000_000_000))


def _field(text: str, bounds: _Bounds) -> Field:
    values: set[int] = set()
    star = False
    for expression in filter(None, text.split(",")):
        more, starred = _range(expression, bounds)
        values.update(more)
        star = star or starred
    return Field(frozenset(values), star)


def _range(expression: str, bounds: _Bounds) -> tuple[range, bool]:
    span, *steps = expression.split("/")
    first, *rest = span.split("-")
    star = first in ("*", "?")
    if star:
        start, end = bounds.low, bounds.high
    else:
        start = end = _number(first, bounds)
        if len(rest) == 1:
            end = _number(rest[0], bounds)
        elif rest:
            raise CronError(f"too many hyphens: {expression}")
    step = 1
    if len(steps) == 1:
        step = _integer(steps[0])
        if not rest:
            end = bounds.high  # N/step counts from N to the end
        star = star and step <= 1
    elif steps:
        raise CronError(f"too many slashes: {expression}")
    if start < bounds.low:
        raise CronError(f"beginning of range ({start}) below minimum ({bounds.low}): {expression}")
    if end > bounds.high:
        raise CronError(f"end of range ({end}) above maximum ({bounds.high}): {expression}")
    if start > end:
        raise CronError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {expression}")
    return range(start, end + 1, step), star


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return named if named is not None else _integer(text)


def _integer(text: str) -> int:
    if not _is_integer(text):
        raise CronError(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: invalid syntax")
    if len(text) > 4000 or not -(1 << 63) <= int(text) < 1 << 63:
        raise CronError(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: value out of range")
    number = int(text)
    if number < 0:
        raise CronError(f"negative number ({number}) not allowed: {text}")
    return number
