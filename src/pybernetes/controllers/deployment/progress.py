"""Computes a Deployment's status: counters, Available, and Progressing.

Progress is any of: more updated, ready or available pods, fewer old ones. Each notes the time; if none comes for
`progressDeadlineSeconds`, the rollout is reported as timed out, which stops nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybernetes.api.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from pybernetes.api.times import rfc3339

from ..common.conditions import find_condition, with_condition, without_condition
from ..common.meta import generation_of, name_of, seconds
from ..common.replicas import REPLICA_FAILURE
from .replicasets import actual, available, desired, ready, size, spec_of, terminating
from .scaling import max_unavailable

PROGRESSING = "Progressing"
AVAILABLE = "Available"

UPDATED = "ReplicaSetUpdated"
CREATE_ERROR = "ReplicaSetCreateError"
CREATED = "NewReplicaSetCreated"
FOUND = "FoundNewReplicaSet"
COMPLETE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"


def condition(kind: str, status: str, reason: str, message: str, now: float) -> DeploymentCondition:
    """A condition that has just come about."""
    time = rfc3339(now)
    return DeploymentCondition(
        type=kind, status=status, reason=reason, message=message, last_update_time=time, last_transition_time=time
    )


def status_of(deployment: Deployment) -> DeploymentStatus:
    """The status as last written."""
    return deployment.status or DeploymentStatus()


def has_progress_deadline(deployment: Deployment) -> bool:
    """Whether lack of progress is to be reported."""
    return spec_of(deployment).progress_deadline_seconds not in (None, 2**31 - 1)


def calculate_status(
    deployment: Deployment, everything: Sequence[ReplicaSet], new: ReplicaSet | None, now: float
) -> DeploymentStatus:
    """The counters and the Available condition."""
    old = status_of(deployment)
    usable = sum(map(available, everything))
    status = DeploymentStatus(
        observed_generation=generation_of(deployment),
        replicas=sum(map(actual, everything)),
        updated_replicas=actual(new) if new else 0,
        ready_replicas=sum(map(ready, everything)),
        available_replicas=usable,
        unavailable_replicas=max(0, sum(map(size, everything)) - usable),
        terminating_replicas=terminating(everything),
        collision_count=old.collision_count,
        conditions=list(old.conditions or ()) or None,
    )
    if usable >= desired(deployment) - max_unavailable(deployment):
        message = "Deployment has minimum availability."
        fresh = condition(AVAILABLE, "True", "MinimumReplicasAvailable", message, now)
    else:
        message = "Deployment does not have minimum availability."
        fresh = condition(AVAILABLE, "False", "MinimumReplicasUnavailable", message, now)
    status.conditions = with_condition(status.conditions, fresh)
    return status


def rollout_status(
    deployment: Deployment, everything: Sequence[ReplicaSet], new: ReplicaSet | None, now: float
) -> DeploymentStatus:
    """The status during a rollout: counters, availability, progress and failures of the ReplicaSets."""
    status = calculate_status(deployment, everything, new, now)
    current = find_condition(status_of(deployment).conditions, PROGRESSING)
    if not has_progress_deadline(deployment):
        status.conditions = without_condition(status.conditions, PROGRESSING)
    # A finished rollout stays finished, whatever its pods do; a change of the template makes an unfinished one of it.
    elif current is None or current.reason != COMPLETE or status.replicas != status.updated_replicas:
        subject = f'ReplicaSet "{name_of(new)}"' if new else f'Deployment "{name_of(deployment)}"'
        if is_complete(deployment, status):
            done = condition(PROGRESSING, "True", COMPLETE, f"{subject} has successfully progressed.", now)
            status.conditions = with_condition(status.conditions, done)
        elif has_progressed(deployment, status):
            on = condition(PROGRESSING, "True", UPDATED, f"{subject} is progressing.", now)
            if current is not None:
                if current.status == "True":
                    on.last_transition_time = current.last_transition_time
                # Out first: the time of the update counts even if nothing else is new.
                status.conditions = without_condition(status.conditions, PROGRESSING)
            status.conditions = with_condition(status.conditions, on)
        elif has_timed_out(deployment, status, now):
            late = condition(PROGRESSING, "False", TIMED_OUT, f"{subject} has timed out progressing.", now)
            status.conditions = with_condition(status.conditions, late)
    failure = _replica_failure(everything, new)
    if failure is None:
        status.conditions = without_condition(status.conditions, REPLICA_FAILURE)
    else:
        status.conditions = with_condition(status.conditions, failure)
    return status


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all replicas are new and available, and no old ones are left."""
    total = desired(deployment)
    counts = (status.updated_replicas or 0, status.replicas or 0, status.available_replicas or 0)
    return counts == (total, total, total) and (status.observed_generation or 0) >= generation_of(deployment)


def has_progressed(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether the new status is better than the last one."""
    before = status_of(deployment)
    return (
        (status.updated_replicas or 0) > (before.updated_replicas or 0)
        or _old_replicas(status) < _old_replicas(before)
        or (status.ready_replicas or 0) > (before.ready_replicas or 0)
        or (status.available_replicas or 0) > (before.available_replicas or 0)
    )


def _old_replicas(status: DeploymentStatus) -> int:
    return (status.replicas or 0) - (status.updated_replicas or 0)


def has_timed_out(deployment: Deployment, status: DeploymentStatus, now: float) -> bool:
    """Whether the last progress is too long ago."""
    current = find_condition(status.conditions, PROGRESSING)
    if not has_progress_deadline(deployment) or current is None:
        return False
    if current.reason in (COMPLETE, TIMED_OUT):
        return current.reason == TIMED_OUT
    return _deadline(deployment, current) < now


def next_progress_check(deployment: Deployment, status: DeploymentStatus, now: float) -> float | None:
    """In how many seconds to look whether the rollout has timed out; None if there is nothing to wait for."""
    current = find_condition(status_of(deployment).conditions, PROGRESSING)
    if not has_progress_deadline(deployment) or current is None:
        return None
    if is_complete(deployment, status) or current.reason == TIMED_OUT:
        return None
    # Times have whole seconds: one more, or the check would come just before the deadline.
    return max(0.0, _deadline(deployment, current) - now) + 1.0


def _deadline(deployment: Deployment, progressing: DeploymentCondition) -> float:
    return seconds(progressing.last_update_time) + (spec_of(deployment).progress_deadline_seconds or 0)


def paused_condition(deployment: Deployment, now: float) -> DeploymentCondition | None:
    """The condition to add after pausing or resuming, so that the pause does not count as lack of progress."""
    if not has_progress_deadline(deployment):
        return None
    current = find_condition(status_of(deployment).conditions, PROGRESSING)
    reason = current.reason if current else None
    paused = bool(spec_of(deployment).paused)
    if reason == TIMED_OUT or paused == (reason == PAUSED):
        return None
    if paused:
        return condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
    return condition(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)


def _replica_failure(everything: Sequence[ReplicaSet], new: ReplicaSet | None) -> DeploymentCondition | None:
    """The failure of a ReplicaSet, the new one's before all others."""
    for replicaset in ([new] if new else []) + list(everything):
        found = find_condition(replicaset.status.conditions if replicaset.status else None, REPLICA_FAILURE)
        if found is not None:
            return DeploymentCondition(
                type=found.type,
                status=found.status,
                last_transition_time=found.last_transition_time,
                last_update_time=found.last_transition_time,
                reason=found.reason,
                message=found.message,
            )
    return None
