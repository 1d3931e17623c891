"""PodDisruptionBudgets on a real API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pybernetes.api import errors
from pybernetes.api.apps.v1 import ReplicaSet
from pybernetes.api.core.v1 import Pod
from pybernetes.api.meta.v1 import OwnerReference
from pybernetes.api.policy.v1 import PodDisruptionBudget
from pybernetes.api.times import rfc3339

NAMES = ("disruption-controller", "replicaset-controller")
LABELS = {"app": "web"}
POD = {"nodeName": "node", "containers": [{"name": "main", "image": "busybox"}]}


def budget(h: Any, **spec: Any) -> PodDisruptionBudget:
    whole = {"metadata": {"name": "b", "namespace": h.namespace}, "spec": {"selector": {"matchLabels": LABELS}, **spec}}
    return msgspec.convert(whole, PodDisruptionBudget)


def replica_set(h: Any, replicas: int) -> ReplicaSet:
    template = {"metadata": {"labels": LABELS}, "spec": POD}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    return msgspec.convert({"metadata": {"name": "web", "namespace": h.namespace}, "spec": spec}, ReplicaSet)


def bare_pod(h: Any, name: str = "bare") -> Pod:
    return msgspec.convert({"metadata": {"name": name, "namespace": h.namespace, "labels": LABELS}, "spec": POD}, Pod)


async def until(h: Any, condition: Callable[[Any], Any], what: str) -> PodDisruptionBudget:
    async def holds() -> PodDisruptionBudget | None:
        found = await h.get(PodDisruptionBudget, "b")
        return found if found.status.observed_generation and condition(found.status) else None

    return await h.until(holds, what)


def numbers(status: Any) -> tuple[int, int, int, int]:
    return status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed


async def test_budget_is_a_share_of_what_the_owner_asks_for(harness) -> None:
    async with harness(*NAMES) as h:
        await h.client.create(budget(h, maxUnavailable="50%"))
        await until(h, lambda status: numbers(status) == (0, 0, 0, 0), "nothing is allowed without pods")
        await h.client.create(replica_set(h, 4))
        found = await until(h, lambda status: numbers(status) == (4, 4, 2, 2), "two of four")
        (condition,) = found.status.conditions
        assert (condition.type, condition.status, condition.reason) == ("DisruptionAllowed", "True", "SufficientPods")
        unready = h.live(Pod)[0].metadata.name
        await h.client.patch(Pod, unready, {"metadata": {"annotations": {"fake-kubelet/ready": "false"}}}, h.namespace)
        await until(h, lambda status: numbers(status) == (4, 3, 2, 1), "one of three")


async def test_evictions_are_allowed_until_the_budget_is_used_up(harness) -> None:
    async with harness("disruption-controller") as h:
        for name in ("one", "two"):
            await h.client.create(bare_pod(h, name))
        await h.client.create(budget(h, minAvailable=1))
        await until(h, lambda status: numbers(status) == (2, 2, 1, 1), "one may go")
        await h.client.evict("one", h.namespace)
        with pytest.raises(errors.TooManyRequests):
            await h.client.evict("two", h.namespace)
        await until(h, lambda status: numbers(status) == (1, 1, 1, 0) and not status.disrupted_pods, "the last stays")


async def test_an_eviction_that_deletes_nothing_is_forgotten(harness) -> None:
    async with harness("disruption-controller") as h:
        await h.client.create(bare_pod(h))
        await h.client.create(budget(h, minAvailable=0))
        found = await until(h, lambda status: numbers(status) == (1, 1, 0, 1), "it may go")
        found.status.disrupted_pods = {"bare": rfc3339(h.clock.now())}
        await h.client.update_status(found)
        await until(h, lambda status: numbers(status) == (1, 0, 0, 0), "it counts as gone")
        h.clock.advance(125)
        await until(
            h, lambda status: numbers(status) == (1, 1, 0, 1) and not status.disrupted_pods, "it is still there"
        )
        (event,) = await h.events("NotDeleted")
        assert event.message == f"Pod was expected by PDB {h.namespace}/b to be deleted but it wasn't"


async def test_pods_without_owner_get_an_event_and_do_not_count(harness) -> None:
    async with harness("disruption-controller") as h:
        await h.client.create(bare_pod(h))
        await h.client.create(budget(h, maxUnavailable=1))
        await until(h, lambda status: numbers(status) == (0, 1, 0, 0), "nothing is expected")
        assert await h.until(lambda: h.events("UnmanagedPods"), "it is reported")


async def test_owners_without_scale_make_the_budget_fail_safe(harness) -> None:
    async with harness("disruption-controller") as h:
        pod = bare_pod(h)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
        pod.metadata.owner_references = [msgspec.convert(owner, OwnerReference)]
        await h.client.create(pod)
        await h.client.create(budget(h, maxUnavailable=1))

        async def failed() -> Any:
            found = await h.get(PodDisruptionBudget, "b")
            return next((each for each in found.status.conditions or () if each.reason == "SyncFailed"), None)

        condition = await h.until(failed, "the failure is reported")
        assert condition.message == "jobs.batch does not implement the scale subresource"
        assert await h.events("CalculateExpectedPodCountFailed")


async def test_a_disruption_that_did_not_happen_is_taken_back(harness) -> None:
    async with harness("disruption-controller") as h:
        await h.client.create(bare_pod(h))
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "X",
            "lastTransitionTime": rfc3339(h.clock.now()),
        }
        patch = {"status": {"conditions": [condition]}}
        await h.client.patch(Pod, "bare", patch, h.namespace, type="strategic", subresource="status")

        def target() -> str | None:
            conditions = [each for pod in h.cached(Pod) for each in pod.status.conditions or ()]
            return next((each.status for each in conditions if each.type == "DisruptionTarget"), None)

        await h.until(lambda: target() == "True", "it is to be disrupted")
        h.clock.advance(125)
        await h.until(lambda: target() == "False", "and is not any more")
