"""Deployments on a real API server, with ReplicaSets and pretended pods."""

from __future__ import annotations

from typing import Any

import pytest
from controllers.conftest import Harness, MakeHarness
from controllers.workloads import LABELS, SELECTOR, image_of, template

from pybernetes.api import errors
from pybernetes.api.apps.v1 import (
    Deployment,
    DeploymentCondition,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.client.keys import controller_of, is_controlled_by
from pybernetes.controllers.common.conditions import find_condition
from pybernetes.controllers.common.meta import annotations_of, labels_of, name_of
from pybernetes.controllers.common.template_hash import POD_TEMPLATE_HASH
from pybernetes.controllers.deployment import annotations
from pybernetes.controllers.deployment.replicasets import new_replicaset, size

BOTH = ("deployment-controller", "replicaset-controller")
ONE, TWO = "registry.example/web:1", "registry.example/web:2"


def deployment(h: Harness, replicas: int = 3, **spec: Any) -> Deployment:
    strategy = spec.pop("strategy", None)
    surge, unavailable = spec.pop("surge", "25%"), spec.pop("unavailable", "25%")
    rolling = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    return Deployment(
        metadata=ObjectMeta(name="web", namespace=h.namespace),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=SELECTOR,
            template=spec.pop("template", template()),
            strategy=strategy or DeploymentStrategy(type="RollingUpdate", rolling_update=rolling),
            **spec,
        ),
    )


async def current(h: Harness) -> Deployment:
    return await h.client.get(Deployment, "web", h.namespace)


async def complete(h: Harness, replicas: int = 3) -> bool:
    found = await current(h)
    assert found.status is not None
    assert found.metadata is not None
    status = found.status
    counts = (status.replicas, status.updated_replicas, status.available_replicas)
    return status.observed_generation == found.metadata.generation and counts == (
        (replicas, replicas, replicas) if replicas else (None, None, None)
    )


async def condition(h: Harness, kind: str) -> DeploymentCondition | None:
    found = await current(h)
    return find_condition(found.status.conditions if found.status else None, kind)


async def has_reason(h: Harness, kind: str, reason: str) -> bool:
    found = await condition(h, kind)
    return found is not None and found.reason == reason


async def set_image(h: Harness, image: str, **spec: Any) -> None:
    containers = [{"name": "web", "image": image}]
    change = {"spec": {**spec, "template": {"spec": {"containers": containers}}}}
    await h.client.patch(Deployment, "web", change, h.namespace, type="strategic")


async def patch(h: Harness, **spec: Any) -> None:
    await h.client.patch(Deployment, "web", {"spec": spec}, h.namespace)


def images(h: Harness) -> list[str]:
    return sorted(image_of(pod) for pod in h.live(Pod))


async def test_it_makes_a_replicaset_with_the_hash_of_the_template(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        made = await h.client.create(deployment(h))
        await h.until(lambda: complete(h))
        (replicas,) = h.live(ReplicaSet)
        hashed = labels_of(replicas)[POD_TEMPLATE_HASH]
        assert name_of(replicas) == f"web-{hashed}"
        assert is_controlled_by(replicas, made)
        assert replicas.spec is not None
        assert replicas.spec.selector is not None
        assert replicas.spec.selector.match_labels == {**LABELS, POD_TEMPLATE_HASH: hashed}
        assert all(labels_of(pod) == {**LABELS, POD_TEMPLATE_HASH: hashed} for pod in h.live(Pod))
        assert annotations_of(replicas) == {
            annotations.REVISION: "1",
            annotations.DESIRED_REPLICAS: "3",
            annotations.MAX_REPLICAS: "4",
        }
        assert annotations_of(await current(h))[annotations.REVISION] == "1"
        await h.until(lambda: has_reason(h, "Progressing", "NewReplicaSetAvailable"))
        progressing, available = await condition(h, "Progressing"), await condition(h, "Available")
        assert progressing is not None
        assert available is not None
        assert progressing.message == f'ReplicaSet "{name_of(replicas)}" has successfully progressed.'
        assert (available.status, available.reason) == ("True", "MinimumReplicasAvailable")
        events = await h.events("ScalingReplicaSet")
        assert [event.message for event in events] == [f"Scaled up replica set {name_of(replicas)} from 0 to 3"]


async def test_a_new_template_rolls_out_within_its_bounds(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        await h.client.create(deployment(h, 4, surge=1, unavailable=1))
        await h.until(lambda: complete(h, 4))
        most, least = 0, 4

        def look(*_: Any) -> None:
            nonlocal most, least
            # The bound is on what the ReplicaSets ask for: while the old one removes a pod, the new one may make one.
            asked = sum(size(each) for each in h.live(ReplicaSet))
            ready = [
                pod
                for pod in h.live(Pod)
                if pod.status and any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or ())
            ]
            most, least = max(most, asked), min(least, len(ready))

        for kind in (Pod, ReplicaSet):
            h.manager.context.informers.informer(kind).add_handler(look, look, look)
        await set_image(h, TWO)
        await h.until(lambda: complete(h, 4))
        assert images(h) == [TWO] * 4
        assert most <= 5
        assert least >= 3
        old, new = sorted(h.live(ReplicaSet), key=size)
        assert (size(old), size(new)) == (0, 4)
        assert annotations_of(new)[annotations.REVISION] == "2"
        assert annotations_of(await current(h))[annotations.REVISION] == "2"


async def test_a_rollout_without_surge_may_replace_all_pods_at_once(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        await h.client.create(deployment(h, 3, surge=0, unavailable="100%"))
        await h.until(lambda: complete(h))
        await set_image(h, TWO)
        await h.until(lambda: complete(h))
        assert images(h) == [TWO] * 3


async def test_broken_new_pods_stop_the_rollout_and_an_undo_ends_it(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        await h.client.create(deployment(h, 4, surge=1, unavailable=1, progress_deadline_seconds=600))
        await h.until(lambda: complete(h, 4))
        broken = {"metadata": {"annotations": {"fake-kubelet/ready": "false"}}}
        await h.client.patch(Deployment, "web", {"spec": {"template": broken}}, h.namespace)
        await h.until(lambda: [size(each) for each in sorted(h.live(ReplicaSet), key=size)] == [2, 3])
        await h.settled()
        found = await current(h)
        assert found.status is not None
        assert (found.status.available_replicas, found.status.unavailable_replicas) == (3, 2)
        h.clock.advance(605)
        await h.until(lambda: has_reason(h, "Progressing", "ProgressDeadlineExceeded"))
        late = await condition(h, "Progressing")
        assert late is not None
        assert late.status == "False"
        # What `kubectl rollout undo` does: put the old template back.
        await h.client.patch(
            Deployment, "web", {"spec": {"template": {"metadata": {"annotations": None}}}}, h.namespace
        )
        await h.until(lambda: complete(h, 4))
        new = max(h.live(ReplicaSet), key=size)
        assert annotations_of(new)[annotations.REVISION] == "3"
        assert annotations_of(new)[annotations.REVISION_HISTORY] == "1"
        await h.until(lambda: has_reason(h, "Progressing", "NewReplicaSetAvailable"))


async def test_recreate_ends_the_old_pods_before_it_makes_new_ones(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        told = {"fake-kubelet/stuck": "true"}
        await h.client.create(
            deployment(h, 2, strategy=DeploymentStrategy(type="Recreate"), template=template(told=told, node_name="n1"))
        )
        await h.until(lambda: complete(h, 2))
        await set_image(h, TWO)
        await h.until(lambda: not h.live(Pod), "old pods are ending")
        await h.settled()
        assert len(h.live(ReplicaSet)) == 1
        for pod in h.cached(Pod):
            await h.client.delete(Pod, name_of(pod), h.namespace, grace_period_seconds=0)
        await h.until(lambda: complete(h, 2))
        assert images(h) == [TWO, TWO]


async def test_scaling_while_rolling_out_is_proportional(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        await h.client.create(deployment(h, 10, surge=3, unavailable=2))
        await h.until(lambda: complete(h, 10))
        broken = {"metadata": {"annotations": {"fake-kubelet/ready": "false"}}}
        await h.client.patch(Deployment, "web", {"spec": {"template": broken}}, h.namespace)
        await h.until(lambda: sorted(map(size, h.live(ReplicaSet))) == [5, 8])
        await patch(h, replicas=30)
        await h.until(lambda: sorted(map(size, h.live(ReplicaSet))) == [13, 20])
        assert {annotations_of(each)[annotations.DESIRED_REPLICAS] for each in h.live(ReplicaSet)} == {"30"}
        assert {annotations_of(each)[annotations.MAX_REPLICAS] for each in h.live(ReplicaSet)} == {"33"}


async def test_a_paused_deployment_scales_but_does_not_roll_out(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        await h.client.create(deployment(h))
        await h.until(lambda: complete(h))
        await patch(h, paused=True)
        await h.until(lambda: has_reason(h, "Progressing", "DeploymentPaused"))
        await set_image(h, TWO)
        await patch(h, replicas=5)
        await h.until(lambda: len(h.live(Pod)) == 5)
        await h.settled()
        assert images(h) == [ONE] * 5
        assert len(h.live(ReplicaSet)) == 1
        await patch(h, paused=False)
        await h.until(lambda: complete(h, 5))
        assert images(h) == [TWO] * 5


async def test_old_revisions_go_beyond_the_limit(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        await h.client.create(deployment(h, 1, revision_history_limit=1))
        for number in range(1, 5):
            await set_image(h, f"registry.example/web:{number}")
            await h.until(lambda: complete(h, 1))
        await h.until(lambda: len(h.live(ReplicaSet)) == 2, "one old ReplicaSet")
        assert sorted(annotations_of(each)[annotations.REVISION] for each in h.live(ReplicaSet)) == ["3", "4"]


async def test_a_rollback_by_annotation_brings_template_and_annotations_back(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        made = deployment(h, 1)
        assert made.metadata is not None
        made.metadata.annotations = {"kubernetes.io/change-cause": "first"}
        await h.client.create(made)
        await h.until(lambda: complete(h, 1))
        cause = {"metadata": {"annotations": {"kubernetes.io/change-cause": "second"}}}
        await h.client.patch(Deployment, "web", cause, h.namespace)
        await set_image(h, TWO)
        await h.until(lambda: complete(h, 1))
        back = {"metadata": {"annotations": {annotations.ROLLBACK_TO: "0"}}}
        await h.client.patch(Deployment, "web", back, h.namespace)

        async def rolled_back() -> bool:
            return images(h) == [ONE] and await complete(h, 1)

        await h.until(rolled_back)
        found = await current(h)
        notes = annotations_of(found)
        assert annotations.ROLLBACK_TO not in notes
        assert notes[annotations.REVISION] == "3"
        assert len(await h.events("DeploymentRollback")) == 1


async def test_a_rollback_to_nowhere_is_reported(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        await h.client.create(deployment(h, 1))
        await h.until(lambda: complete(h, 1))
        back = {"metadata": {"annotations": {annotations.ROLLBACK_TO: "17"}}}
        await h.client.patch(Deployment, "web", back, h.namespace)

        async def cleared() -> bool:
            return annotations.ROLLBACK_TO not in annotations_of(await current(h))

        await h.until(cleared)
        (event,) = await h.events("DeploymentRollbackRevisionNotFound")
        assert event.message == "Unable to find the revision to rollback to."


async def test_a_matching_orphan_replicaset_is_adopted(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        await h.client.create(
            ReplicaSet(
                metadata=ObjectMeta(name="older", namespace=h.namespace, labels=dict(LABELS)),
                spec=ReplicaSetSpec(replicas=2, selector=SELECTOR, template=template()),
            )
        )
        await h.until(lambda: len(h.live(Pod)) == 2)
        before = {name_of(pod) for pod in h.live(Pod)}
        made = await h.client.create(deployment(h, 2))
        await h.until(lambda: complete(h, 2))
        (adopted,) = h.live(ReplicaSet)
        assert name_of(adopted) == "older"
        assert is_controlled_by(adopted, made)
        assert {name_of(pod) for pod in h.live(Pod)} == before


async def test_a_name_that_is_taken_counts_as_a_collision(harness: MakeHarness) -> None:
    async with harness("deployment-controller") as h:
        # The server fills in defaults before the hash is made: look at what it would store.
        stored = await h.client.create(deployment(h, 1), dry_run=True)
        foreign = new_replicaset(stored)
        assert foreign.metadata is not None
        assert foreign.spec is not None
        assert foreign.spec.template is not None
        assert foreign.spec.template.spec is not None
        foreign.metadata.owner_references = None
        foreign.spec.template.spec.node_name = "elsewhere"
        foreign.metadata.labels = {"other": "yes"}
        await h.client.create(foreign)
        await h.client.create(deployment(h, 1))
        await h.until(lambda: len(h.live(ReplicaSet)) == 2, "another name was found")
        found = await current(h)
        assert found.status is not None
        assert found.status.collision_count == 1


async def test_a_refused_replicaset_is_reported(harness: MakeHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    async with harness("deployment-controller") as h:
        client = h.controller("deployment-controller").client

        async def refuse(obj: Any, **_: Any) -> Any:
            raise errors.Forbidden("apps", "replicasets", obj.metadata.name, "exceeded quota: none")

        monkeypatch.setattr(client, "create", refuse)
        await h.client.create(deployment(h, 1))
        await h.until(lambda: has_reason(h, "Progressing", "ReplicaSetCreateError"))
        (event, *_) = await h.until(lambda: h.events("ReplicaSetCreateError"))
        assert event.type == "Warning"
        monkeypatch.undo()
        await h.until(lambda: h.live(ReplicaSet), "tried again")


async def test_failures_of_replicasets_are_reported(harness: MakeHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    async with harness(*BOTH) as h:
        client = h.controller("replicaset-controller").client

        async def refuse(obj: Any, **_: Any) -> Any:
            raise errors.Forbidden("", "pods", "web-x", "exceeded quota: none")

        monkeypatch.setattr(client, "create", refuse)
        await h.client.create(deployment(h, 1))
        await h.until(lambda: has_reason(h, "ReplicaFailure", "FailedCreate"))


async def test_min_ready_seconds_reach_the_replicaset(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        await h.client.create(deployment(h, 1, min_ready_seconds=500))
        await h.until(lambda: h.live(Pod))
        await h.settled()
        assert not await complete(h, 1)
        await patch(h, minReadySeconds=300)
        await h.until(lambda: (h.live(ReplicaSet)[0].spec or ReplicaSetSpec()).min_ready_seconds == 300)
        h.clock.advance(301)
        await h.until(lambda: complete(h, 1))


async def test_annotations_are_copied_to_the_new_replicaset(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        await h.client.create(deployment(h, 1))
        await h.until(lambda: complete(h, 1))
        notes = {"metadata": {"annotations": {"note": "this"}}}
        await h.client.patch(Deployment, "web", notes, h.namespace)
        await h.until(lambda: annotations_of(h.live(ReplicaSet)[0]).get("note") == "this")
        assert controller_of(h.live(ReplicaSet)[0]) is not None


async def test_scaling_to_zero_and_back(harness: MakeHarness) -> None:
    async with harness(*BOTH) as h:
        await h.client.create(deployment(h))
        await h.until(lambda: complete(h))
        await patch(h, replicas=0)
        await h.until(lambda: complete(h, 0))
        assert not h.live(Pod)
        await patch(h, replicas=2)
        await h.until(lambda: complete(h, 2))
