"""Jobs and CronJobs."""

from __future__ import annotations

from typing import Final

from pybernetes.api.batch.v1 import CronJob, CronJobSpec, CronJobStatus, Job, JobSpec, JobStatus
from pybernetes.api.times import parse_time

from . import duration, formats
from .printer import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    SELECTOR,
    UNSET,
    Cells,
    Printer,
    age,
    boolean,
    deleting,
    integer,
    name,
    text,
)


def _job(job: Job, now: float) -> Cells:
    spec, status = job.spec or JobSpec(), job.status or JobStatus()
    return [
        name(job),
        _status(job, status),
        _completions(spec, status),
        _duration(status, now),
        age(job, now),
        *formats.containers(spec.template),
        formats.label_selector(spec.selector),
    ]


def _status(job: Job, status: JobStatus) -> str:
    """The status column of a job. A finished condition counts more than a deletion, a deletion more than progress."""
    true: dict[str, bool] = {}
    for condition in reversed(status.conditions or ()):
        true[condition.type or ""] = condition.status == "True"
    if true.get("Complete"):
        return "Complete"
    if true.get("Failed"):
        return "Failed"
    if deleting(job):
        return "Terminating"
    for type in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if true.get(type):
            return type
    return "Running"


def _completions(spec: JobSpec, status: JobStatus) -> str:
    succeeded = status.succeeded or 0
    if spec.completions is not None:
        return f"{succeeded}/{spec.completions}"
    # Without a number it is a work queue: any success ends it, however many pods work on it.
    parallelism = spec.parallelism or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(status: JobStatus, now: float) -> str:
    if status.start_time is None:
        return ""
    end = now if status.completion_time is None else parse_time(status.completion_time)
    return duration.human(end - parse_time(status.start_time))


def _cron_job(cron_job: CronJob, now: float) -> Cells:
    spec, status = cron_job.spec or CronJobSpec(), cron_job.status or CronJobStatus()
    job = (spec.job_template.spec if spec.job_template else None) or JobSpec()
    return [
        name(cron_job),
        spec.schedule or "",
        NONE if spec.time_zone is None else spec.time_zone,
        UNSET if spec.suspend is None else str(spec.suspend),
        len(status.active or ()),
        duration.since(status.last_schedule_time, now) if status.last_schedule_time else NONE,
        age(cron_job, now),
        *formats.containers(job.template),
        formats.label_selector(job.selector),
    ]


PRINTERS: Final[dict[str, Printer]] = {
    "CronJob": Printer(
        (
            NAME,
            text("Schedule", "When jobs are made"),
            text("Timezone", "Where the schedule's clock is"),
            boolean("Suspend", "Whether no jobs are made"),
            integer("Active", "Jobs that run"),
            text("Last Schedule", "Time since the last job was made"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        _cron_job,
    ),
    "Job": Printer(
        (
            NAME,
            text("Status", "What the job is at"),
            text("Completions", "Pods that succeeded, of those that must"),
            text("Duration", "How long the job took, or has taken so far"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        _job,
    ),
}
