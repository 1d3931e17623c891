from __future__ import annotations

from typing import Any

import pytest
from controllers.job.makers import NOW, job, pod

from pybernetes.api.batch.v1 import Job, JobCondition, JobStatus
from pybernetes.api.core.v1.pod import Pod
from pybernetes.client.keys import uid_of
from pybernetes.controllers.job import accounting
from pybernetes.controllers.job.accounting import announce, conclude, enter, settle
from pybernetes.controllers.job.backoff import BackoffRecord
from pybernetes.controllers.job.conditions import new_condition
from pybernetes.controllers.job.survey import survey


def entered(job: Job, *pods: Pod, verdict: JobCondition | None = None) -> accounting.Entry:
    found = survey(job, pods, released=set(), backoff=BackoffRecord())
    return enter(found, job.status or JobStatus(), verdict)


def condition(kind: str) -> JobCondition:
    return new_condition(kind, "True", "Why", "because", NOW)


def lists(status: JobStatus) -> tuple[list[str], list[str]]:
    uncounted = status.uncounted_terminated_pods
    assert uncounted is not None
    return list(uncounted.succeeded or ()), list(uncounted.failed or ())


def test_ended_pods_are_listed_before_their_finalizers_go() -> None:
    good, bad, running, deleted = pod("Succeeded"), pod("Failed"), pod(), pod(deleted=True)
    result = entered(job(), good, bad, running, deleted)
    assert lists(result.status) == ([uid_of(good)], [uid_of(bad), uid_of(deleted)])
    assert result.release == [good, bad, deleted]
    assert result.changed


def test_listed_pods_are_released_again_but_not_listed_again() -> None:
    good = pod("Succeeded", uid="one")
    result = entered(job({"uncountedTerminatedPods": {"succeeded": ["one"]}}), good)
    assert lists(result.status) == (["one"], [])
    assert result.release == [good]
    assert not result.changed


def test_a_pod_listed_as_failed_cannot_succeed_later() -> None:
    result = entered(job({"uncountedTerminatedPods": {"failed": ["one"]}}), pod("Succeeded", uid="one"))
    assert lists(result.status) == ([], ["one"])
    assert not result.changed


@pytest.mark.parametrize(("kind", "failed"), [("FailureTarget", 1), ("Failed", 1), ("SuccessCriteriaMet", 0)])
def test_with_a_verdict_all_pods_are_released_and_count_as_failed_unless_it_is_good(kind: str, failed: int) -> None:
    result = entered(job(), pod(), verdict=condition(kind))
    assert len(result.release) == 1
    assert len(lists(result.status)[1]) == failed


def test_ignored_failures_are_released_without_being_listed() -> None:
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}}]
    result = entered(job(podFailurePolicy={"rules": rules}), pod("Failed", exit_code=7), pod("Failed", exit_code=1))
    assert len(result.release) == 2
    assert len(lists(result.status)[1]) == 1
    assert result.actions == {"Ignore": 1}


def test_indexes_are_written_down_instead_of_uids() -> None:
    spec: dict[str, Any] = {"completionMode": "Indexed", "completions": 5, "backoffLimitPerIndex": 0}
    result = entered(
        job(**spec),
        pod("Succeeded", index=3),
        pod("Succeeded", index=0),
        pod("Failed", index=1),
        pod("Failed", index=9),
    )
    assert result.status.completed_indexes == "0,3"
    assert result.status.failed_indexes == "1"
    assert result.status.succeeded == 2
    assert [len(each) for each in lists(result.status)] == [0, 1]
    assert len(result.release) == 4


def test_pod_whose_successor_needs_it_keeps_its_finalizer() -> None:
    spec: dict[str, Any] = {"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1}
    failed = pod("Failed", index=0)
    assert entered(job(**spec), failed).release == []
    assert entered(job(**spec), failed, pod(index=0)).release == [failed]
    assert entered(job(**spec), failed, verdict=condition("Failed")).release == [failed]


def test_lists_do_not_grow_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting, "MAX_UNCOUNTED_PODS", 3)
    result = entered(job(), *(pod("Succeeded") for _ in range(5)))
    assert result.full
    assert len(result.release) == 3


def test_pods_without_finalizer_move_from_the_lists_to_the_counters() -> None:
    before = job({"succeeded": 2, "uncountedTerminatedPods": {"succeeded": ["a", "b"], "failed": ["c"]}}).status
    assert before is not None
    status, changed = settle(before, {"b"})
    assert changed
    assert lists(status) == (["b"], [])
    assert (status.succeeded, status.failed) == (3, 1)
    assert lists(before) == (["a", "b"], ["c"])  # what came from a cache is not touched
    again, changed = settle(status, {"b"})
    assert not changed
    assert again.succeeded == 3


def test_end_is_announced_once() -> None:
    status, changed = announce(JobStatus(), condition("FailureTarget"))
    assert changed
    assert [each.type for each in status.conditions or ()] == ["FailureTarget"]
    assert announce(status, condition("FailureTarget"))[1] is False
    assert announce(JobStatus(), condition("Failed"))[1] is False


@pytest.mark.parametrize(
    ("kind", "final"), [("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed"), ("Failed", "Failed")]
)
def test_job_concludes_when_nothing_is_left_to_count_or_to_end(kind: str, final: str) -> None:
    verdict = condition(kind)
    assert conclude(JobStatus(), verdict, 1, NOW) is None
    pending = job({"uncountedTerminatedPods": {"failed": ["c"]}}).status
    assert pending is not None
    assert conclude(pending, verdict, 0, NOW) is None
    assert conclude(JobStatus(), None, 0, NOW) is None
    concluded = conclude(JobStatus(), verdict, 0, NOW)
    assert concluded is not None
    status, last = concluded
    assert (last.type, last.reason, last.message) == (final, "Why", "because")
    assert (status.completion_time is not None) is (final == "Complete")
