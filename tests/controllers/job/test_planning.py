from __future__ import annotations

from typing import Any

import pytest
from controllers.job.makers import NOW, job, pod

from pybernetes.api.batch.v1 import Job
from pybernetes.api.core.v1.pod import Pod
from pybernetes.controllers.job.backoff import BackoffRecord
from pybernetes.controllers.job.planning import Plan, generate_name_for, plan, pod_for
from pybernetes.controllers.job.survey import Survey, survey

COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
INDEX = "batch.kubernetes.io/job-completion-index"


def look(job: Job, *pods: Pod) -> Survey:
    return survey(job, pods, released=set(), backoff=BackoffRecord())


def planned(job: Job, *pods: Pod) -> Plan:
    return plan(look(job, *pods), NOW)


@pytest.mark.parametrize(
    ("spec", "status", "active", "create", "delete"),
    [
        ({"parallelism": 3}, {}, 0, 3, 0),
        ({"parallelism": 3}, {}, 2, 1, 0),
        ({"parallelism": 3}, {"succeeded": 1}, 1, 0, 0),  # one success ends a Job without completions
        ({"parallelism": 3, "completions": 5}, {}, 0, 3, 0),
        ({"parallelism": 3, "completions": 5}, {"succeeded": 4}, 0, 1, 0),
        ({"parallelism": 3, "completions": 5}, {"succeeded": 4}, 2, 0, 1),
        ({"parallelism": 0, "completions": 5}, {}, 2, 0, 2),
        ({"parallelism": 3, "suspend": True}, {}, 2, 0, 2),
        ({"parallelism": 900}, {}, 0, 500, 0),
        ({"parallelism": 0}, {}, 501, 0, 500),
    ],
)
def test_as_many_pods_run_as_may_and_as_are_still_needed(
    spec: dict[str, Any], status: dict[str, Any], active: int, create: int, delete: int
) -> None:
    result = planned(job(status, **spec), *(pod() for _ in range(active)))
    assert (len(result.create), len(result.delete)) == (create, delete)


def test_the_least_advanced_pods_go_first() -> None:
    ready, waiting, running = pod(ready=True), pod("Pending", node=None), pod()
    assert planned(job(parallelism=1), ready, waiting, running).delete == [waiting, running]


def test_failures_delay_the_next_pods() -> None:
    assert planned(job(), pod("Failed", exit_code=1, ended=NOW - 4)) == Plan(wait=6)
    assert planned(job(), pod("Failed", exit_code=1, ended=NOW - 10)) == Plan(create=[None])


def test_terminating_pods_are_replaced_at_once_or_when_they_have_ended() -> None:
    ending = pod(deleted=True, ended=NOW - 60, exit_code=1)
    assert planned(job(), ending).create == [None]
    assert planned(job(podReplacementPolicy="Failed"), ending) == Plan()


def indexed(**spec: Any) -> Job:
    return job({"completedIndexes": "1"}, completionMode="Indexed", completions=5, **{"parallelism": 3, **spec})


def test_the_lowest_free_indexes_come_first() -> None:
    assert planned(indexed(), pod(index=0)).create == [2, 3]
    assert planned(indexed(parallelism=5)).create == [0, 2, 3, 4]


def test_doubled_and_impossible_indexes_are_deleted() -> None:
    best, double, none, beyond = pod(index=0, ready=True), pod(index=0), pod(), pod(index=5)
    result = planned(indexed(), best, double, none, beyond)
    assert sorted(map(id, result.delete)) == sorted(map(id, (double, none, beyond)))


def test_each_index_has_its_own_back_off() -> None:
    spec = {"backoffLimitPerIndex": 3, "parallelism": 2, "completions": 2}
    both = job(completionMode="Indexed", **spec)
    late = pod("Failed", index=0, exit_code=1, ended=NOW - 2)
    assert planned(both, late).create == [1]
    assert planned(both, late, pod(index=1)) == Plan(wait=8)


def test_pod_of_an_index_knows_it_in_four_ways() -> None:
    template = {
        "metadata": {"labels": {"app": "x"}, "annotations": {"a": "b"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {"name": "main", "image": "i"},
                {"name": "own", "image": "i", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]},
            ],
            "initContainers": [{"name": "first", "image": "i"}],
        },
    }
    made = pod_for(look(indexed(template=template)), 2)
    assert made.metadata
    assert made.spec
    assert made.spec.containers
    assert made.spec.init_containers
    assert made.metadata.generate_name == "work-2-"
    assert made.metadata.labels == {"app": "x", INDEX: "2"}
    assert made.metadata.annotations == {"a": "b", INDEX: "2"}
    assert made.metadata.finalizers == ["batch.kubernetes.io/job-tracking"]
    assert made.spec.hostname == "work-2"
    variable = (made.spec.containers[0].env or [])[0]
    assert variable.name == "JOB_COMPLETION_INDEX"
    assert variable.value_from
    assert variable.value_from.field_ref
    assert variable.value_from.field_ref.field_path == f"metadata.labels['{INDEX}']"
    assert [each.value for each in made.spec.containers[1].env or []] == ["mine"]
    assert (made.spec.init_containers[0].env or [])[0].name == "JOB_COMPLETION_INDEX"


def test_next_pod_of_an_index_carries_on_the_count_of_failures() -> None:
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}}]
    spec = {"backoffLimitPerIndex": 5, "podFailurePolicy": {"rules": rules}}

    def counts(*pods: Pod) -> dict[str, str]:
        made = pod_for(look(indexed(**spec), *pods), 0).metadata
        return {key: text for key, text in ((made and made.annotations) or {}).items() if key != INDEX}

    assert counts() == {COUNT: "0"}
    assert counts(pod("Failed", index=0, exit_code=1, annotations={COUNT: "1"})) == {COUNT: "2"}
    assert counts(pod("Failed", index=0, exit_code=7, annotations={COUNT: "1"})) == {COUNT: "1", IGNORED: "1"}


def test_long_names_leave_room_for_the_index() -> None:
    assert generate_name_for("a" * 63, 12) == "a" * 54 + "-12-"
