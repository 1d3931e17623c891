"""The arithmetic of a PodDisruptionBudget.

The API server's eviction subtracts from `disruptionsAllowed` and notes the pod in `disruptedPods`; here the number is
computed anew from what there is. A pod noted there counts as gone for two minutes, because the eviction may have been
allowed and the deletion not yet seen; after that it was not deleted after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from pybernetes.api import intstr
from pybernetes.api.core.podconditions import find_pod_condition
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.meta.v1.objectmeta import Condition
from pybernetes.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from pybernetes.api.times import rfc3339

from ..common.conditions import find_condition
from ..common.meta import generation_of, is_deleting, name_of, seconds
from ..common.pods import is_ready, is_terminal

DELETION_TIMEOUT: Final = 120.0
STALE_DISRUPTION_TIMEOUT: Final = 120.0
DISRUPTION_ALLOWED: Final = "DisruptionAllowed"


def needs_scale(budget: PodDisruptionBudget) -> bool:
    """Whether the budget is a share of how many pods there should be, which only their owners know."""
    spec = budget.spec or PodDisruptionBudgetSpec()
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def expectations(budget: PodDisruptionBudget, pods: int, scale: int) -> tuple[int, int]:
    """How many pods there should be and how many of them must be healthy. Raises ValueError.

    `pods` is how many are selected, `scale` how many their owners ask for.
    """
    spec = budget.spec or PodDisruptionBudgetSpec()
    if spec.max_unavailable is not None:
        return scale, max(0, scale - intstr.scaled_value(spec.max_unavailable, scale, True))
    if isinstance(spec.min_available, str):
        return scale, intstr.scaled_value(spec.min_available, scale, True)
    if spec.min_available is not None:
        return pods, spec.min_available
    return 0, 0


class Disrupted(NamedTuple):
    """The evicted pods that have not been seen to go."""

    pods: dict[str, str]
    """By name, with the time of the eviction."""
    overdue: list[Pod]
    """Those that are still there after the time in which they should have gone."""
    again: float | None
    """Seconds until the next of them is overdue."""


def disrupted(budget: PodDisruptionBudget, pods: Sequence[Pod], now: float) -> Disrupted:
    """Sort out which evictions are still under way."""
    known = (budget.status.disrupted_pods if budget.status else None) or {}
    result: dict[str, str] = {}
    overdue: list[Pod] = []
    again: float | None = None
    for pod in pods:
        since = known.get(name_of(pod))
        if since is None or is_deleting(pod):
            continue
        remaining = seconds(since) + DELETION_TIMEOUT - now
        if remaining < 0:
            overdue.append(pod)
            continue
        result[name_of(pod)] = since
        again = remaining if again is None else min(again, remaining)
    return Disrupted(result, overdue, again)


def count_healthy(pods: Sequence[Pod], disrupted_pods: dict[str, str]) -> int:
    """How many pods serve and are not about to go."""
    return sum(is_ready(pod) and not is_deleting(pod) and name_of(pod) not in disrupted_pods for pod in pods)


def new_status(
    budget: PodDisruptionBudget,
    *,
    healthy: int,
    desired: int,
    expected: int,
    disrupted_pods: dict[str, str],
    now: float,
) -> PodDisruptionBudgetStatus | None:
    """The status that these numbers make; None if it is there already.

    Without any expected pod nothing is allowed: the first pods of a budget must be safe before they are counted.
    """
    status = budget.status or PodDisruptionBudgetStatus()
    allowed = max(0, healthy - desired) if expected > 0 else 0
    generation = generation_of(budget)
    reason, verdict = ("SufficientPods", "True") if allowed else ("InsufficientPods", "False")
    condition = find_condition(status.conditions, DISRUPTION_ALLOWED)
    before = (status.current_healthy, status.desired_healthy, status.expected_pods, status.disruptions_allowed)
    if (
        tuple(number or 0 for number in before) == (healthy, desired, expected, allowed)
        and (status.disrupted_pods or {}) == disrupted_pods
        and (status.observed_generation or 0) == generation
        and condition is not None
        and (condition.status, condition.reason) == (verdict, reason)
    ):
        return None
    return PodDisruptionBudgetStatus(
        observed_generation=generation,
        disrupted_pods=disrupted_pods or None,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        conditions=_with_verdict(status.conditions, verdict, reason, "", generation, now),
    )


def failed_status(budget: PodDisruptionBudget, why: str, now: float) -> PodDisruptionBudgetStatus:
    """The status if the numbers cannot be computed: nothing is allowed, and the condition says why."""
    status = budget.status or PodDisruptionBudgetStatus()
    generation = status.observed_generation or 0
    conditions = _with_verdict(status.conditions, "False", "SyncFailed", why, generation, now)
    return msgspec.structs.replace(status, disruptions_allowed=0, conditions=conditions)


def _with_verdict(
    conditions: list[Condition] | None, status: str, reason: str, message: str, generation: int, now: float
) -> list[Condition]:
    """The conditions with the verdict in its place; the time is that of the last turn."""
    old = find_condition(conditions, DISRUPTION_ALLOWED)
    turned = old is None or old.status != status or not old.last_transition_time
    new = Condition(
        type=DISRUPTION_ALLOWED,
        status=status,
        observed_generation=generation,
        last_transition_time=rfc3339(now) if old is None or turned else old.last_transition_time,
        reason=reason,
        message=message,
    )
    if old is None:
        return [*(conditions or ()), new]
    return [new if each is old else each for each in conditions or ()]


def seconds_to_stale_disruption(pod: Pod, now: float) -> float | None:
    """Seconds until the pod's DisruptionTarget is stale because the pod was not deleted; None if it never will be.

    What the kubelet says is never stale: it may take its time to end a pod.
    """
    if is_deleting(pod) or is_terminal(pod):
        return None
    condition = find_pod_condition(pod.status, "DisruptionTarget")
    if condition is None or condition.status != "True" or condition.reason == "TerminationByKubelet":
        return None
    return max(0.0, seconds(condition.last_transition_time) + STALE_DISRUPTION_TIMEOUT - now)
