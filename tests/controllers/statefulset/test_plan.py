"""What a StatefulSet does next: pure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.apps.v1 import (
    ControllerRevision,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetOrdinals,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
    StatefulSetStatus,
    StatefulSetUpdateStrategy,
)
from pybernetes.api.core.v1.container import Container
from pybernetes.api.core.v1.persistentvolumeclaim import PersistentVolumeClaim
from pybernetes.api.core.v1.pod import Pod, PodCondition, PodSpec, PodStatus, PodTemplateSpec
from pybernetes.api.meta.v1.labelselector import LabelSelector
from pybernetes.api.meta.v1.objectmeta import ObjectMeta, OwnerReference
from pybernetes.api.times import rfc3339
from pybernetes.client.keys import controller_reference
from pybernetes.controllers.common.history import template_patch
from pybernetes.controllers.common.meta import name_of
from pybernetes.controllers.statefulset import retention
from pybernetes.controllers.statefulset.identity import (
    POD_INDEX,
    POD_NAME,
    REVISION,
    claims_for,
    new_pod,
    ordinal_of,
    parent_and_ordinal,
)
from pybernetes.controllers.statefulset.plan import MOST_MISSING, Plan, make_plan
from pybernetes.controllers.statefulset.revisions import Revisions, to_truncate

NOW = 1_700_000_000.0


def template(image: str) -> PodTemplateSpec:
    return PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": "db"}), spec=PodSpec(containers=[Container(name="c", image=image)])
    )


def revision(name: str) -> ControllerRevision:
    return ControllerRevision(metadata=ObjectMeta(name=name), data=template_patch(template(name)), revision=1)


OLD, NEW = revision("old"), revision("new")


def statefulset(replicas: int, parallel: bool = False, claims: bool = False, **spec: Any) -> StatefulSet:
    rolling = RollingUpdateStatefulSetStrategy(
        partition=spec.pop("partition", 0), max_unavailable=spec.pop("max_unavailable", None)
    )
    strategy = StatefulSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling)
    if spec.pop("on_delete", False):
        strategy = StatefulSetUpdateStrategy(type="OnDelete")
    return StatefulSet(
        metadata=ObjectMeta(name="db", namespace="default", uid="set", generation=2),
        spec=StatefulSetSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels={"app": "db"}),
            service_name="db",
            template=template("new"),
            pod_management_policy="Parallel" if parallel else "OrderedReady",
            update_strategy=strategy,
            volume_claim_templates=[PersistentVolumeClaim(metadata=ObjectMeta(name="data"))] if claims else None,
            **spec,
        ),
        status=StatefulSetStatus(),
    )


def pod(
    subject: StatefulSet,
    ordinal: int,
    at: str = "new",
    phase: str = "Running",
    ready: bool = True,
    deleting: bool = False,
) -> Pod:
    made = new_pod(subject, template(at), ordinal, at)
    assert made.metadata is not None
    made.metadata.uid = f"uid-{ordinal}"
    made.metadata.deletion_timestamp = rfc3339(NOW) if deleting else None
    condition = PodCondition(type="Ready", status=str(ready), last_transition_time=rfc3339(NOW - 10))
    made.status = PodStatus(phase=phase, conditions=[condition])
    return made


def planned(subject: StatefulSet, pods: list[Pod], claims: dict[str, PersistentVolumeClaim] | None = None) -> Plan:
    return make_plan(subject, OLD, NEW, 0, pods, (claims or {}).get, NOW)


def steps(subject: StatefulSet, pods: list[Pod]) -> list[tuple[str, int]]:
    return [(step.do, ordinal_of(step.pod)) for group in planned(subject, pods).groups for step in group]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("db-0", ("db", 0)),
        ("my-db-12", ("my-db", 12)),
        ("db", ("", -1)),
        ("db-x", ("", -1)),
        ("db-99999999999", ("db", -1)),
    ],
)
def test_a_name_tells_the_set_and_the_ordinal(name: str, expected: tuple[str, int]) -> None:
    assert parent_and_ordinal(Pod(metadata=ObjectMeta(name=name))) == expected


def test_a_pod_has_its_identity_and_storage() -> None:
    made = new_pod(statefulset(1, claims=True), template("x"), 3, "rev")
    assert made.metadata is not None
    assert made.spec is not None
    assert made.metadata.name == "db-3"
    assert made.metadata.labels == {"app": "db", POD_NAME: "db-3", POD_INDEX: "3", REVISION: "rev"}
    assert (made.spec.hostname, made.spec.subdomain) == ("db-3", "db")
    (volume,) = made.spec.volumes or ()
    assert volume.name == "data"
    assert volume.persistent_volume_claim is not None
    assert volume.persistent_volume_claim.claim_name == "data-db-3"
    (claim,) = claims_for(statefulset(1, claims=True), 3).values()
    assert claim.metadata == ObjectMeta(name="data-db-3", namespace="default", labels={"app": "db"})


def test_in_order_one_pod_after_the_other() -> None:
    subject = statefulset(3)
    assert steps(subject, []) == [("create", 0)]
    assert steps(subject, [pod(subject, 0, ready=False)]) == []
    assert steps(subject, [pod(subject, 0)]) == [("create", 1)]
    assert steps(subject, [pod(subject, 0), pod(subject, 2)]) == [("create", 1)]
    assert steps(subject, [pod(subject, 0, deleting=True), pod(subject, 1), pod(subject, 2)]) == []


def test_in_parallel_all_at_once() -> None:
    subject = statefulset(3, parallel=True)
    assert steps(subject, []) == [("create", 0), ("create", 1), ("create", 2)]
    assert steps(subject, [pod(subject, 1, ready=False)]) == [("create", 0), ("create", 2)]
    down = statefulset(1, parallel=True)
    assert steps(down, [pod(down, 0), pod(down, 1), pod(down, 2)]) == [("delete", 2), ("delete", 1)]


def test_in_order_the_last_goes_first_and_waits_for_the_others() -> None:
    subject = statefulset(1)
    assert steps(subject, [pod(subject, 0), pod(subject, 1), pod(subject, 2)]) == [("delete", 2)]
    assert steps(subject, [pod(subject, 0), pod(subject, 1), pod(subject, 2, deleting=True)]) == []
    assert steps(subject, [pod(subject, 0, ready=False), pod(subject, 1)]) == []
    assert steps(subject, [pod(subject, 0), pod(subject, 1, ready=False), pod(subject, 2)]) == [("delete", 2)]
    assert steps(subject, [pod(subject, 0), pod(subject, 1), pod(subject, 2, ready=False)]) == [("delete", 2)]
    both = [pod(subject, 0), pod(subject, 1, ready=False), pod(subject, 2, ready=False)]
    assert steps(subject, both) == []


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_pods_that_have_ended_are_deleted_to_come_back(phase: str) -> None:
    subject = statefulset(2)
    assert steps(subject, [pod(subject, 0, phase=phase), pod(subject, 1)]) == [("delete", 0)]
    assert steps(subject, [pod(subject, 0, phase=phase, deleting=True), pod(subject, 1)]) == []


def test_ordinals_may_start_later() -> None:
    subject = statefulset(2, ordinals=StatefulSetOrdinals(start=5))
    assert steps(subject, []) == [("create", 5)]
    assert steps(subject, [pod(subject, 5), pod(subject, 6), pod(subject, 0)]) == [("delete", 0)]


@pytest.mark.parametrize("start", [0, 2**31 - 1])
def test_a_set_may_ask_for_all_there_can_be(start: int) -> None:
    """It took the controller manager all memory there was."""
    subject = statefulset(2**31 - 1, parallel=True, ordinals=StatefulSetOrdinals(start=start))
    end = min(start + MOST_MISSING, 2**31)
    assert steps(subject, []) == [("create", ordinal) for ordinal in range(start, end)]
    in_order = statefulset(2**31 - 1, ordinals=StatefulSetOrdinals(start=start))
    assert steps(in_order, []) == [("create", start)]


def test_while_many_are_missing_nothing_is_updated() -> None:
    subject = statefulset(10 * MOST_MISSING, parallel=True)
    pods = [pod(subject, number, "old") for number in range(3)]
    assert {do for do, _ in steps(subject, pods)} == {"create"}
    some = statefulset(10 * MOST_MISSING, parallel=True, max_unavailable="50%")
    assert {do for do, _ in steps(some, pods)} == {"create"}


def test_a_rolling_update_goes_from_the_last_to_the_first() -> None:
    subject = statefulset(3)
    pods = [pod(subject, number, "old") for number in range(3)]
    assert steps(subject, pods) == [("delete", 2)]
    assert steps(subject, [*pods[:2], pod(subject, 2, "new", ready=False)]) == []
    assert steps(subject, [*pods[:2], pod(subject, 2)]) == [("delete", 1)]


def test_a_partition_keeps_what_is_below_it() -> None:
    subject = statefulset(3, partition=2)
    pods = [pod(subject, number, "old") for number in range(3)]
    assert steps(subject, pods) == [("delete", 2)]
    assert steps(subject, [*pods[:2], pod(subject, 2)]) == []
    (group,) = planned(subject, [pods[1], pods[2]]).groups
    assert (group[0].do, (group[0].pod.metadata or ObjectMeta()).labels or {}) == (
        "create",
        {"app": "db", POD_NAME: "db-0", POD_INDEX: "0", REVISION: "old"},
    )


def test_on_delete_touches_nothing_but_makes_new_ones() -> None:
    subject = statefulset(2, on_delete=True)
    assert steps(subject, [pod(subject, 0, "old"), pod(subject, 1, "old")]) == []
    (group,) = planned(subject, [pod(subject, 0, "old")]).groups
    assert ((group[0].pod.metadata or ObjectMeta()).labels or {})[REVISION] == "new"


@pytest.mark.parametrize(
    ("limit", "unready", "expected"), [(2, 0, [4, 3]), ("60%", 0, [4, 3, 2]), (2, 1, [4]), (2, 2, []), ("1%", 0, [4])]
)
def test_several_may_be_unavailable_if_allowed(limit: int | str, unready: int, expected: list[int]) -> None:
    subject = statefulset(5, parallel=True, max_unavailable=limit)
    pods = [pod(subject, number, "old", ready=number >= unready) for number in range(5)]
    assert steps(subject, pods) == [("delete", ordinal) for ordinal in expected]


def test_lost_identity_is_given_back() -> None:
    subject = statefulset(1)
    lost = pod(subject, 0)
    assert lost.metadata is not None
    lost.metadata.labels = {"app": "db", REVISION: "new"}
    assert steps(subject, [lost]) == [("update", 0)]


def test_a_set_that_is_being_deleted_only_reports() -> None:
    subject = statefulset(3)
    assert subject.metadata is not None
    subject.metadata.deletion_timestamp = rfc3339(NOW)
    plan = planned(subject, [pod(subject, 0)])
    assert plan.groups == []
    assert plan.status.replicas == 1


def test_the_status_counts_and_completes() -> None:
    subject = statefulset(3)
    status = planned(subject, [pod(subject, 0, "old"), pod(subject, 1, "old", ready=False), pod(subject, 2)]).status
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (3, 2, 2)
    assert (status.current_replicas, status.updated_replicas) == (2, 1)
    assert (status.current_revision, status.update_revision) == ("old", "new")
    status = planned(subject, [pod(subject, number) for number in range(3)]).status
    assert (status.current_revision, status.current_replicas, status.updated_replicas) == ("new", 3, 3)


POLICIES = [("Retain", "Retain"), ("Delete", "Retain"), ("Retain", "Delete"), ("Delete", "Delete")]


@pytest.mark.parametrize(("deleted", "scaled"), POLICIES)
@pytest.mark.parametrize("ordinal", [0, 5])
def test_claims_belong_to_whom_the_policy_says(deleted: str, scaled: str, ordinal: int) -> None:
    policy = StatefulSetPersistentVolumeClaimRetentionPolicy(when_deleted=deleted, when_scaled=scaled)
    subject = statefulset(1, claims=True, persistent_volume_claim_retention_policy=policy)
    owner = pod(subject, ordinal)
    expected = "uid-5" if ordinal == 5 and scaled == "Delete" else "set" if deleted == "Delete" else None
    for before in (None, [controller_reference(subject)], [controller_reference(owner)]):
        claim = PersistentVolumeClaim(metadata=ObjectMeta(name=f"data-db-{ordinal}", owner_references=before))
        uids = [reference.uid for reference in before or ()]
        assert retention.is_up_to_date(claim, subject, owner) == (uids == ([expected] if expected else []))
        retention.update_owners(claim, subject, owner)
        assert claim.metadata is not None
        assert [each.uid for each in claim.metadata.owner_references or ()] == ([expected] if expected else [])
        assert retention.is_up_to_date(claim, subject, owner)


def test_claims_of_others_and_of_the_dead_are_left_alone() -> None:
    policy = StatefulSetPersistentVolumeClaimRetentionPolicy(when_deleted="Delete", when_scaled="Delete")
    subject = statefulset(1, claims=True, persistent_volume_claim_retention_policy=policy)
    owner = pod(subject, 0)
    stranger = OwnerReference(api_version="v1", kind="ConfigMap", name="x", uid="x", controller=True)
    ghost = controller_reference(subject)
    ghost.uid = "earlier"
    for reference in (stranger, ghost):
        claim = PersistentVolumeClaim(metadata=ObjectMeta(name="data-db-0", owner_references=[reference]))
        assert retention.has_conflicting_controller(claim, subject, owner)
        assert retention.is_up_to_date(claim, subject, owner)


def test_a_pod_waits_for_a_claim_that_goes_with_its_predecessor() -> None:
    policy = StatefulSetPersistentVolumeClaimRetentionPolicy(when_deleted="Retain", when_scaled="Delete")
    subject = statefulset(1, claims=True, persistent_volume_claim_retention_policy=policy)
    stale = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data-db-0", owner_references=[controller_reference(pod(subject, 0))])
    )
    assert planned(subject, [], {"data-db-0": stale}).groups == []
    assert planned(subject, []).groups != []


def test_unused_revisions_go_beyond_the_limit() -> None:
    subject = statefulset(1, revision_history_limit=1)
    known = [OLD, NEW]
    for number, name in enumerate(("a", "b", "c"), 2):
        known.append(ControllerRevision(metadata=ObjectMeta(name=name), revision=number))
    used = pod(subject, 0, "b")
    assert [name_of(each) for each in to_truncate(subject, known, Revisions(OLD, NEW, 0), [used])] == ["a"]


@given(
    replicas=st.integers(0, 6),
    before=st.integers(0, 6),
    parallel=st.booleans(),
    limit=st.one_of(st.none(), st.integers(1, 3)),
    luck=st.lists(st.booleans(), max_size=60),
)
def test_it_always_gets_there(replicas: int, before: int, parallel: bool, limit: int | None, luck: list[bool]) -> None:
    """From any size at the old revision to any size at the new one; in order never two pods away at once."""
    subject = statefulset(replicas, parallel, max_unavailable=limit)
    pods = {number: pod(subject, number, "old") for number in range(before)}
    for step in range(300):
        for group in planned(subject, list(pods.values())).groups:
            if not parallel:
                assert len([each for each in group if each.do in ("create", "delete")]) <= max(1, limit or 1)
            for each in group:
                ordinal = ordinal_of(each.pod)
                if each.do == "create":
                    assert ordinal not in pods
                    label = ((each.pod.metadata or ObjectMeta()).labels or {})[REVISION]
                    pods[ordinal] = pod(subject, ordinal, label, ready=False)
                elif each.do == "delete":
                    del pods[ordinal]
        if step >= len(luck) or luck[step]:
            pods = {
                number: pod(subject, number, ((each.metadata or ObjectMeta()).labels or {})[REVISION])
                for number, each in pods.items()
            }
    assert sorted(pods) == list(range(replicas))
    assert {((each.metadata or ObjectMeta()).labels or {})[REVISION] for each in pods.values()} <= {"new"}
