"""The two policies of a Job: what a failed pod means, and which successes are enough.

Both are lists of rules of which the first that matches decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pybernetes.api.batch.v1 import (
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
    SuccessPolicy,
    SuccessPolicyRule,
)
from pybernetes.api.core.v1.container import ContainerStatus
from pybernetes.api.core.v1.pod import Pod, PodCondition, PodStatus
from pybernetes.client.keys import key_of

from .indexes import Indexes


class Failure(NamedTuple):
    """The effect of a failed pod on its Job."""

    action: str | None = None
    """The matching rule's; None if no rule matches, and then the failure counts."""

    fails_job: str | None = None
    """Why the Job fails, if it does."""

    @property
    def counts(self) -> bool:
        """Whether the failure uses up some of the back-off limit."""
        return self.action != "Ignore"


def judge_failure(policy: PodFailurePolicy | None, pod: Pod) -> Failure:
    """Match a failed pod against the rules."""
    for index, rule in enumerate((policy.rules if policy else None) or ()):
        if rule.on_exit_codes is not None:
            container = _matching_container(pod, rule.on_exit_codes)
            if container is None:
                continue
            code = container.state.terminated.exit_code if container.state and container.state.terminated else 0
            why = f"Container {container.name} for pod {_name(pod)} failed with exit code {code}"
        elif rule.on_pod_conditions is not None:
            condition = _matching_condition(pod, rule.on_pod_conditions)
            if condition is None:
                continue
            why = f"Pod {_name(pod)} has condition {condition.type}"
        else:
            continue
        fails_job = f"{why} matching {rule.action} rule at index {index}" if rule.action == "FailJob" else None
        return Failure(rule.action, fails_job)
    return Failure()


def judge_success(policy: SuccessPolicy | None, completions: int, succeeded: Indexes) -> str | None:
    """Why the succeeded indexes are enough for the Job, if they are."""
    if not succeeded:
        return None
    for index, rule in enumerate((policy.rules if policy else None) or ()):
        if _is_met(rule, completions, succeeded):
            return f"Matched rules at index {index}"
    return None


def _is_met(rule: SuccessPolicyRule, completions: int, succeeded: Indexes) -> bool:
    count = rule.succeeded_count
    if rule.succeeded_indexes is None:
        return count is not None and len(succeeded) >= count
    wanted = Indexes.parse(rule.succeeded_indexes, completions)
    if not wanted:
        return False
    reached = len(wanted & succeeded)
    return reached == len(wanted) or (count is not None and reached >= count)


def _name(pod: Pod) -> str:
    return str(key_of(pod))


def _matching_container(pod: Pod, wanted: PodFailurePolicyOnExitCodesRequirement) -> ContainerStatus | None:
    status = pod.status or PodStatus()
    for each in (status.container_statuses or []) + (status.init_container_statuses or []):
        terminated = each.state.terminated if each.state else None
        if terminated is None or wanted.container_name not in (None, each.name):
            continue
        code = terminated.exit_code or 0
        if code != 0 and (code in (wanted.values or ())) == (wanted.operator == "In"):
            return each
    return None


def _matching_condition(pod: Pod, patterns: Iterable[PodFailurePolicyOnPodConditionsPattern]) -> PodCondition | None:
    wanted = {(pattern.type, pattern.status) for pattern in patterns}
    return next(
        (each for each in (pod.status or PodStatus()).conditions or () if (each.type, each.status) in wanted), None
    )
