"""Times, durations and clocks."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api import times
from pybernetes.api.times import TimeError


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T01:30:00+01:30", "2024-01-01T00:00:00Z"),
        ("2023-12-31T23:00:00-01:00", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00.999Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("2024-01-01T1:00:00Z", "2024-01-01T01:00:00Z"),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_a_time_is_kept_in_utc_to_the_second(text: str, want: str | None) -> None:
    assert times.canonical_time(text) == want
    assert times.canonical_time(text) == want  # and from the cache


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
        ("abc", 'parsing time "abc" as "2006-01-02T15:04:05Z07:00": cannot parse "abc" as "2006"'),
        ("2024-01-01", 'parsing time "2024-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        (
            "2024-01-01T00:00:00",
            'parsing time "2024-01-01T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"',
        ),
        (
            "2024-01-01 00:00:00Z",
            'parsing time "2024-01-01 00:00:00Z" as "2006-01-02T15:04:05Z07:00": cannot parse " 00:00:00Z" as "T"',
        ),
        ("2024-13-01T00:00:00Z", 'parsing time "2024-13-01T00:00:00Z": month out of range'),
        ("2023-02-29T00:00:00Z", 'parsing time "2023-02-29T00:00:00Z": day out of range'),
        ("2024-01-01T24:00:00Z", 'parsing time "2024-01-01T24:00:00Z": hour out of range'),
        ("2024-01-01T00:00:00Zx", 'parsing time "2024-01-01T00:00:00Zx": extra text: "x"'),
    ],
)
def test_text_that_is_no_time_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(TimeError) as refused:
        times.canonical_time(text)
    assert str(refused.value) == message


def test_a_micro_time_has_exactly_six_digits() -> None:
    assert times.canonical_micro_time("2024-01-01T01:00:00.123456+01:00") == "2024-01-01T00:00:00.123456Z"
    assert times.canonical_micro_time("0001-01-01T00:00:00.000000Z") is None
    for text in ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00.123Z", "2024-01-01T00:00:00.123456789Z"):
        with pytest.raises(TimeError, match=r"2006-01-02T15:04:05\.000000Z07:00"):
            times.canonical_micro_time(text)


@given(st.datetimes(datetime(1000, 1, 2), datetime(9998, 12, 30)), st.integers(-1439, 1439))
def test_any_offset_becomes_the_same_moment_in_utc(moment: datetime, minutes: int) -> None:
    offset = timedelta(minutes=minutes)
    sign, rest = ("-", -minutes) if minutes < 0 else ("+", minutes)
    text = f"{(moment + offset).replace(microsecond=0).isoformat()}{sign}{rest // 60:02d}:{rest % 60:02d}"
    assert times.canonical_time(text) == moment.replace(microsecond=0).isoformat() + "Z"


def test_seconds_since_1970_become_text_and_back() -> None:
    assert times.rfc3339(0) == "1970-01-01T00:00:00Z"
    assert times.rfc3339(1_700_000_000.9) == "2023-11-14T22:13:20Z"
    assert times.rfc3339(-1) == "1969-12-31T23:59:59Z"
    assert times.rfc3339_micro(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"
    assert times.rfc3339_micro(1.9999999) == "1970-01-01T00:00:02.000000Z"
    assert times.parse_time("2023-11-14T22:13:20Z") == 1_700_000_000
    assert times.parse_time("2023-11-14T23:13:20.5+01:00") == 1_700_000_000.5


def test_now_is_now() -> None:
    assert abs(times.parse_time(times.now()) - time.time()) < 5
    assert abs(times.parse_time(times.now_micro()) - datetime.now(UTC).timestamp()) < 5


@pytest.mark.parametrize(
    ("text", "nanos", "printed"),
    [
        ("0", 0, "0s"),
        ("0s", 0, "0s"),
        ("1h", 3_600_000_000_000, "1h0m0s"),
        ("1h2m3.5s", 3_723_500_000_000, "1h2m3.5s"),
        ("90s", 90_000_000_000, "1m30s"),
        ("1500ms", 1_500_000_000, "1.5s"),
        ("20ms", 20_000_000, "20ms"),
        ("1.5us", 1_500, "1.5\u00b5s"),
        ("7ns", 7, "7ns"),
        ("-1m", -60_000_000_000, "-1m0s"),
        ("+.5s", 500_000_000, "500ms"),
    ],
)
def test_durations_are_read_and_printed_as_go_does(text: str, nanos: int, printed: str) -> None:
    assert times.parse_duration(text) == nanos
    assert times.format_duration(nanos) == printed
    assert times.parse_duration(printed) == nanos


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("x", 'time: invalid duration "x"'),
        (".s", 'time: invalid duration ".s"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
    ],
)
def test_text_that_is_no_duration_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(TimeError) as refused:
        times.parse_duration(text)
    assert str(refused.value) == message


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_every_duration_survives_being_printed(nanos: int) -> None:
    assert times.parse_duration(times.format_duration(nanos)) == nanos


def test_a_fake_clock_moves_only_by_calls() -> None:
    clock = times.FakeClock(100.0)
    assert (clock.now(), clock.monotonic()) == (100.0, 0.0)
    clock.advance(5)
    assert (clock.now(), clock.monotonic()) == (105.0, 5.0)
    clock.set(50)
    assert (clock.now(), clock.monotonic()) == (50, 5.0)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)


def test_the_system_clock_is_a_clock() -> None:
    clock: times.Clock = times.SystemClock()
    assert abs(clock.now() - time.time()) < 5
    assert clock.monotonic() <= clock.monotonic()


ODD_TIMES = [
    ("0000-05-01T00:00:00Z", -62_156_764_800, "0000-05-01T00:00:00Z"),
    ("0000-02-29T00:00:00Z", -62_162_121_600, "0000-02-29T00:00:00Z"),
    ("0000-01-01T00:00:00Z", times.FIRST, "0000-01-01T00:00:00Z"),
    ("0000-12-31T23:59:59Z", -62_135_596_801, "0000-12-31T23:59:59Z"),
    ("0000-03-01T00:00:00+24:00", -62_162_121_600, "0000-02-29T00:00:00Z"),
    ("0001-01-01T01:00:00+02:00", -62_135_600_400, "0000-12-31T23:00:00Z"),
    ("2024-01-01T1:00:00Z", 1_704_070_800, "2024-01-01T01:00:00Z"),
    ("2024-01-02T01:00:00+24:60", 1_704_067_200, "2024-01-01T00:00:00Z"),
    ("9999-12-31T23:59:59Z", times.LAST, "9999-12-31T23:59:59Z"),
]


@pytest.mark.parametrize(("text", "seconds", "kept"), ODD_TIMES)
def test_every_time_that_go_accepts_is_kept_and_can_be_read_again(text: str, seconds: int, kept: str) -> None:
    assert times.parse_time(text) == seconds
    assert times.canonical_time(text) == kept
    assert times.parse_time(kept) == seconds
    assert times.rfc3339(seconds) == kept


@given(st.integers(times.FIRST, times.LAST), st.integers(-24 * 60 - 60, 24 * 60 + 60))
def test_whatever_is_accepted_can_be_read_from_what_is_kept(seconds: int, minutes: int) -> None:
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    if hours == 25:
        hours, rest = 24, 60
    text = f"{times.civil(seconds)}{sign}{hours:02d}:{rest:02d}"
    kept = times.canonical_time(text)
    if kept is not None:
        assert times.parse_time(kept) == times.parse_time(text)


def test_what_an_offset_moves_out_of_the_calendar_is_the_zero_time() -> None:
    assert times.canonical_time("0000-01-01T00:00:00+01:00") is None
    assert times.canonical_time("9999-12-31T23:59:59-01:00") is None
    assert times.parse_time("9999-12-31T23:59:59-01:00") == times.LAST + 3600


def test_seconds_outside_of_the_calendar_are_written_as_its_ends() -> None:
    assert times.rfc3339(1e18) == "9999-12-31T23:59:59Z"
    assert times.rfc3339(-1e18) == "0000-01-01T00:00:00Z"
    assert times.rfc3339_micro(1e15) == "9999-12-31T23:59:59.000000Z"


@pytest.mark.parametrize("text", ["2024-W01-1T00:00:00Z", "20240101T000000.000Z", "2024-01-01 00:00:00Z", "2024-01-01"])
def test_forms_of_iso_8601_that_go_refuses_are_no_times(text: str) -> None:
    with pytest.raises(TimeError):
        times.parse_time(text)
