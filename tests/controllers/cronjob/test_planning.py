from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from pybernetes.api.batch.v1 import CronJob, CronJobStatus, Job
from pybernetes.api.times import rfc3339
from pybernetes.controllers.cronjob.planning import decide, job_for, see_ended, superfluous
from pybernetes.controllers.cronjob.schedule import latest_due, schedule_of, seconds_to_next

TEN = datetime(2024, 6, 3, 10, 0, tzinfo=UTC)


def text(moment: datetime) -> str:
    return rfc3339(moment.timestamp())


def cron_job(schedule: str = "0 * * * *", created: datetime = TEN, status: Any = None, **spec: Any) -> CronJob:
    whole = {
        "metadata": {"name": "tick", "namespace": "ns", "uid": "cron-uid", "creationTimestamp": text(created)},
        "spec": {"schedule": schedule, "concurrencyPolicy": "Allow", **spec},
        "status": status or {},
    }
    return msgspec.convert(whole, CronJob)


def job(name: str, condition: str | None = None, start: datetime | None = TEN, end: datetime | None = None) -> Job:
    status: dict[str, Any] = {"startTime": text(start) if start else None}
    if condition:
        status["conditions"] = [{"type": condition, "status": "True"}]
    if end:
        status["completionTime"] = text(end)
    return msgspec.convert({"metadata": {"name": name, "uid": f"uid-{name}"}, "status": status}, Job)


@pytest.mark.parametrize(
    ("minutes", "due", "missed"),
    [
        (10, None, 0),
        (60, 60, 0),
        (90, 60, 0),
        (120, 120, 2),
        (60 * 50 + 5, 60 * 50, 50),
        (60 * 200, 60 * 200, 200),
    ],
)
def test_only_the_most_recent_of_the_missed_times_is_due(minutes: int, due: int | None, missed: int) -> None:
    cron = cron_job()
    found = latest_due(cron, schedule_of(cron), TEN + timedelta(minutes=minutes), within_deadline=True)
    assert found.time == (TEN + timedelta(minutes=due) if due is not None else None)
    assert found.missed == missed


def test_uneven_schedules_find_their_last_time() -> None:
    cron = cron_job("30 6-16/4 * * 1-5", created=TEN - timedelta(days=7))
    found = latest_due(cron, schedule_of(cron), TEN, within_deadline=True)
    assert found.time == datetime(2024, 6, 3, 6, 30, tzinfo=UTC)


def test_every_counts_from_the_last_run() -> None:
    cron = cron_job("@every 7m", status={"lastScheduleTime": text(TEN)})
    found = latest_due(cron, schedule_of(cron), TEN + timedelta(minutes=30), within_deadline=True)
    assert found.time == TEN + timedelta(minutes=28)


def test_deadline_hides_what_is_too_late() -> None:
    cron = cron_job(startingDeadlineSeconds=60)
    assert decide(cron, TEN + timedelta(minutes=62)).start is None
    assert decide(cron, TEN + timedelta(minutes=60, seconds=59)).start == TEN + timedelta(hours=1)


def test_next_wake_up_is_a_little_after_the_next_time() -> None:
    cron = cron_job()
    assert seconds_to_next(cron, schedule_of(cron), TEN + timedelta(minutes=10)) == pytest.approx(50 * 60 + 0.1)
    later = TEN + timedelta(hours=5, minutes=59)
    assert seconds_to_next(cron, schedule_of(cron), later) == pytest.approx(60.1)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedule": "TZ=UTC 0 * * * *"}, "UnsupportedSchedule"),
        ({"schedule": "never"}, "UnparseableSchedule"),
        ({"schedule": "59 23 31 2 *"}, "InvalidSchedule"),
        ({"timeZone": "Nowhere/Land"}, "UnknownTimeZone"),
        ({"created": TEN - timedelta(hours=200)}, "TooManyMissedTimes"),
    ],
)
def test_trouble_with_the_schedule_is_reported(spec: dict[str, Any], reason: str) -> None:
    events = decide(cron_job(**spec), TEN + timedelta(hours=1)).events
    assert [event[:2] for event in events] == [("Warning", reason)]


def test_suspended_and_deleted_cron_jobs_start_nothing() -> None:
    assert decide(cron_job(suspend=True), TEN + timedelta(hours=2)).start is None
    deleted = cron_job()
    assert deleted.metadata is not None
    deleted.metadata.deletion_timestamp = text(TEN)
    assert decide(deleted, TEN + timedelta(hours=2)).start is None


def test_nothing_starts_twice_for_one_time() -> None:
    eleven = TEN + timedelta(hours=1)
    minutes = int(eleven.timestamp()) // 60
    assert decide(cron_job(status={"active": [{"name": f"tick-{minutes}"}]}), eleven).start is None
    assert decide(cron_job(status={"lastScheduleTime": text(eleven)}), eleven).start is None


@pytest.mark.parametrize(("policy", "starts"), [("Allow", True), ("Forbid", False), ("Replace", True)])
def test_concurrency_policy(policy: str, starts: bool) -> None:
    decision = decide(cron_job(concurrencyPolicy=policy, status={"active": [{"name": "x"}]}), TEN + timedelta(hours=1))
    assert (decision.start is not None) is starts
    assert [event[1] for event in decision.events] == ([] if starts else ["JobAlreadyActive"])


def test_time_zone_moves_the_schedule() -> None:
    cron = cron_job("0 9 * * *", created=TEN - timedelta(days=1), timeZone="Europe/Berlin")
    assert decide(cron, TEN).start == datetime(2024, 6, 3, 9, 0, tzinfo=ZoneInfo("Europe/Berlin"))


def test_job_is_named_by_its_minute_and_knows_its_time() -> None:
    template = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"parallelism": 2}}
    made = job_for(cron_job(jobTemplate=template, timeZone="Europe/Berlin"), TEN)
    assert made.metadata is not None
    assert made.metadata.name == f"tick-{int(TEN.timestamp()) // 60}"
    assert made.metadata.labels == {"a": "b"}
    stamp = made.metadata.annotations or {}
    assert stamp == {"c": "d", "batch.kubernetes.io/cronjob-scheduled-timestamp": "2024-06-03T12:00:00+02:00"}
    (owner,) = made.metadata.owner_references or ()
    assert (owner.kind, owner.uid, owner.controller, owner.block_owner_deletion) == ("CronJob", "cron-uid", True, True)
    assert made.spec is not None
    assert made.spec.parallelism == 2
    plain = job_for(cron_job(), TEN).metadata
    assert plain is not None
    assert list((plain.annotations or {}).values()) == ["2024-06-03T10:00:00Z"]


def test_ended_jobs_leave_the_list_and_the_last_success_is_kept() -> None:
    status = msgspec.convert({"active": [{"name": "a", "uid": "uid-a"}, {"name": "b", "uid": "uid-b"}]}, CronJobStatus)
    hour = timedelta(hours=1)
    jobs = [job("a", "Complete", end=TEN + hour), job("b"), job("old", "Complete", end=TEN), job("c", "Failed")]
    new, events = see_ended(status, jobs)
    assert [each.name for each in new.active or ()] == ["b"]
    assert new.last_successful_time == text(TEN + hour)
    assert events == [("Normal", "SawCompletedJob", "Saw completed job: a, condition: Complete")]
    assert len(status.active or ()) == 2


def test_history_keeps_the_newest_of_each_kind() -> None:
    times = [TEN + timedelta(hours=number) for number in range(4)]
    jobs = [job(f"good-{number}", "Complete", start) for number, start in enumerate(times)]
    jobs += [job(f"bad-{number}", "Failed", start) for number, start in enumerate(times)]
    jobs += [job("running")]
    limited = cron_job(successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    names = [each.metadata.name for each in superfluous(limited, jobs[::-1]) if each.metadata]
    assert names == ["good-0", "bad-0", "bad-1", "bad-2"]
    assert superfluous(cron_job(), jobs) == []


@pytest.mark.parametrize("zone", [None, "Pacific/Apia", "America/New_York"])
@pytest.mark.parametrize("schedule", ["* * * * *", "0 0 29 2 *", "@every 7m"])
def test_times_at_the_ends_of_the_calendar_are_no_error(schedule: str, zone: str | None) -> None:
    long_ago = ("0000-05-01T00:00:00Z", "0000-02-29T00:00:00Z", "0001-01-02T00:00:00Z", "1969-12-31T23:59:59Z")
    now = TEN + timedelta(seconds=1)
    for time in long_ago:
        cron = cron_job(schedule, status={"lastScheduleTime": time}, timeZone=zone)
        found = decide(cron, now)
        assert found.start is not None
        assert found.start <= now
    for time in ("9999-12-31T23:59:59Z", "3000-01-01T00:00:00Z"):
        cron = cron_job(schedule, status={"lastScheduleTime": time}, timeZone=zone)
        found = decide(cron, now)
        assert found.start is None
        assert found.again is not None
        assert found.again > 0
