"""What a Deployment reports, and the annotations it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.api.apps.v1 import (
    Deployment,
    DeploymentCondition,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetCondition,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from pybernetes.api.core.v1.container import Container
from pybernetes.api.core.v1.pod import PodSpec, PodTemplateSpec
from pybernetes.api.meta.v1.labelselector import LabelSelector
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.api.times import rfc3339
from pybernetes.controllers.common.conditions import find_condition
from pybernetes.controllers.common.meta import annotations_of
from pybernetes.controllers.deployment import annotations
from pybernetes.controllers.deployment.progress import (
    next_progress_check,
    paused_condition,
    rollout_status,
)
from pybernetes.controllers.deployment.replicasets import (
    equal_ignoring_hash,
    find_new,
    find_old,
    new_replicaset,
    replicaset_name,
)

NOW = 1_700_000_000.0


def template(image: str = "a") -> PodTemplateSpec:
    return PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": "web"}), spec=PodSpec(containers=[Container(name="c", image=image)])
    )


def deployment(status: DeploymentStatus | None = None, deadline: int | None = 600, **spec: Any) -> Deployment:
    rolling = RollingUpdateDeployment(max_surge=1, max_unavailable=1)
    return Deployment(
        metadata=ObjectMeta(name="web", namespace="default", uid="d", generation=2),
        spec=DeploymentSpec(
            replicas=3,
            selector=LabelSelector(match_labels={"app": "web"}),
            template=template(),
            strategy=DeploymentStrategy(type="RollingUpdate", rolling_update=rolling),
            progress_deadline_seconds=deadline,
            **spec,
        ),
        status=status or DeploymentStatus(),
    )


def replicaset(name: str, replicas: int, available: int, image: str = "a", **status: Any) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name=name, uid=name, creation_timestamp=rfc3339(NOW)),
        spec=ReplicaSetSpec(replicas=replicas, template=template(image)),
        status=ReplicaSetStatus(
            replicas=replicas,
            ready_replicas=available,
            available_replicas=available,
            observed_generation=1,
            terminating_replicas=0,
            **status,
        ),
    )


def progressing(reason: str, age: float, status: str = "True") -> DeploymentCondition:
    time = rfc3339(NOW - age)
    return DeploymentCondition(
        type="Progressing", status=status, reason=reason, last_update_time=time, last_transition_time=time
    )


def test_counters_are_sums_over_the_replicasets() -> None:
    old, new = replicaset("old", 2, 2, "b"), replicaset("new", 2, 1)
    status = rollout_status(deployment(), [old, new], new, NOW)
    assert (status.replicas, status.updated_replicas, status.ready_replicas) == (4, 2, 3)
    assert (status.available_replicas, status.unavailable_replicas, status.terminating_replicas) == (3, 1, 0)
    assert status.observed_generation == 2


@pytest.mark.parametrize(
    ("available", "status", "reason"),
    [(2, "True", "MinimumReplicasAvailable"), (1, "False", "MinimumReplicasUnavailable")],
)
def test_available_means_no_more_missing_than_allowed(available: int, status: str, reason: str) -> None:
    new = replicaset("new", 3, available)
    found = find_condition(rollout_status(deployment(), [new], new, NOW).conditions, "Available")
    assert found is not None
    assert (found.status, found.reason) == (status, reason)


@pytest.mark.parametrize(
    ("before", "new", "expected"),
    [
        pytest.param(progressing("NewReplicaSetCreated", 5), (3, 3), ("True", "NewReplicaSetAvailable"), id="complete"),
        pytest.param(progressing("NewReplicaSetCreated", 5), (2, 1), ("True", "ReplicaSetUpdated"), id="progress"),
        pytest.param(
            progressing("NewReplicaSetCreated", 700), (0, 0), ("False", "ProgressDeadlineExceeded"), id="timed out"
        ),
        pytest.param(
            progressing("NewReplicaSetCreated", 500), (0, 0), ("True", "NewReplicaSetCreated"), id="not yet timed out"
        ),
        pytest.param(
            progressing("NewReplicaSetAvailable", 9000), (0, 0), ("True", "NewReplicaSetAvailable"), id="done long ago"
        ),
        pytest.param(
            progressing("ProgressDeadlineExceeded", 10, "False"),
            (3, 3),
            ("True", "NewReplicaSetAvailable"),
            id="late is better than never",
        ),
    ],
)
def test_the_progressing_condition(
    before: DeploymentCondition, new: tuple[int, int], expected: tuple[str, str]
) -> None:
    subject = deployment(DeploymentStatus(conditions=[before]))
    replicas = replicaset("new", *new)
    found = find_condition(rollout_status(subject, [replicas], replicas, NOW).conditions, "Progressing")
    assert found is not None
    assert (found.status, found.reason) == expected
    if before.status == "True" and expected[0] == "True":
        assert found.last_transition_time == before.last_transition_time


def test_every_progress_notes_its_time() -> None:
    subject = deployment(DeploymentStatus(conditions=[progressing("ReplicaSetUpdated", 500)]))
    new = replicaset("new", 2, 1)
    found = find_condition(rollout_status(subject, [new], new, NOW).conditions, "Progressing")
    assert found is not None
    assert found.last_update_time == rfc3339(NOW)
    assert found.message == 'ReplicaSet "new" is progressing.'


@pytest.mark.parametrize("deadline", [None, 2**31 - 1])
def test_without_a_deadline_progress_is_not_reported(deadline: int | None) -> None:
    subject = deployment(DeploymentStatus(conditions=[progressing("ReplicaSetUpdated", 5)]), deadline)
    new = replicaset("new", 1, 1)
    status = rollout_status(subject, [new], new, NOW)
    assert find_condition(status.conditions, "Progressing") is None
    assert next_progress_check(subject, status, NOW) is None


def test_the_next_check_comes_a_second_after_the_deadline() -> None:
    subject = deployment(DeploymentStatus(conditions=[progressing("ReplicaSetUpdated", 180)]))
    assert next_progress_check(subject, DeploymentStatus(), NOW) == 421
    late = deployment(DeploymentStatus(conditions=[progressing("ProgressDeadlineExceeded", 5, "False")]))
    assert next_progress_check(late, DeploymentStatus(), NOW) is None


def test_failures_of_the_new_replicaset_come_first() -> None:
    def failure(text: str) -> list[ReplicaSetCondition]:
        return [ReplicaSetCondition(type="ReplicaFailure", status="True", reason="FailedCreate", message=text)]

    old = replicaset("old", 1, 1, "b", conditions=failure("old"))
    new = replicaset("new", 1, 1, conditions=failure("new"))
    found = find_condition(rollout_status(deployment(), [old, new], new, NOW).conditions, "ReplicaFailure")
    assert found is not None
    assert found.message == "new"
    healthy = replicaset("new", 1, 1)
    again = deployment(DeploymentStatus(conditions=[found]))
    assert find_condition(rollout_status(again, [healthy], healthy, NOW).conditions, "ReplicaFailure") is None


def test_pausing_and_resuming_are_noted_but_do_not_hide_a_timeout() -> None:
    paused = paused_condition(deployment(paused=True), NOW)
    assert paused is not None
    assert (paused.status, paused.reason) == ("Unknown", "DeploymentPaused")
    assert paused_condition(deployment(DeploymentStatus(conditions=[paused]), paused=True), NOW) is None
    resumed = paused_condition(deployment(DeploymentStatus(conditions=[paused])), NOW)
    assert resumed is not None
    assert resumed.reason == "DeploymentResumed"
    late = DeploymentStatus(conditions=[progressing("ProgressDeadlineExceeded", 5, "False")])
    assert paused_condition(deployment(late, paused=True), NOW) is None


def test_the_new_replicaset_is_the_oldest_with_the_same_template_but_for_the_hash() -> None:
    subject = deployment()
    made = new_replicaset(subject)
    assert made.metadata is not None
    assert made.spec is not None
    assert made.spec.template is not None
    assert made.spec.selector is not None
    hashed = (made.metadata.labels or {})["pod-template-hash"]
    assert made.metadata.name == f"web-{hashed}"
    assert made.spec.selector.match_labels == {"app": "web", "pod-template-hash": hashed}
    assert (made.spec.template.metadata or ObjectMeta()).labels == {"app": "web", "pod-template-hash": hashed}
    assert made.spec.replicas == 0
    assert equal_ignoring_hash(made.spec.template, template())
    assert not equal_ignoring_hash(made.spec.template, template("b"))
    assert subject == deployment()
    made.metadata.uid = "made"
    other = replicaset("other", 1, 1, "b")
    assert find_new(subject, [other, made]) is made
    assert find_old(subject, [other, made]) == [other]
    assert find_new(subject, [other]) is None


def test_a_collision_makes_another_name() -> None:
    one, other = new_replicaset(deployment()), new_replicaset(deployment(DeploymentStatus(collision_count=1)))
    assert one.metadata is not None
    assert other.metadata is not None
    assert one.metadata.name != other.metadata.name


def test_long_names_are_cut_before_the_hash() -> None:
    assert replicaset_name("a" * 253, "hash") == "a" * 248 + "-hash"


def test_annotations_are_copied_and_the_revision_grows() -> None:
    subject = deployment()
    assert subject.metadata is not None
    subject.metadata.annotations = {"cause": "why", annotations.REVISION: "9", annotations.LAST_APPLIED: "{}"}
    replicas = replicaset("new", 1, 1)
    assert annotations.set_new_replicaset_annotations(subject, replicas, 3)
    assert annotations_of(replicas) == {"cause": "why", annotations.REVISION: "3"}
    assert not annotations.set_new_replicaset_annotations(subject, replicas, 3)
    assert not annotations.set_new_replicaset_annotations(subject, replicas, 2)
    assert annotations.set_new_replicaset_annotations(subject, replicas, 5)
    assert annotations.set_new_replicaset_annotations(subject, replicas, 7)
    assert annotations_of(replicas)[annotations.REVISION_HISTORY] == "3,5"


def test_the_history_forgets_its_beginning() -> None:
    replicas = replicaset("new", 1, 1)
    assert replicas.metadata is not None
    replicas.metadata.annotations = {
        annotations.REVISION: "1234",
        annotations.REVISION_HISTORY: ",".join(["1000"] * 400),
    }
    annotations.set_new_replicaset_annotations(deployment(), replicas, 2000)
    history = annotations_of(replicas)[annotations.REVISION_HISTORY]
    assert len(history) <= annotations.MAX_HISTORY_LENGTH
    assert history.endswith(",1234")


def test_a_rollback_brings_the_annotations_of_the_time_back() -> None:
    subject, replicas = deployment(), replicaset("old", 0, 0)
    assert subject.metadata is not None
    assert replicas.metadata is not None
    subject.metadata.annotations = {"cause": "new", "more": "x", annotations.REVISION: "2"}
    replicas.metadata.annotations = {"cause": "old", annotations.REVISION: "1"}
    annotations.set_deployment_annotations(subject, replicas)
    assert annotations_of(subject) == {"cause": "old", annotations.REVISION: "2"}
    assert annotations.last_revision([replicas, replicaset("none", 0, 0)]) == 0
