"""The arithmetic of ReplicaSets and ReplicationControllers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.apps.v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus
from pybernetes.api.core.v1.pod import Pod, PodCondition, PodSpec, PodStatus, PodTemplateSpec
from pybernetes.api.core.v1.replicationcontroller import ReplicationController, ReplicationControllerSpec
from pybernetes.api.meta.v1.labelselector import LabelSelector
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.api.times import rfc3339
from pybernetes.controllers.common.pods import is_available, next_availability_check, pod_from_template
from pybernetes.controllers.common.replicas import calculate_status, missing, selector_of
from pybernetes.controllers.common.template_hash import compute_hash, fnv32a

NOW = 1_700_000_000.0
LABELS = {"app": "web"}


def replicaset(replicas: int | None = 3, min_ready_seconds: int | None = None, **status: object) -> ReplicaSet:
    template = PodTemplateSpec(metadata=ObjectMeta(labels={**LABELS, "extra": "yes"}))
    return ReplicaSet(
        metadata=ObjectMeta(name="web", uid="u", generation=4),
        spec=ReplicaSetSpec(
            replicas=replicas,
            min_ready_seconds=min_ready_seconds,
            selector=LabelSelector(match_labels=LABELS),
            template=template,
        ),
        status=ReplicaSetStatus(**status),  # type: ignore[arg-type]
    )


def pod(labels: dict[str, str] = LABELS, ready: float | None = None) -> Pod:
    conditions = []
    if ready is not None:
        conditions.append(PodCondition(type="Ready", status="True", last_transition_time=rfc3339(NOW - ready)))
    return Pod(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(), status=PodStatus(phase="Running", conditions=conditions)
    )


@pytest.mark.parametrize(
    ("want", "have", "change"), [(3, 0, 3), (3, 5, -2), (3, 3, 0), (600, 0, 500), (0, 600, -500), (None, 0, 1)]
)
def test_what_is_missing_is_made_at_most_500_at_a_time(want: int | None, have: int, change: int) -> None:
    assert missing(replicaset(want), [pod()] * have) == change


def test_the_status_counts_labels_readiness_and_availability() -> None:
    full = {**LABELS, "extra": "yes"}
    pods = [pod(full, ready=60), pod(full, ready=5), pod(LABELS, ready=30), pod(full)]
    status = calculate_status(replicaset(4, min_ready_seconds=30), pods, [pod()], None, NOW)
    assert isinstance(status, ReplicaSetStatus)
    assert status == ReplicaSetStatus(
        replicas=4,
        fully_labeled_replicas=3,
        ready_replicas=3,
        available_replicas=2,
        terminating_replicas=1,
        observed_generation=4,
    )


@pytest.mark.parametrize(("have", "reason"), [(1, "FailedCreate"), (5, "FailedDelete")])
def test_a_failure_becomes_a_condition_and_goes_away_with_it(have: int, reason: str) -> None:
    failed = calculate_status(replicaset(3), [pod()] * have, [], RuntimeError("no room"), NOW)
    assert failed.conditions == [
        ReplicaSetCondition(
            type="ReplicaFailure",
            status="True",
            reason=reason,
            message="no room",
            last_transition_time=rfc3339(NOW),
        )
    ]
    later = replicaset(3, conditions=failed.conditions)
    again = calculate_status(later, [pod()] * have, [], RuntimeError("other words"), NOW + 9)
    assert again.conditions == failed.conditions
    assert calculate_status(later, [pod()] * 3, [], None, NOW).conditions is None


def test_a_replication_controller_counts_the_same_but_not_the_terminating() -> None:
    controller = ReplicationController(
        metadata=ObjectMeta(name="web"), spec=ReplicationControllerSpec(replicas=1, selector=LABELS)
    )
    status = calculate_status(controller, [pod(ready=1)], [pod()], None, NOW)
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (1, 1, 1)
    assert not hasattr(status, "terminating_replicas")
    assert selector_of(controller).matches(LABELS)
    assert not selector_of(ReplicationController(spec=ReplicationControllerSpec())).matches(LABELS)


@given(ready=st.floats(0, 100), wait=st.integers(1, 100))
def test_the_next_check_comes_when_the_pod_is_available(ready: float, wait: int) -> None:
    each = pod(ready=ready)
    after = next_availability_check([each], wait, NOW)
    if after is None:
        assert is_available(each, wait, NOW)
    else:
        assert not is_available(each, wait, NOW)
        assert is_available(each, wait, NOW + after + 1e-3)


def test_a_pod_is_made_from_the_template_and_leaves_it_alone() -> None:
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=dict(LABELS), annotations={"a": "b"}, finalizers=["example.com/f"], name="ignored"),
        spec=PodSpec(node_name="n1"),
    )
    made = pod_from_template(template, "default", "web", None)
    assert made.metadata is not None
    assert made.spec is not None
    assert made.metadata == ObjectMeta(
        generate_name="web-",
        namespace="default",
        labels=LABELS,
        annotations={"a": "b"},
        finalizers=["example.com/f"],
    )
    made.metadata.labels = {}
    made.spec.node_name = None
    assert template.spec is not None
    assert template.spec.node_name == "n1"


def test_the_hash_is_stable_and_safe() -> None:
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"b": "1", "a": "2"}))
    same = PodTemplateSpec(metadata=ObjectMeta(labels={"a": "2", "b": "1"}))
    assert compute_hash(template, None) == compute_hash(same, None)
    assert compute_hash(template, None) != compute_hash(template, 0)
    assert compute_hash(template, 1) != compute_hash(template, 0)
    assert set(compute_hash(template, None)) <= set("bcdfghjklmnpqrstvwxz2456789")


@pytest.mark.parametrize(("text", "value"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)])
def test_fnv_gives_the_published_values(text: bytes, value: int) -> None:
    assert fnv32a(text) == value
