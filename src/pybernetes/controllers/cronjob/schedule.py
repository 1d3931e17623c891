"""When a CronJob was due last, and when it is next.

Of all the times missed while the controller was away only the most recent one is made up for. How many they were is
estimated from the distance of two, and reported if more than a hundred: a clock is wrong, or the outage was long.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from pybernetes.api.batch.cron import CronError, Every, Schedule, load_location, parse
from pybernetes.api.batch.v1 import CronJob, CronJobSpec

from ..common.meta import created, seconds

TOO_MANY_MISSED: Final = 100
MARGIN: Final = 0.1
"""Seconds to wake up late, because clocks differ a little: waking up too early means waiting once more."""

LATEST: Final = 32503680000.0
"""The year 3000."""

Times = Schedule | Every


class ScheduleError(ValueError):
    """A schedule that can be read but has no times, such as 31 February."""


class Due(NamedTuple):
    """The result of a schedule at a moment."""

    since: datetime
    """From here on times were looked for."""
    time: datetime | None
    """The most recent time that is due."""
    missed: int
    """About how many times have passed; 0 if at most one."""


def local_zone() -> tzinfo:
    """The zone of this machine, in which schedules without a time zone are meant."""
    name = os.environ.get("TZ")
    if name is not None:
        try:
            return load_location(name.removeprefix(":")) or UTC
        except CronError:
            return UTC
    try:
        with open("/etc/localtime", "rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return UTC


def schedule_of(cron_job: CronJob) -> Times:
    """The times of a CronJob. Raises CronError."""
    spec = cron_job.spec or CronJobSpec()
    text = spec.schedule or ""
    if spec.time_zone and "TZ" not in text:
        text = f"TZ={spec.time_zone} {text}"
    return parse(text)


def latest_due(cron_job: CronJob, times: Times, now: datetime, *, within_deadline: bool) -> Due:
    """The most recent time up to now since the CronJob last ran or was created. Raises ScheduleError.

    With `within_deadline` nothing is looked for that is too late to be started.
    """
    last = cron_job.status.last_schedule_time if cron_job.status else None
    since = _moment(seconds(last) if last else created(cron_job), now)
    deadline = cron_job.spec.starting_deadline_seconds if cron_job.spec else None
    if within_deadline and deadline is not None:
        since = max(since, _earlier(now, deadline))
    first = times.following(since)
    if first is not None and now < first:
        return Due(since, None, 0)
    second = times.following(first) if first is not None else None
    if first is not None and second is not None and now < second:
        return Due(since, first, 0)
    if first is None or second is None or (gap := round((second - first).total_seconds())) < 1:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    missed = int((now - first).total_seconds()) // gap + 1
    # From one step before the estimated last time: steps need not be equal (30 6-16/4 * * 1-5), and those of @every
    # must be counted in whole ones from the first.
    latest = None
    time = times.following(first + timedelta(seconds=(missed - 2) * gap))
    while time is not None and time <= now:
        latest, time = time, times.following(time)
    return Due(since, latest, missed)


def seconds_to_next(cron_job: CronJob, times: Times, now: datetime) -> float | None:
    """Seconds until the CronJob is due next; None if it never is."""
    try:
        due = latest_due(cron_job, times, now, within_deadline=False)
        last = due.time or (now if due.missed else due.since)
    except ScheduleError:
        last = now
    following = times.following(last)
    return (following - now).total_seconds() + MARGIN if following is not None else None


def _moment(timestamp: float, like: datetime) -> datetime:
    """The time; one that schedules cannot be computed from, such as a year 0 or 9999 in a status, is moved to 1970 or
    to the year 3000: before all times that matter, or long after them."""
    return datetime.fromtimestamp(min(max(timestamp, 0.0), LATEST), like.tzinfo)


def _earlier(now: datetime, by: int) -> datetime:
    try:
        return now - timedelta(seconds=by)
    except OverflowError:  # a deadline of more than two thousand years
        return datetime.fromtimestamp(0, now.tzinfo)
