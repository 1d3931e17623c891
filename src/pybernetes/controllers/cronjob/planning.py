"""Plans the next step of a CronJob from its Jobs and the time: which Jobs have ended, which to start, which old to
delete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime

import msgspec

from pybernetes.api.batch.cron import CronError, load_location
from pybernetes.api.batch.v1 import CronJob, CronJobSpec, CronJobStatus, Job, JobSpec, JobTemplateSpec
from pybernetes.api.core.v1.reference import ObjectReference
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.api.times import rfc3339
from pybernetes.client.keys import controller_reference, uid_of

from ..common.meta import is_deleting, name_of, seconds
from ..job.conditions import finished_condition
from .schedule import TOO_MANY_MISSED, ScheduleError, latest_due, schedule_of, seconds_to_next

SCHEDULED_TIMESTAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"

_UNSUPPORTED = (
    "CRON_TZ or TZ used in schedule {} is not officially supported, "
    "see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
_TOO_MANY = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
_FORBIDDEN = "Not starting job because prior execution is running and concurrency policy is Forbid"


@dataclass(slots=True)
class Decision:
    """Whether to start a Job now and when to look again."""

    start: datetime | None = None
    """The time for which a Job is due."""
    again: float | None = None
    """Seconds until the next time; None: nothing to do before the CronJob changes."""
    events: list[tuple[str, str, str]] = field(default_factory=list)
    """Type, reason and message."""


def decide(cron_job: CronJob, now: datetime) -> Decision:
    """Whether a Job is due; `now` is in the zone in which schedules without one are meant."""
    spec, status = cron_job.spec or CronJobSpec(), cron_job.status or CronJobStatus()
    decision = Decision()
    if is_deleting(cron_job):
        return decision
    warn = _Warnings(decision)
    if spec.time_zone is not None:
        try:
            load_location(spec.time_zone)
        except CronError as error:
            warn("UnknownTimeZone", f"invalid timeZone: {quote(spec.time_zone)}: {error}")
            return decision
    if spec.suspend:
        return decision
    if "TZ" in (spec.schedule or ""):
        warn("UnsupportedSchedule", _UNSUPPORTED.format(quote(spec.schedule or "")))
    try:
        times = schedule_of(cron_job)
    except CronError as error:
        warn("UnparseableSchedule", f"unparseable schedule: {quote(spec.schedule or '')} : {error}")
        return decision
    try:
        due = latest_due(cron_job, times, now, within_deadline=True)
    except ScheduleError as error:
        warn("InvalidSchedule", f"invalid schedule: {spec.schedule} : {error}")
        return decision
    decision.again = seconds_to_next(cron_job, times, now)
    if due.time is None:
        return decision
    if due.missed > TOO_MANY_MISSED:
        warn("TooManyMissedTimes", _TOO_MANY)
    late = (now - due.time).total_seconds()
    if spec.starting_deadline_seconds is not None and late > spec.starting_deadline_seconds:
        warn("MissSchedule", f"Missed scheduled time to start a job: {format_datetime(due.time.astimezone(UTC))}")
        return decision
    name = job_name(cron_job, due.time)
    if any(each.name == name for each in status.active or ()):
        return decision
    if spec.concurrency_policy == "Forbid" and status.active:
        decision.events.append(("Normal", "JobAlreadyActive", _FORBIDDEN))
        return decision
    decision.start = due.time
    return decision


class _Warnings:
    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    def __call__(self, reason: str, message: str) -> None:
        self._decision.events.append(("Warning", reason, message))


def job_name(cron_job: CronJob, time: datetime) -> str:
    """The same name for the same time: a Job that exists already cannot be made again."""
    return f"{name_of(cron_job)}-{int(time.timestamp()) // 60}"


def job_for(cron_job: CronJob, time: datetime) -> Job:
    """The Job that is due at a time."""
    spec = cron_job.spec or CronJobSpec()
    template = spec.job_template or JobTemplateSpec()
    source = template.metadata or ObjectMeta()
    zone = load_location(spec.time_zone or "")
    stamp = time.astimezone(zone).isoformat(timespec="seconds")
    stamp = stamp.removesuffix("+00:00") + "Z" if stamp.endswith("+00:00") else stamp
    return Job(
        metadata=ObjectMeta(
            name=job_name(cron_job, time),
            namespace=cron_job.metadata.namespace if cron_job.metadata else None,
            labels=dict(source.labels or {}) or None,
            annotations={**(source.annotations or {}), SCHEDULED_TIMESTAMP: stamp},
            owner_references=[controller_reference(cron_job)],
        ),
        spec=template.spec or JobSpec(),
    )


def written(time: datetime) -> str:
    """A time as a status has it."""
    return rfc3339(time.timestamp())


def reference_to(job: Job) -> ObjectReference:
    """How the status names a running Job."""
    meta = job.metadata or ObjectMeta()
    return ObjectReference(
        kind="Job",
        api_version="batch/v1",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def without(active: Iterable[ObjectReference] | None, uid: str) -> list[ObjectReference] | None:
    """The list of running Jobs without one of them."""
    return [each for each in active or () if each.uid != uid] or None


def see_ended(status: CronJobStatus, jobs: Iterable[Job]) -> tuple[CronJobStatus, list[tuple[str, str, str]]]:
    """The status when the ends of these Jobs have been seen, and the events that tell of them."""
    new = msgspec.structs.replace(status)
    events: list[tuple[str, str, str]] = []
    for job in jobs:
        condition = finished_condition(job)
        if condition is None:
            continue
        if any(each.uid == uid_of(job) for each in new.active or ()):
            new.active = without(new.active, uid_of(job))
            message = f"Saw completed job: {name_of(job)}, condition: {condition.type}"
            events.append(("Normal", "SawCompletedJob", message))
        ended = job.status.completion_time if job.status else None
        if condition.type == "Complete" and ended and seconds(ended) > seconds(new.last_successful_time):
            new.last_successful_time = ended
    return new, events


def superfluous(cron_job: CronJob, jobs: Sequence[Job]) -> list[Job]:
    """The ended Jobs beyond the limits of the history, the oldest first."""
    spec = cron_job.spec or CronJobSpec()
    result: list[Job] = []
    for kind, limit in (
        ("Complete", spec.successful_jobs_history_limit),
        ("Failed", spec.failed_jobs_history_limit),
    ):
        if limit is None:
            continue
        ended = [job for job in jobs if (condition := finished_condition(job)) and condition.type == kind]
        ended.sort(key=_by_start)
        result += ended[: max(0, len(ended) - limit)]
    return result


def _by_start(job: Job) -> tuple[bool, float, str]:
    start = job.status.start_time if job.status else None
    return start is None, seconds(start), name_of(job)
