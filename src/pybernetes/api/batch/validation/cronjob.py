"""CronJobs."""

from __future__ import annotations

import re
from typing import Final

from ... import names
from ...field import FieldError, Path, invalid, not_supported, required
from ...meta.v1.objectmeta import ObjectMeta
from ...meta.validation import validate_not_negative, validate_object_meta, validate_object_meta_update
from ..cron import CronError, load_location, parse
from ..v1 import CronJob, CronJobSpec, JobSpec, JobTemplateSpec
from .job import validate_job_spec

MAX_NAME: Final = 52
"""Room for a dash and the minute of the schedule in a Job's name of at most 63."""

_SPEC = Path("spec")
_POLICIES = ("Allow", "Forbid", "Replace")
_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


def validate_cron_job(cron_job: CronJob) -> list[FieldError]:
    """A new CronJob."""
    meta = cron_job.metadata or ObjectMeta()
    errors = validate_object_meta(meta, True, names.name_is_dns_subdomain)
    errors += _validate_spec(cron_job.spec or CronJobSpec(), None)
    if len(meta.name or "") > MAX_NAME:
        errors.append(invalid(Path("metadata", "name"), meta.name, f"must be no more than {MAX_NAME} characters"))
    return errors


def validate_cron_job_update(new: CronJob, old: CronJob) -> list[FieldError]:
    """A changed CronJob; names and zones that were accepted once stay accepted."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    return errors + _validate_spec(new.spec or CronJobSpec(), old.spec or CronJobSpec())


def _validate_spec(spec: CronJobSpec, before: CronJobSpec | None) -> list[FieldError]:
    errors: list[FieldError] = []
    if not spec.schedule:
        errors.append(required(_SPEC.child("schedule")))
    else:
        allow_zone = before is not None and "TZ" in (before.schedule or "")
        errors += _validate_schedule(spec.schedule, spec.time_zone, allow_zone, _SPEC.child("schedule"))
    errors += validate_not_negative(spec.starting_deadline_seconds, _SPEC.child("startingDeadlineSeconds"))
    if spec.time_zone is not None and (before is None or before.time_zone != spec.time_zone):
        errors += _validate_time_zone(spec.time_zone, _SPEC.child("timeZone"))
    policy = spec.concurrency_policy
    if not policy:
        errors.append(required(_SPEC.child("concurrencyPolicy")))
    elif policy not in _POLICIES:
        errors.append(not_supported(_SPEC.child("concurrencyPolicy"), policy, _POLICIES))
    errors += _validate_template(spec.job_template, before, _SPEC.child("jobTemplate", "spec"))
    errors += validate_not_negative(spec.successful_jobs_history_limit, _SPEC.child("successfulJobsHistoryLimit"))
    return errors + validate_not_negative(spec.failed_jobs_history_limit, _SPEC.child("failedJobsHistoryLimit"))


def _validate_schedule(schedule: str, zone: str | None, allow_zone: bool, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    try:
        parse(schedule)
    except CronError as error:
        errors.append(invalid(path, schedule, str(error)))
    if "TZ" in schedule:
        if not allow_zone:
            detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(invalid(path, schedule, detail))
        elif zone is not None:
            detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            errors.append(invalid(path, schedule, detail))
    return errors


def _validate_time_zone(zone: str, path: Path) -> list[FieldError]:
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _is_zone_part(part):
            return [invalid(path, zone, f"unknown time zone {zone}")]
    errors: list[FieldError] = []
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid(path, zone, detail))
    try:
        load_location(zone)
    except CronError as error:
        errors.append(invalid(path, zone, str(error)))
    return errors


def _validate_template(template: JobTemplateSpec | None, before: CronJobSpec | None, path: Path) -> list[FieldError]:
    spec = (template.spec if template else None) or JobSpec()
    old = before.job_template.spec if before and before.job_template else None
    errors = validate_job_spec(spec, path, old)
    if spec.selector is not None:
        errors.append(invalid(path.child("selector"), spec.selector, "`selector` will be auto-generated"))
    if spec.manual_selector:
        errors.append(not_supported(path.child("manualSelector"), True, ("nil", "false")))
    return errors
