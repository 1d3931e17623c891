"""Conditions of a pod: one of each type, with the time it last turned."""

from __future__ import annotations

from .v1.pod import PodCondition, PodStatus

POD_SCHEDULED = "PodScheduled"


def find_pod_condition(status: PodStatus | None, kind: str) -> PodCondition | None:
    """The condition of a type."""
    return next((each for each in (status.conditions if status else None) or () if each.type == kind), None)


def update_pod_condition(status: PodStatus, condition: PodCondition, now: str) -> None:
    """Put a condition in the place of the one of its type; its time stays if it says the same as before."""
    condition.last_transition_time = now
    conditions = status.conditions or []
    for index, old in enumerate(conditions):
        if old.type == condition.type:
            if old.status == condition.status:
                condition.last_transition_time = old.last_transition_time
            conditions[index] = condition
            break
    else:
        conditions.append(condition)
    status.conditions = conditions
