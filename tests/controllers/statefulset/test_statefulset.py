"""StatefulSets on a real API server with pretended pods."""

from __future__ import annotations

from typing import Any

import pytest
from controllers.conftest import Harness, MakeHarness
from controllers.workloads import SELECTOR, bare_pod, image_of, template

from pybernetes.api import errors
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
from pybernetes.api.core.v1.persistentvolumeclaim import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    VolumeResourceRequirements,
)
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.client.keys import controller_of, is_controlled_by, uid_of
from pybernetes.controllers.common.history import template_patch
from pybernetes.controllers.common.meta import created, labels_of, name_of
from pybernetes.controllers.statefulset.identity import POD_INDEX, POD_NAME, REVISION, revision_of

ONE, TWO = "registry.example/web:1", "registry.example/web:2"


def statefulset(h: Harness, replicas: int = 3, **spec: Any) -> StatefulSet:
    rolling = RollingUpdateStatefulSetStrategy(partition=spec.pop("partition", 0))
    strategy = StatefulSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling)
    if spec.pop("on_delete", False):
        strategy = StatefulSetUpdateStrategy(type="OnDelete")
    if spec.pop("storage", False):
        spec["volume_claim_templates"] = [
            PersistentVolumeClaim(
                metadata=ObjectMeta(name="data"),
                spec=PersistentVolumeClaimSpec(
                    access_modes=["ReadWriteOnce"], resources=VolumeResourceRequirements(requests={"storage": "1Gi"})
                ),
            )
        ]
    return StatefulSet(
        metadata=ObjectMeta(name="db", namespace=h.namespace),
        spec=StatefulSetSpec(
            replicas=replicas,
            selector=SELECTOR,
            service_name="db",
            template=spec.pop("template", template()),
            update_strategy=strategy,
            **spec,
        ),
    )


async def current(h: Harness) -> StatefulSet:
    return await h.client.get(StatefulSet, "db", h.namespace)


async def has_status(h: Harness, **counts: int) -> bool:
    found = await current(h)
    assert found.status is not None
    assert found.metadata is not None
    return found.status.observed_generation == found.metadata.generation and all(
        (getattr(found.status, name) or 0) == value for name, value in counts.items()
    )


async def updated(h: Harness) -> bool:
    status = (await current(h)).status or StatefulSetStatus()
    return status.current_revision == status.update_revision


def names(h: Harness) -> list[str]:
    return [name_of(pod) for pod in h.live(Pod)]


async def scale(h: Harness, replicas: int) -> None:
    await h.client.patch(StatefulSet, "db", {"spec": {"replicas": replicas}}, h.namespace)


async def set_image(h: Harness, image: str, **spec: Any) -> None:
    change = {"spec": {**spec, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}}}
    await h.client.patch(StatefulSet, "db", change, h.namespace, type="strategic")


async def tell(h: Harness, name: str, **told: str | None) -> None:
    notes = {f"fake-kubelet/{key}": value for key, value in told.items()}
    await h.client.patch(Pod, name, {"metadata": {"annotations": notes}}, h.namespace)


def follow(h: Harness) -> list[str]:
    """The names of this test's pods as they come (`+`) and go (`-`); other tests have left theirs on the server."""
    seen: list[str] = []

    def note(sign: str, pod: Pod) -> None:
        if pod.metadata is not None and pod.metadata.namespace == h.namespace:
            seen.append(f"{sign}{name_of(pod)}")

    pods = h.manager.context.informers.informer(Pod)
    pods.add_handler(lambda pod: note("+", pod), None, lambda pod: note("-", pod))
    return seen


async def test_pods_come_in_order_with_their_identity_and_go_in_reverse(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        seen = follow(h)
        made = await h.client.create(statefulset(h))
        await h.until(lambda: has_status(h, replicas=3, ready_replicas=3, available_replicas=3, current_replicas=3))
        assert seen == ["+db-0", "+db-1", "+db-2"]
        for index, pod in enumerate(h.live(Pod)):
            assert is_controlled_by(pod, made)
            assert labels_of(pod)[POD_NAME] == f"db-{index}"
            assert labels_of(pod)[POD_INDEX] == str(index)
            assert pod.spec is not None
            assert (pod.spec.hostname, pod.spec.subdomain) == (f"db-{index}", "db")
        messages = {event.message for event in await h.events("SuccessfulCreate")}
        assert "Create Pod db-0 in StatefulSet db successful" in messages
        await scale(h, 0)
        await h.until(lambda: has_status(h, replicas=0))
        assert seen[3:] == ["-db-2", "-db-1", "-db-0"]


@pytest.mark.parametrize("others_were_first", [False, True])
async def test_a_deletion_that_is_refused_stops_nothing(harness: MakeHarness, others_were_first: bool) -> None:
    async with harness("statefulset-controller") as h:
        await h.client.create(statefulset(h, 3))
        await h.until(lambda: has_status(h, ready_replicas=3))
        client = h.controller("statefulset-controller").client
        delete, refused = client.delete, []

        async def refusing(kind: type[Any], name: str, namespace: str = "", **more: Any) -> None:
            if others_were_first:
                await delete(kind, name, namespace, **more)
                await h.until(lambda: name not in map(name_of, h.cached(Pod)), "its end has been seen")
            if others_were_first or name not in refused:
                refused.append(name)
                raise (errors.NotFound if others_were_first else errors.Conflict)("", "pods", name)
            await delete(kind, name, namespace, **more)

        client.delete = refusing  # type: ignore[method-assign]
        await scale(h, 1)
        await h.until(lambda: has_status(h, replicas=1))
        assert refused == ["db-2", "db-1"]


async def test_an_unready_pod_stops_the_scaling(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        await h.client.create(statefulset(h, 1))
        await h.until(lambda: has_status(h, ready_replicas=1))
        await tell(h, "db-0", ready="false")
        await h.until(lambda: has_status(h, ready_replicas=0))
        await scale(h, 3)
        await h.settled()
        assert names(h) == ["db-0"]
        await tell(h, "db-0", ready="true")
        await h.until(lambda: has_status(h, ready_replicas=3))
        await tell(h, "db-0", ready="false")
        await h.until(lambda: has_status(h, ready_replicas=2))
        await scale(h, 1)
        await h.settled()
        assert names(h) == ["db-0", "db-1", "db-2"]
        await tell(h, "db-0", ready="true")
        await h.until(lambda: has_status(h, replicas=1))


async def test_a_parallel_set_does_not_wait(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        told = {"fake-kubelet/ready": "false"}
        await h.client.create(statefulset(h, 4, pod_management_policy="Parallel", template=template(told=told)))
        await h.until(lambda: len(h.live(Pod)) == 4)
        await scale(h, 1)
        await h.until(lambda: names(h) == ["db-0"])


async def test_lost_and_failed_pods_come_back_under_their_names(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        await h.client.create(statefulset(h, 2))
        await h.until(lambda: has_status(h, ready_replicas=2))
        for harm in (lambda: h.client.delete(Pod, "db-0", h.namespace), lambda: tell(h, "db-0", **{"exit-code": "1"})):
            before = h.live(Pod)[0]
            await harm()
            await h.until(lambda before=before: h.live(Pod) and _other(h.live(Pod)[0], before, "db-0"))  # type: ignore[misc]
            await h.until(lambda: has_status(h, ready_replicas=2))
        assert names(h) == ["db-0", "db-1"]


def _other(pod: Pod, before: Pod, name: str) -> bool:
    assert pod.metadata is not None
    assert before.metadata is not None
    return pod.metadata.name == name and pod.metadata.uid != before.metadata.uid


async def test_a_new_template_rolls_from_the_last_to_the_first(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        await h.client.create(statefulset(h))
        await h.until(lambda: has_status(h, ready_replicas=3))
        first = revision_of(h.live(Pod)[0])
        seen = follow(h)
        del seen[:]
        await set_image(h, TWO)
        await h.until(lambda: has_status(h, updated_replicas=3, ready_replicas=3, current_replicas=3))
        await h.until(lambda: updated(h))
        assert seen == ["-db-2", "+db-2", "-db-1", "+db-1", "-db-0", "+db-0"]
        assert {image_of(pod) for pod in h.live(Pod)} == {TWO}
        status = (await current(h)).status
        assert status is not None
        assert {revision_of(pod) for pod in h.live(Pod)} == {status.update_revision}
        assert first != status.update_revision
        revisions = {name_of(each): each for each in await h.list(ControllerRevision)}
        assert revisions[first].revision == 1
        found = await current(h)
        assert found.spec is not None
        assert revisions[status.update_revision or ""].data == template_patch(found.spec.template)


async def test_a_partition_holds_back_and_brings_old_pods_back_as_old(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        await h.client.create(statefulset(h, partition=2))
        await h.until(lambda: has_status(h, ready_replicas=3))
        await set_image(h, TWO)
        await h.until(lambda: has_status(h, updated_replicas=1, ready_replicas=3, current_replicas=2))
        assert [image_of(pod) for pod in h.live(Pod)] == [ONE, ONE, TWO]
        before = {uid_of(pod) for pod in h.live(Pod)}
        await h.client.delete(Pod, "db-0", h.namespace)
        await h.client.delete(Pod, "db-2", h.namespace)
        await h.until(lambda: len({uid_of(pod) for pod in h.live(Pod)} - before) == 2, "both are back")
        await h.until(lambda: has_status(h, ready_replicas=3))
        assert [image_of(pod) for pod in h.live(Pod)] == [ONE, ONE, TWO]
        assert not await updated(h)
        rolling = {"updateStrategy": {"rollingUpdate": {"partition": 0}}}
        await h.client.patch(StatefulSet, "db", {"spec": rolling}, h.namespace)
        await h.until(lambda: has_status(h, updated_replicas=3, ready_replicas=3))
        await h.until(lambda: updated(h))


async def test_on_delete_waits_for_the_user(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        await h.client.create(statefulset(h, 2, on_delete=True))
        await h.until(lambda: has_status(h, ready_replicas=2))
        await set_image(h, TWO)
        await h.until(lambda: has_status(h, updated_replicas=0))
        await h.settled()
        assert [image_of(pod) for pod in h.live(Pod)] == [ONE, ONE]
        await h.client.delete(Pod, "db-0", h.namespace)
        await h.until(lambda: has_status(h, updated_replicas=1, ready_replicas=2))
        assert [image_of(pod) for pod in h.live(Pod)] == [TWO, ONE]


async def test_going_back_renumbers_the_old_revision_and_history_is_limited(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        await h.client.create(statefulset(h, 1, revision_history_limit=0))

        async def roll(image: str) -> None:
            await set_image(h, image)
            await h.until(lambda: [image_of(pod) for pod in h.live(Pod)] == [image])
            await h.until(lambda: has_status(h, updated_replicas=1, ready_replicas=1))
            await h.until(lambda: updated(h))

        await roll(ONE)
        (first,) = await h.list(ControllerRevision)
        assert first.revision == 1
        assert is_controlled_by(first, await current(h))
        await h.client.patch(StatefulSet, "db", {"spec": {"revisionHistoryLimit": 5}}, h.namespace)
        await roll(TWO)
        await roll(ONE)
        assert {name_of(each): each.revision for each in await h.list(ControllerRevision)}[name_of(first)] == 3
        await h.client.patch(StatefulSet, "db", {"spec": {"revisionHistoryLimit": 0}}, h.namespace)
        await h.until(lambda: len(h.live(ControllerRevision)) == 1)


async def test_each_pod_has_claims_that_outlive_it(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        await h.client.create(statefulset(h, 2, storage=True))
        await h.until(lambda: has_status(h, ready_replicas=2))
        claims = await h.list(PersistentVolumeClaim)
        assert [name_of(claim) for claim in claims] == ["data-db-0", "data-db-1"]
        assert [labels_of(claim) for claim in claims] == [{"app": "web"}] * 2
        assert [controller_of(claim) for claim in claims] == [None, None]
        pod = h.live(Pod)[1]
        assert pod.spec is not None
        sources = [volume.persistent_volume_claim for volume in pod.spec.volumes or ()]
        assert [source.claim_name for source in sources if source] == ["data-db-1"]
        await scale(h, 0)
        await h.until(lambda: has_status(h, replicas=0))
        assert len(await h.list(PersistentVolumeClaim)) == 2
        messages = {event.message for event in await h.events("SuccessfulCreate")}
        assert "Create Claim data-db-0 Pod db-0 in StatefulSet db success" in messages


async def test_claims_are_owned_as_the_retention_policy_says(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        policy = StatefulSetPersistentVolumeClaimRetentionPolicy(when_deleted="Delete", when_scaled="Retain")
        subject = statefulset(h, 1, storage=True, persistent_volume_claim_retention_policy=policy)
        made = await h.client.create(subject)

        def owner() -> str | None:
            (claim,) = h.live(PersistentVolumeClaim)
            reference = controller_of(claim)
            return reference.uid if reference else None

        await h.until(lambda: h.live(PersistentVolumeClaim) and owner() == (made.metadata or ObjectMeta()).uid)
        change = {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}}}
        await h.client.patch(StatefulSet, "db", change, h.namespace)
        await h.until(lambda: owner() is None)
        change = {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}}
        await h.client.patch(StatefulSet, "db", change, h.namespace)
        await h.settled()
        pod = (h.live(Pod)[0].metadata or ObjectMeta()).uid
        await scale(h, 0)
        await h.until(lambda: owner() == pod)


async def test_a_claim_that_is_going_away_is_waited_for(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        subject = statefulset(h, 1, storage=True)
        assert subject.spec is not None
        claim = (subject.spec.volume_claim_templates or [PersistentVolumeClaim()])[0]
        old = PersistentVolumeClaim(
            metadata=ObjectMeta(name="data-db-0", namespace=h.namespace, finalizers=["example.com/hold"]),
            spec=claim.spec,
        )
        await h.client.create(old)
        await h.client.delete(PersistentVolumeClaim, "data-db-0", h.namespace)
        await h.client.create(subject)
        (event, *_) = await h.until(lambda: h.events("FailedCreate"))
        assert event.message == "Create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted"
        assert names(h) == []
        await h.client.patch(PersistentVolumeClaim, "data-db-0", {"metadata": {"finalizers": None}}, h.namespace)
        await h.until(lambda: has_status(h, ready_replicas=1))


async def test_ordinals_may_start_later_and_move(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        await h.client.create(statefulset(h, 2, ordinals=StatefulSetOrdinals(start=3)))
        await h.until(lambda: has_status(h, ready_replicas=2))
        assert names(h) == ["db-3", "db-4"]
        await h.client.patch(StatefulSet, "db", {"spec": {"ordinals": {"start": 4}}}, h.namespace)
        await h.until(lambda: names(h) == ["db-4", "db-5"])


async def test_orphans_with_a_fitting_name_are_adopted(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        for name in ("db-0", "other-0"):
            await h.client.create(bare_pod(name, h.namespace))
        await h.caught_up()
        made = await h.client.create(statefulset(h, 1, on_delete=True))
        await h.until(lambda: is_controlled_by(h.live(Pod)[0], made))
        await h.until(lambda: labels_of(h.live(Pod)[0]).get(POD_NAME) == "db-0", "its identity is given to it")
        assert controller_of(h.live(Pod)[1]) is None
        assert REVISION not in labels_of(h.live(Pod)[0])


async def test_min_ready_seconds_hold_up_the_next_pod(harness: MakeHarness) -> None:
    async with harness("statefulset-controller") as h:
        await h.client.create(statefulset(h, 2, min_ready_seconds=500))
        await h.until(lambda: has_status(h, ready_replicas=1, available_replicas=0))
        await h.settled()
        assert names(h) == ["db-0"]
        h.clock.advance(501)
        await h.until(lambda: has_status(h, ready_replicas=2, available_replicas=1))
        assert created(h.live(Pod)[0]) <= created(h.live(Pod)[1])
