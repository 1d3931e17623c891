"""DaemonSets on a real API server, with Node objects and pretended pods."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from controllers.conftest import Harness, MakeHarness
from controllers.workloads import LABELS, SELECTOR, bare_pod, image_of, template

from pybernetes.api.apps.v1 import (
    ControllerRevision,
    DaemonSet,
    DaemonSetSpec,
    DaemonSetStatus,
    DaemonSetUpdateStrategy,
    RollingUpdateDaemonSet,
)
from pybernetes.api.core.v1.node import Node
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.client.keys import is_controlled_by
from pybernetes.controllers.common.history import template_patch
from pybernetes.controllers.common.meta import labels_of, name_of
from pybernetes.controllers.common.template_hash import compute_hash
from pybernetes.controllers.daemonset.controller import FIRST_BACKOFF
from pybernetes.controllers.daemonset.nodes import REVISION_HASH, target_node

ONE, TWO = "registry.example/web:1", "registry.example/web:2"


def daemonset(h: Harness, on_delete: bool = False, surge: int = 0, unavailable: int = 1, **spec: Any) -> DaemonSet:
    rolling = RollingUpdateDaemonSet(max_surge=surge, max_unavailable=unavailable)
    strategy = DaemonSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling)
    return DaemonSet(
        metadata=ObjectMeta(name="agent", namespace=h.namespace),
        spec=DaemonSetSpec(
            selector=SELECTOR,
            template=spec.pop("template", template()),
            update_strategy=DaemonSetUpdateStrategy(type="OnDelete") if on_delete else strategy,
            **spec,
        ),
    )


@contextlib.asynccontextmanager
async def cluster(harness: MakeHarness, *nodes: str) -> AsyncIterator[Harness]:
    """The controller and some nodes, which go away afterwards: they belong to no namespace."""
    async with harness("daemonset-controller") as h:
        for name in nodes:
            await h.client.create(Node(metadata=ObjectMeta(name=name, labels={"name": name})))
        try:
            yield h
        finally:
            for node in (await h.client.list(Node)).items or ():
                await h.client.delete(Node, name_of(node))


async def has_status(h: Harness, **counts: int) -> bool:
    found = await h.client.get(DaemonSet, "agent", h.namespace)
    assert found.status is not None
    assert found.metadata is not None
    return found.status.observed_generation == found.metadata.generation and all(
        (getattr(found.status, name) or 0) == value for name, value in counts.items()
    )


def places(h: Harness) -> list[str]:
    return sorted(target_node(pod) or "" for pod in h.live(Pod))


async def set_image(h: Harness, image: str) -> None:
    change = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}}
    await h.client.patch(DaemonSet, "agent", change, h.namespace, type="strategic")


async def test_one_pod_on_every_node_that_comes_and_goes(harness: MakeHarness) -> None:
    async with cluster(harness, "n1", "n2") as h:
        made = await h.client.create(daemonset(h))
        await h.until(lambda: has_status(h, desired_number_scheduled=2, number_available=2, updated_number_scheduled=2))
        assert places(h) == ["n1", "n2"]
        assert all(is_controlled_by(pod, made) for pod in h.live(Pod))
        await h.client.create(Node(metadata=ObjectMeta(name="n3")))
        await h.until(lambda: has_status(h, desired_number_scheduled=3, number_available=3))
        await h.client.delete(Node, "n1")
        await h.until(lambda: has_status(h, desired_number_scheduled=2, number_available=2))
        await h.until(lambda: places(h) == ["n2", "n3"], "the pod for the node that is gone goes too")
        assert len(await h.events("SuccessfulCreate")) == 3


async def test_a_label_on_a_node_brings_and_takes_the_pod(harness: MakeHarness) -> None:
    async with cluster(harness, "n1", "n2") as h:
        await h.client.create(daemonset(h, template=template(node_selector={"color": "blue"})))
        await h.until(lambda: has_status(h, desired_number_scheduled=0))
        assert places(h) == []
        await h.client.patch(Node, "n2", {"metadata": {"labels": {"color": "blue"}}})
        await h.until(lambda: places(h) == ["n2"])
        await h.client.patch(Node, "n2", {"metadata": {"labels": {"color": "green"}}})
        await h.until(lambda: places(h) == [])


async def test_a_taint_evicts_or_only_keeps_away(harness: MakeHarness) -> None:
    async with cluster(harness, "n1", "n2") as h:
        await h.client.create(daemonset(h))
        await h.until(lambda: has_status(h, number_available=2))
        await h.client.patch(Node, "n1", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})
        await h.until(lambda: has_status(h, desired_number_scheduled=1, number_misscheduled=1))
        assert places(h) == ["n1", "n2"]
        await h.client.patch(Node, "n1", {"spec": {"taints": None}})
        await h.until(lambda: has_status(h, desired_number_scheduled=2, number_misscheduled=0))
        await h.client.patch(Node, "n1", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
        await h.until(lambda: places(h) == ["n2"])


@pytest.mark.parametrize(("surge", "unavailable"), [(0, 1), (1, 0), (0, 3)])
async def test_a_new_template_rolls_over_the_nodes(harness: MakeHarness, surge: int, unavailable: int) -> None:
    async with cluster(harness, "n1", "n2", "n3") as h:
        await h.client.create(daemonset(h, surge=surge, unavailable=unavailable))
        await h.until(lambda: has_status(h, number_available=3))
        first = {labels_of(pod)[REVISION_HASH] for pod in h.live(Pod)}
        await set_image(h, TWO)
        await h.until(lambda: has_status(h, number_available=3, updated_number_scheduled=3))
        await h.until(lambda: [image_of(pod) for pod in h.live(Pod)] == [TWO] * 3)
        assert places(h) == ["n1", "n2", "n3"]
        assert not first & {labels_of(pod)[REVISION_HASH] for pod in h.live(Pod)}


async def test_on_delete_waits_for_the_user(harness: MakeHarness) -> None:
    async with cluster(harness, "n1", "n2") as h:
        await h.client.create(daemonset(h, on_delete=True))
        await h.until(lambda: has_status(h, number_available=2))
        await set_image(h, TWO)
        await h.until(lambda: has_status(h, updated_number_scheduled=0))
        await h.settled()
        assert {image_of(pod) for pod in h.live(Pod)} == {ONE}
        await h.client.delete(Pod, name_of(h.live(Pod)[0]), h.namespace)
        await h.until(lambda: has_status(h, updated_number_scheduled=1, number_available=2))
        assert sorted(image_of(pod) for pod in h.live(Pod)) == [ONE, TWO]


async def test_revisions_are_kept_renumbered_and_limited(harness: MakeHarness) -> None:
    async with cluster(harness, "n1") as h:
        await h.client.create(daemonset(h, revision_history_limit=1))

        async def roll(image: str) -> None:
            await set_image(h, image)
            await h.until(lambda: has_status(h, updated_number_scheduled=1, number_available=1))
            await h.until(lambda: [image_of(pod) for pod in h.live(Pod)] == [image])

        await roll(ONE)
        (first,) = await h.list(ControllerRevision)
        assert first.revision == 1
        found = await h.client.get(DaemonSet, "agent", h.namespace)
        assert found.spec is not None
        assert first.data == template_patch(found.spec.template)
        assert labels_of(first)[REVISION_HASH] == labels_of(h.live(Pod)[0])[REVISION_HASH]
        await roll(TWO)
        await roll(ONE)
        numbers = {name_of(each): each.revision for each in await h.list(ControllerRevision)}
        assert sorted(numbers.values()) == [2, 3]
        assert numbers[name_of(first)] == 3
        await roll("registry.example/web:3")
        await h.settled()
        assert sorted(each.revision or 0 for each in await h.list(ControllerRevision)) == [3, 4]


async def test_failed_pods_are_replaced_with_growing_patience(harness: MakeHarness) -> None:
    async with cluster(harness, "n1") as h:
        await h.client.create(daemonset(h))
        await h.until(lambda: has_status(h, number_available=1))

        async def fail() -> str:
            name = name_of((await h.until(lambda: h.live(Pod)))[0])
            failed = {"metadata": {"annotations": {"fake-kubelet/exit-code": "1"}}}
            await h.client.patch(Pod, name, failed, h.namespace)
            return name

        since = h.clock.monotonic()
        first = await fail()
        await h.until(lambda: h.live(Pod) and name_of(h.live(Pod)[0]) != first, "replaced at once")
        second = await fail()
        await h.until(lambda: h.live(Pod) and name_of(h.live(Pod)[0]) != second, "replaced after a while")
        assert h.clock.monotonic() - since >= FIRST_BACKOFF
        assert (await h.events("FailedDaemonPod"))[0].type == "Warning"


async def test_a_matching_orphan_is_adopted(harness: MakeHarness) -> None:
    async with cluster(harness, "n1") as h:
        orphan = bare_pod("orphan", h.namespace)
        assert orphan.spec is not None
        orphan.spec.node_name = "n1"
        await h.client.create(orphan)
        await h.caught_up()
        made = await h.client.create(daemonset(h, on_delete=True))
        await h.until(lambda: has_status(h, current_number_scheduled=1))
        (pod,) = h.live(Pod)
        assert name_of(pod) == "orphan"
        await h.until(lambda: is_controlled_by(h.live(Pod)[0], made))
        assert labels_of(pod) == LABELS


async def test_min_ready_seconds_delay_availability(harness: MakeHarness) -> None:
    async with cluster(harness, "n1") as h:
        await h.client.create(daemonset(h, min_ready_seconds=500))
        await h.until(lambda: has_status(h, number_ready=1, number_available=0, number_unavailable=1))
        h.clock.advance(501)
        await h.until(lambda: has_status(h, number_available=1))


async def test_a_hash_that_is_taken_counts_as_a_collision(harness: MakeHarness) -> None:
    async with cluster(harness, "n1") as h:
        stored = await h.client.create(daemonset(h), dry_run=True)
        assert stored.spec is not None
        name = f"agent-{compute_hash(stored.spec.template, None)}"
        metadata = ObjectMeta(name=name, namespace=h.namespace)
        await h.client.create(ControllerRevision(metadata=metadata, data={"other": True}, revision=1))
        await h.client.create(daemonset(h))
        await h.until(lambda: has_status(h, number_available=1))
        found = await h.client.get(DaemonSet, "agent", h.namespace)
        assert (found.status or DaemonSetStatus()).collision_count == 1
