from __future__ import annotations

from typing import Any

import pytest
from controllers.job.makers import NOW, job, pod

from pybernetes.api.batch.v1 import Job
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.times import rfc3339
from pybernetes.controllers.job.backoff import BackoffRecord
from pybernetes.controllers.job.survey import Survey, is_complete, survey, verdict

COUNT = "batch.kubernetes.io/job-index-failure-count"


def look(job: Job, *pods: Pod, released: set[str] | None = None) -> Survey:
    return survey(job, pods, released=released or set(), backoff=BackoffRecord())


def reason(job: Job, *pods: Pod) -> tuple[str | None, str | None] | None:
    condition = verdict(look(job, *pods), NOW)
    return (condition.type, condition.reason) if condition else None


def test_a_pod_counts_once_whatever_stage_of_its_accounting_it_is_in() -> None:
    status = {
        "succeeded": 3,
        "failed": 2,
        "uncountedTerminatedPods": {"succeeded": ["listed"], "failed": ["listed-too"]},
    }
    result = look(
        job(status),
        pod("Succeeded", uid="listed"),
        pod("Succeeded"),
        pod("Succeeded", uid="released"),
        pod("Succeeded", tracked=False),
        pod("Failed", uid="listed-too"),
        pod("Failed"),
        pod("Running"),
        released={"released"},
    )
    assert (result.succeeded, result.failed, len(result.active)) == (5, 4, 1)


def test_deleted_pods_have_failed_unless_only_ended_ones_are_replaced() -> None:
    leaving = pod(deleted=True)
    assert look(job(), leaving).failed == 1
    assert look(job(podReplacementPolicy="Failed"), leaving).failed == 0
    assert len(look(job(), leaving).terminating) == 1


def test_indexes_succeed_once_and_only_below_completions() -> None:
    result = look(
        job({"completedIndexes": "0,1", "succeeded": 2}, completionMode="Indexed", completions=4),
        pod("Succeeded", index=1),
        pod("Succeeded", index=2),
        pod("Succeeded", index=2),
        pod("Succeeded", index=7),
        pod("Succeeded", index=3, tracked=False),
    )
    assert str(result.succeeded_indexes) == "0-2"
    assert result.succeeded == 3


def test_failed_pod_of_an_index_is_held_until_its_successor_runs() -> None:
    spec: dict[str, Any] = {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 2}
    first, second = pod("Failed", index=0), pod("Failed", index=0, annotations={COUNT: "1"})
    held = look(job(**spec), first, second, pod("Failed", index=1), pod("Running", index=1)).held
    assert held == {0: second}
    third = pod("Failed", index=0, annotations={COUNT: "2"})
    result = look(job(**spec), first, second, third)
    assert result.held == {}
    assert str(result.failed_indexes) == "0"


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        ({}, [], None),
        ({"backoffLimit": 1}, [pod("Failed")], None),
        ({"backoffLimit": 0}, [pod("Failed")], ("FailureTarget", "BackoffLimitExceeded")),
        ({"activeDeadlineSeconds": 101}, [], None),
        ({"activeDeadlineSeconds": 100}, [], ("FailureTarget", "DeadlineExceeded")),
        ({"activeDeadlineSeconds": 100, "suspend": True}, [], None),
    ],
)
def test_job_fails_by_limits(spec: dict[str, Any], pods: list[Pod], expected: tuple[str, str] | None) -> None:
    assert reason(job({"startTime": rfc3339(NOW - 100)}, **spec), *pods) == expected


@pytest.mark.parametrize(("limit", "restarts", "fails"), [(0, 0, False), (0, 1, True), (2, 1, False), (2, 2, True)])
def test_restarts_of_containers_count_with_restart_policy_on_failure(limit: int, restarts: int, fails: bool) -> None:
    template = {"spec": {"restartPolicy": "OnFailure", "containers": []}}
    assert (reason(job(backoffLimit=limit, template=template), pod(restarts=restarts)) is not None) is fails


@pytest.mark.parametrize(
    ("spec", "failed", "succeeded", "expected"),
    [
        ({}, [0], [], None),
        ({}, [0], [1], None),
        ({}, [0], [1, 2], "FailedIndexes"),
        ({"maxFailedIndexes": 1}, [0], [], None),
        ({"maxFailedIndexes": 1}, [0, 2], [], "MaxFailedIndexesExceeded"),
        ({"successPolicy": {"rules": [{"succeededCount": 1}]}}, [0], [1], "SuccessPolicy"),
    ],
)
def test_failed_indexes_fail_the_job_at_the_end_or_when_there_are_too_many(
    spec: dict[str, Any], failed: list[int], succeeded: list[int], expected: str | None
) -> None:
    of_indexes = job(completionMode="Indexed", completions=3, backoffLimitPerIndex=0, backoffLimit=1 << 30, **spec)
    pods = [pod("Failed", index=index) for index in failed] + [pod("Succeeded", index=index) for index in succeeded]
    condition = verdict(look(of_indexes, *pods), NOW)
    assert (condition.reason if condition else None) == expected


def test_pod_failure_policy_comes_before_the_limits() -> None:
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    strict = job(backoffLimit=0, podFailurePolicy={"rules": rules})
    assert reason(strict, pod("Failed", exit_code=42)) == ("FailureTarget", "PodFailurePolicy")
    assert reason(strict, pod("Failed", exit_code=1)) == ("FailureTarget", "BackoffLimitExceeded")


def test_ignored_failures_do_not_count() -> None:
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    tolerant = job(backoffLimit=0, podFailurePolicy={"rules": rules})
    assert reason(tolerant, pod("Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}])) is None


def test_what_was_decided_before_stands() -> None:
    target = {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}
    assert reason(job({"conditions": [target]})) == ("Failed", "BackoffLimitExceeded")
    met = {"type": "SuccessCriteriaMet", "status": "True", "reason": "SuccessPolicy", "message": "m"}
    assert reason(job({"conditions": [met]}, backoffLimit=0), pod("Failed")) == ("SuccessCriteriaMet", "SuccessPolicy")


@pytest.mark.parametrize(
    ("completions", "succeeded", "active", "expected"),
    [(None, 0, 0, False), (None, 1, 1, False), (None, 1, 0, True), (3, 2, 0, False), (3, 3, 0, True), (3, 4, 0, True)],
)
def test_completions_reached(completions: int | None, succeeded: int, active: int, expected: bool) -> None:
    assert is_complete(look(job({"succeeded": succeeded}, completions=completions)), active) is expected
