"""The conditions of a Job and the reasons they give.

A Job's end is reported in two steps: SuccessCriteriaMet or FailureTarget as soon as it is certain, so that nothing more
is started, and Complete or Failed when the last pod has ended and is accounted for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pybernetes.api.batch.v1 import Job, JobCondition
from pybernetes.api.times import rfc3339

SUSPENDED: Final = "Suspended"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
FAILURE_TARGET: Final = "FailureTarget"
SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"


def new_condition(kind: str, status: str, reason: str, message: str, now: float) -> JobCondition:
    """A condition that turned now."""
    moment = rfc3339(now)
    return JobCondition(
        type=kind, status=status, last_probe_time=moment, last_transition_time=moment, reason=reason, message=message
    )


def find(job: Job, kind: str) -> JobCondition | None:
    """The Job's condition of a type, if it is true."""
    conditions = (job.status.conditions if job.status else None) or ()
    return next((each for each in conditions if each.type == kind and each.status == "True"), None)


def finished_condition(job: Job) -> JobCondition | None:
    """The condition that says how the Job ended, if it has."""
    conditions = (job.status.conditions if job.status else None) or ()
    return next((each for each in conditions if each.type in (COMPLETE, FAILED) and each.status == "True"), None)


def is_finished(job: Job) -> bool:
    """Whether the Job has ended, well or not."""
    return finished_condition(job) is not None


def is_suspended(job: Job) -> bool:
    """Whether the Job shall rest."""
    return bool(job.spec and job.spec.suspend)


def with_condition(conditions: Sequence[JobCondition] | None, new: JobCondition) -> list[JobCondition] | None:
    """The list with this condition in it, or None if that says nothing new.

    A condition that is false and was never there is nothing new.
    """
    result = list(conditions or ())
    for index, old in enumerate(result):
        if old.type == new.type:
            if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
                return None
            result[index] = new
            return result
    if new.status == "False":
        return None
    return [*result, new]
