from __future__ import annotations

from typing import Any

import msgspec
import pytest
from controllers.job.makers import pod

from pybernetes.api.batch.v1 import PodFailurePolicy, SuccessPolicy
from pybernetes.controllers.job.indexes import Indexes
from pybernetes.controllers.job.policies import judge_failure, judge_success


def failure_policy(*rules: dict[str, Any]) -> PodFailurePolicy:
    return msgspec.convert({"rules": list(rules)}, PodFailurePolicy)


def on_exit_codes(action: str, operator: str, *values: int, container: str | None = None) -> dict[str, Any]:
    requirement = {"operator": operator, "values": list(values), "containerName": container}
    return {"action": action, "onExitCodes": requirement}


def on_condition(action: str, kind: str, status: str = "True") -> dict[str, Any]:
    return {"action": action, "onPodConditions": [{"type": kind, "status": status}]}


@pytest.mark.parametrize(
    ("rules", "code", "action", "counts"),
    [
        ([], 1, None, True),
        ([on_exit_codes("Ignore", "In", 1, 2)], 2, "Ignore", False),
        ([on_exit_codes("Ignore", "In", 1, 2)], 3, None, True),
        ([on_exit_codes("FailIndex", "NotIn", 1)], 3, "FailIndex", True),
        ([on_exit_codes("FailIndex", "NotIn", 1)], 0, None, True),
        ([on_exit_codes("Count", "In", 3), on_exit_codes("Ignore", "In", 3)], 3, "Count", True),
        ([on_exit_codes("Ignore", "In", 3, container="other")], 3, None, True),
        ([on_exit_codes("Ignore", "In", 3, container="main")], 3, "Ignore", False),
        ([on_condition("Ignore", "DisruptionTarget")], 3, "Ignore", False),
        ([on_condition("Ignore", "DisruptionTarget", "False")], 3, None, True),
    ],
)
def test_first_matching_rule_decides_about_a_failed_pod(
    rules: list[dict[str, Any]], code: int, action: str | None, counts: bool
) -> None:
    failed = pod("Failed", exit_code=code, conditions=[{"type": "DisruptionTarget", "status": "True"}])
    failure = judge_failure(failure_policy(*rules), failed)
    assert (failure.action, failure.counts) == (action, counts)


def test_reason_of_a_failed_job_names_pod_container_code_and_rule() -> None:
    failed = pod("Failed", exit_code=42, conditions=[{"type": "ConfigIssue", "status": "True"}])
    assert failed.metadata
    codes = judge_failure(
        failure_policy(on_condition("Ignore", "Other"), on_exit_codes("FailJob", "In", 42)), failed
    ).fails_job
    assert codes == (
        f"Container main for pod ns/{failed.metadata.name} failed with exit code 42 matching FailJob rule at index 1"
    )
    condition = judge_failure(failure_policy(on_condition("FailJob", "ConfigIssue")), failed).fails_job
    assert condition == f"Pod ns/{failed.metadata.name} has condition ConfigIssue matching FailJob rule at index 0"


@pytest.mark.parametrize(
    ("rules", "succeeded", "expected"),
    [
        ([{"succeededCount": 2}], [1], None),
        ([{"succeededCount": 2}], [1, 4], "Matched rules at index 0"),
        ([{"succeededIndexes": "0-2"}], [0, 1], None),
        ([{"succeededIndexes": "0-2"}], [0, 1, 2, 9], "Matched rules at index 0"),
        ([{"succeededIndexes": "0-2", "succeededCount": 1}], [2], "Matched rules at index 0"),
        ([{"succeededIndexes": "0-2", "succeededCount": 1}], [3], None),
        ([{"succeededIndexes": "5"}, {"succeededCount": 1}], [3], "Matched rules at index 1"),
        ([{"succeededCount": 0}], [], None),
    ],
)
def test_success_policy_is_met_by_indexes_or_by_their_number(
    rules: list[dict[str, Any]], succeeded: list[int], expected: str | None
) -> None:
    policy = msgspec.convert({"rules": rules}, SuccessPolicy)
    assert judge_success(policy, 10, Indexes.of(succeeded)) == expected
