"""Cron schedules: which texts are accepted, and when they are due."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.batch.cron import CronError, parse

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    "text",
    [
        "* * * * *",
        "? ? ? ? ?",
        "0 0 1 1 0",
        "59 23 31 12 6",
        "*/15 8-18/2 1,15 jan-MAR mon-Fri",
        "5/10 * * * *",
        ", * * * *",
        "+5 * * * *",
        "\u00a0* * * * *\t",
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
        "@every 1h30m",
        "@every -1h",
        "TZ=UTC * * * * *",
        "CRON_TZ=Europe/Berlin 0 8 * * *",
        "TZ= * * * * *",
    ],
)
def test_these_are_schedules(text: str) -> None:
    parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty spec string"),
        ("a", "expected exactly 5 fields, found 1: [a]"),
        (" @daily", "expected exactly 5 fields, found 1: [@daily]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("a b c d e", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("0 24 * * *", "end of range (24) above maximum (23): 24"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * 13 *", "end of range (13) above maximum (12): 13"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("-1 * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        (
            "99999999999999999999 * * * *",
            'failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": '
            "value out of range",
        ),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
        ("@every ", 'failed to parse duration @every : time: invalid duration ""'),
        ("@foo", "unrecognized descriptor: @foo"),
        ("@daily ", "unrecognized descriptor: @daily "),
        ("TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
        ("TZ=Foo * * * * *", "provided bad location Foo: unknown time zone Foo"),
        ("TZ=../x * * * * *", "provided bad location ../x: time: invalid location name"),
    ],
)
def test_these_are_not_and_the_message_says_why(text: str, message: str) -> None:
    with pytest.raises(CronError) as caught:
        parse(text)
    assert str(caught.value) == message


@given(st.text(alphabet="*/,-?0123456789 @TZ=everyhms:monJAN.\u00a0\x1c", max_size=30))
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    try:
        schedule = parse(text)
    except CronError:
        return
    schedule.following(datetime(2024, 1, 1, tzinfo=UTC))


def moment(text: str, zone: ZoneInfo | None = None) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone or UTC)


@pytest.mark.parametrize(
    ("text", "after", "due"),
    [
        ("* * * * *", "2024-01-01T00:00:00", "2024-01-01T00:01:00"),
        ("* * * * *", "2024-01-01T00:00:59", "2024-01-01T00:01:00"),
        ("*/15 * * * *", "2024-01-01T00:46:00", "2024-01-01T01:00:00"),
        ("0 8 * * mon-fri", "2024-01-05T08:00:00", "2024-01-08T08:00:00"),
        ("0 0 29 2 *", "2024-03-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 13 * fri", "2024-01-01T00:00:00", "2024-01-05T00:00:00"),
        ("0 0 13 * *", "2024-01-01T00:00:00", "2024-01-13T00:00:00"),
        ("0 0 * * 0", "2024-01-01T00:00:00", "2024-01-07T00:00:00"),
        ("@monthly", "2024-01-01T00:00:00", "2024-02-01T00:00:00"),
        ("@every 90s", "2024-01-01T00:00:00", "2024-01-01T00:01:30"),
        ("TZ=Europe/Berlin 0 8 * * *", "2024-07-01T00:00:00", "2024-07-01T06:00:00"),
    ],
)
def test_the_next_time_is_the_first_that_matches(text: str, after: str, due: str) -> None:
    assert parse(text).following(moment(after)) == moment(due)


def test_a_day_that_never_comes_is_not_due() -> None:
    assert parse("0 0 30 2 *").following(moment("2024-01-01T00:00:00")) is None


def test_a_time_that_summer_time_leaves_out_waits_for_the_next_day() -> None:
    due = parse("30 2 * * *").following(moment("2024-03-31T00:00:00", BERLIN))
    assert due == moment("2024-04-01T02:30:00", BERLIN)


def test_a_time_that_comes_twice_is_due_twice() -> None:
    schedule = parse("30 2 * * *")
    due, times = moment("2024-10-27T00:00:00", BERLIN), []
    for _ in range(3):
        due = schedule.following(due) or due
        times.append(due.astimezone(UTC))
    assert times == [moment("2024-10-27T00:30:00"), moment("2024-10-27T01:30:00"), moment("2024-10-28T01:30:00")]
