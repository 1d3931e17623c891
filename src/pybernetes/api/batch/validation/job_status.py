"""The status of a Job: what is counted only grows, and what is finished stays finished.

Other controllers than ours may run a Job (`spec.managedBy`), so the server checks what they report. A rule is applied
when something it is about changes; a status that was odd before may stay so.
"""

from __future__ import annotations

from ...apps.shared import in_order
from ...equality import semantically_equal
from ...field import OMIT, FieldError, Path, duplicate, invalid, required
from ...meta.validation import validate_not_negative, validate_object_meta_update
from ...times import parse_time
from ..v1 import Job, JobSpec, JobStatus, UncountedTerminatedPods
from .indexes import IndexesError, count_indexes, overlap

STATUS = Path("status")
_CONDITIONS = STATUS.child("conditions")


def validate_job_status_update(new: Job, old: Job) -> list[FieldError]:
    """A new status."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    spec = new.spec or JobSpec()
    status, before = new.status or JobStatus(), old.status or JobStatus()
    errors += _validate_counters(status)
    errors += _validate_outcome(status, before)
    errors += _validate_finished(spec, status, before)
    errors += _validate_indexes(spec, status, before)
    errors += _validate_pods(status, before)
    errors += _validate_criteria(spec, status)
    return errors + _validate_transition(spec, status, before)


def is_true(status: JobStatus, condition: str) -> bool:
    """Whether the Job has this condition."""
    return any(each.type == condition and each.status == "True" for each in status.conditions or ())


def _is_false(status: JobStatus, condition: str) -> bool:
    return any(each.type == condition and each.status == "False" for each in status.conditions or ())


def _finished(status: JobStatus) -> bool:
    return is_true(status, "Complete") or is_true(status, "Failed")


def _changed(status: JobStatus, before: JobStatus, name: str) -> bool:
    return not semantically_equal(getattr(status, name), getattr(before, name))


def _turned(status: JobStatus, before: JobStatus, *conditions: str) -> bool:
    return any(is_true(status, each) != is_true(before, each) for each in conditions)


def _validate_counters(status: JobStatus) -> list[FieldError]:
    errors = validate_not_negative(status.active, STATUS.child("active"))
    errors += validate_not_negative(status.succeeded, STATUS.child("succeeded"))
    errors += validate_not_negative(status.failed, STATUS.child("failed"))
    errors += validate_not_negative(status.ready, STATUS.child("ready"))
    errors += validate_not_negative(status.terminating, STATUS.child("terminating"))
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    seen: set[str] = set()
    for name, uids in (("succeeded", uncounted.succeeded), ("failed", uncounted.failed)):
        for index, uid in enumerate(uids or ()):
            path = STATUS.child("uncountedTerminatedPods", name).index(index)
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)
    return errors


def _validate_outcome(status: JobStatus, before: JobStatus) -> list[FieldError]:
    """Conditions and times that belong together."""
    errors: list[FieldError] = []
    complete, failed = is_true(status, "Complete"), is_true(status, "Failed")
    if complete and failed and _turned(status, before, "Complete", "Failed"):
        errors.append(invalid(_CONDITIONS, OMIT, "cannot set Complete=True and Failed=true conditions"))
    if complete and is_true(status, "FailureTarget") and _turned(status, before, "Complete", "FailureTarget"):
        errors.append(invalid(_CONDITIONS, OMIT, "cannot set Complete=True and FailureTarget=true conditions"))
    path, completed = STATUS.child("completionTime"), status.completion_time
    if _turned(status, before, "Complete") or _changed(status, before, "completion_time"):
        if completed is not None and not complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            errors.append(invalid(path, completed, detail))
        if completed is None and complete:
            errors.append(required(path, "completionTime is required for Complete jobs"))
    started = status.start_time
    moved = _changed(status, before, "start_time") or _changed(status, before, "completion_time")
    if moved and started is not None and completed is not None and parse_time(completed) < parse_time(started):
        errors.append(invalid(path, completed, "must be equal to or after `startTime`"))
    turned = _turned(status, before, "Failed") or _changed(status, before, "failed_indexes")
    if turned and failed and not is_true(status, "FailureTarget"):
        detail = "cannot set Failed=True condition without the FailureTarget=true condition"
        errors.append(invalid(_CONDITIONS, OMIT, detail))
    turned = _turned(status, before, "Complete", "SuccessCriteriaMet")
    if turned and complete and not is_true(status, "SuccessCriteriaMet"):
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors.append(invalid(_CONDITIONS, OMIT, detail))
    return errors


def _validate_finished(spec: JobSpec, status: JobStatus, before: JobStatus) -> list[FieldError]:
    """A finished Job has started, and nothing of it is left."""
    if not _finished(status):
        return []
    errors: list[FieldError] = []
    turned = not _finished(before)
    if status.active and status.active > 0 and (turned or (status.active or 0) != (before.active or 0)):
        errors.append(invalid(STATUS.child("active"), status.active, "active>0 is invalid for finished job"))
    never_ran = bool(spec.suspend) and spec.completions == 0
    if status.start_time is None and not never_ran and (turned or _changed(status, before, "start_time")):
        errors.append(required(STATUS.child("startTime"), "startTime is required for finished job"))
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    moved = turned or _changed(status, before, "uncounted_terminated_pods")
    if moved and (uncounted.failed or uncounted.succeeded):
        printed = in_order(Succeeded=uncounted.succeeded, Failed=uncounted.failed)
        errors.append(invalid(STATUS.child("uncountedTerminatedPods"), printed, "must be empty for finished job"))
    return errors


def _validate_pods(status: JobStatus, before: JobStatus) -> list[FieldError]:
    """Pods that still run, or still end."""
    errors: list[FieldError] = []
    moved = _changed(status, before, "terminating") or _finished(status) != _finished(before)
    if moved and status.terminating and status.terminating > 0 and _finished(status):
        detail = "terminating>0 is invalid for finished job"
        errors.append(invalid(STATUS.child("terminating"), status.terminating, detail))
    active = status.active or 0
    if status.ready is not None and status.ready > active and _changed_pods(status, before):
        errors.append(invalid(STATUS.child("ready"), status.ready, "cannot set more ready pods than active"))
    return errors


def _changed_pods(status: JobStatus, before: JobStatus) -> bool:
    return status.ready != before.ready or (status.active or 0) != (before.active or 0)


def _validate_indexes(spec: JobSpec, status: JobStatus, before: JobStatus) -> list[FieldError]:
    """Which indexes are done, in the same form as a success policy names them."""
    errors: list[FieldError] = []
    completed, failed = status.completed_indexes or "", status.failed_indexes
    completed_changed = completed != (before.completed_indexes or "")
    failed_changed = failed != before.failed_indexes
    if completed_changed and spec.completions is not None:
        try:
            count_indexes(completed, spec.completions)
        except IndexesError as error:
            detail = f"error parsing completedIndexes: {error}"
            errors.append(invalid(STATUS.child("completedIndexes"), completed, detail))
    per_index = spec.backoff_limit_per_index is not None
    if failed_changed and spec.completions is not None and per_index and failed is not None:
        try:
            count_indexes(failed, spec.completions)
        except IndexesError as error:
            errors.append(invalid(STATUS.child("failedIndexes"), failed, f"error parsing failedIndexes: {error}"))
    if completed_changed and completed and spec.completion_mode != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid(STATUS.child("completedIndexes"), completed, detail))
    if failed_changed and failed is not None and not per_index:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid(STATUS.child("failedIndexes"), failed, detail))
    if (failed_changed or completed_changed) and spec.completions is not None and failed is not None:
        both = overlap(completed, failed, spec.completions)
        if both is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {both}"
            errors.append(invalid(STATUS.child("failedIndexes"), failed, detail))
    return errors


def _validate_criteria(spec: JobSpec, status: JobStatus) -> list[FieldError]:
    met = is_true(status, "SuccessCriteriaMet")
    details = []
    if met and is_true(status, "Failed"):
        details.append("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and is_true(status, "FailureTarget"):
        details.append("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if spec.success_policy is not None and not met and is_true(status, "Complete"):
        details.append("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
    return [invalid(_CONDITIONS, OMIT, detail) for detail in details]


def _validate_transition(spec: JobSpec, status: JobStatus, before: JobStatus) -> list[FieldError]:
    """There is no way back."""
    errors: list[FieldError] = []
    for condition in ("Failed", "Complete", "FailureTarget"):
        if is_true(before, condition) and not is_true(status, condition):
            errors.append(invalid(_CONDITIONS, OMIT, f"cannot disable the terminal {condition}=True condition"))
    if (status.failed or 0) < (before.failed or 0):
        errors.append(invalid(STATUS.child("failed"), status.failed or 0, "cannot decrease the failed counter"))
    scalable = spec.completion_mode == "Indexed" and spec.completions == spec.parallelism
    if not scalable and (status.succeeded or 0) < (before.succeeded or 0):
        detail = "cannot decrease the succeeded counter"
        errors.append(invalid(STATUS.child("succeeded"), status.succeeded or 0, detail))
    completed = status.completion_time
    if completed is not None and before.completion_time is not None and completed != before.completion_time:
        errors.append(invalid(STATUS.child("completionTime"), completed, "field is immutable"))
    resuming = is_true(before, "Suspended") and _is_false(status, "Suspended")
    if before.start_time is not None and status.start_time != before.start_time and not spec.suspend and not resuming:
        detail = "field is immutable for unsuspended job once set"
        errors.append(invalid(STATUS.child("startTime"), status.start_time, detail))
    met = "SuccessCriteriaMet"
    if is_true(before, met) and not is_true(status, met):
        errors.append(invalid(_CONDITIONS, OMIT, "cannot disable the SuccessCriteriaMet=True condition"))
    if is_true(before, "Complete") and not is_true(before, met) and is_true(status, met):
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(invalid(_CONDITIONS, OMIT, detail))
    return errors
