"""Tells how many pods of each PodDisruptionBudget may be evicted.

Woken by: its budget, pods that it selects, and the time at which an eviction should have been seen. Writes: its own
status; the condition DisruptionTarget of pods that were to be deleted and were not.
If the number cannot be computed, it is 0: rather no eviction than one too many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from pybernetes.api import errors
from pybernetes.api.apps.v1 import Deployment, ReplicaSet, StatefulSet
from pybernetes.api.core.podconditions import update_pod_condition
from pybernetes.api.core.v1.pod import Pod, PodCondition
from pybernetes.api.core.v1.replicationcontroller import ReplicationController
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.v1.objectmeta import OwnerReference
from pybernetes.api.policy.v1 import PodDisruptionBudget
from pybernetes.api.times import rfc3339
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key, controller_of, copy, key_of, uid_of
from pybernetes.client.workqueue import WorkQueue

from ..base import Controller, maps
from ..common.meta import generation_of, labels_of, name_of
from ..common.scales import NoMatch, Scales
from ..common.selector_text import selector_text
from . import budget as arithmetic

_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)


class NoScale(Exception):
    """How many pods there should be cannot be found out."""


class Owner(NamedTuple):
    """The owner that sets the number of pods, and that number."""

    uid: str
    replicas: int


def _budgets(controller: DisruptionController, pod: Pod) -> Iterable[Key]:
    found = controller.selecting(pod)
    if len(found) > 1:
        key = key_of(pod)
        message = (
            f"Pod {quote(key.namespace)}/{quote(key.name)} matches multiple PodDisruptionBudgets.  "
            f"Chose {quote(name_of(found[0]))} arbitrarily."
        )
        controller.recorder.event(pod, WARNING, "MultiplePodDisruptionBudgets", message)
    return map(key_of, found)


class DisruptionController(Controller[PodDisruptionBudget]):
    """Keeps the statuses of PodDisruptionBudgets."""

    name = "disruption-controller"
    kind = PodDisruptionBudget
    watches = (maps(Pod, _budgets),)

    def setup(self) -> None:
        """Know pods and those who own them."""
        self.recorder = self.context.events.recorder("controllermanager")
        self.pods: Informer[Pod] = self.informer(Pod)
        self.pods.add_handler(self._pod_seen, lambda _, pod: self._pod_seen(pod))
        self.deployments: Informer[Deployment] = self.informer(Deployment)
        self.replica_sets: Informer[ReplicaSet] = self.informer(ReplicaSet)
        self.stateful_sets: Informer[StatefulSet] = self.informer(StatefulSet)
        self.replication_controllers: Informer[ReplicationController] = self.informer(ReplicationController)
        self.scales = Scales(self.client)
        self._stale: WorkQueue[Key] = self.new_queue("stale_pod_disruption")

    async def run(self) -> None:
        """Work on budgets, and on pods that were not deleted after all."""
        await self.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.work(self.queue, self.reconcile, self.workers))
            group.create_task(self.work(self._stale, self._clear, 1))

    async def reconcile(self, key: Key) -> float | None:
        """Compute the budget's status."""
        budget = self.own.get(key)
        if budget is None:
            return None
        try:
            return await self._sync(budget)
        except errors.Conflict:
            raise
        except (errors.APIError, OSError, TimeoutError, ValueError, NoScale, NoMatch) as error:
            self.log.warning("%s: %s", key, error)
            status = arithmetic.failed_status(budget, str(error), self.clock.now())
            await self.client.update_status(msgspec.structs.replace(budget, status=status))
            return None

    async def _sync(self, budget: PodDisruptionBudget) -> float | None:
        try:
            pods = self._selected(budget)
        except ValueError as error:
            self.recorder.event(budget, WARNING, "NoPods", f"Failed to get pods: {error}")
            raise
        if not pods:
            self.recorder.event(budget, NORMAL, "NoPods", "No matching pods found")
        try:
            scale, unmanaged = await self._scale(pods) if arithmetic.needs_scale(budget) else (0, False)
            expected, desired = arithmetic.expectations(budget, len(pods), scale)
        except Exception as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            self.recorder.event(budget, WARNING, "CalculateExpectedPodCountFailed", message)
            raise
        if unmanaged:
            selector = selector_text(budget.spec.selector if budget.spec else None)
            self.recorder.event(budget, WARNING, "UnmanagedPods", _UNMANAGED.format(selector))
        now = self.clock.now()
        disrupted = arithmetic.disrupted(budget, pods, now)
        namespace = key_of(budget).namespace
        for pod in disrupted.overdue:
            message = f"Pod was expected by PDB {namespace}/{name_of(budget)} to be deleted but it wasn't"
            self.recorder.event(pod, WARNING, "NotDeleted", message)
        status = arithmetic.new_status(
            budget,
            healthy=arithmetic.count_healthy(pods, disrupted.pods),
            desired=desired,
            expected=expected,
            disrupted_pods=disrupted.pods,
            now=now,
        )
        if status is not None:
            await self.client.update_status(msgspec.structs.replace(budget, status=status))
        # A moment later than due, or the eviction would just not be overdue yet.
        return disrupted.again + 0.001 if disrupted.again is not None else None

    def _selected(self, budget: PodDisruptionBudget) -> list[Pod]:
        chosen = self.selector_of(budget)
        return [pod for pod in self.pods.in_namespace(key_of(budget).namespace) if chosen.matches(labels_of(pod))]

    # -- how many pods there should be

    async def _scale(self, pods: Sequence[Pod]) -> tuple[int, bool]:
        """The replicas of all owners of the pods, and whether there are pods without an owner."""
        owners: dict[str, int] = {}
        seen: set[str] = set()
        unmanaged = False
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                unmanaged = True
                continue
            if reference.uid in seen:
                continue
            seen.add(reference.uid or "")
            namespace = key_of(pod).namespace
            owner = self._known_owner(reference, namespace) or await self._any_owner(reference, namespace)
            if owner is None:
                raise NoScale(f"found no controllers for pod {quote(name_of(pod))}")
            owners[owner.uid] = owner.replicas
        return sum(owners.values()), unmanaged

    def _known_owner(self, reference: OwnerReference, namespace: str) -> Owner | None:
        """The owner from our caches, which costs nothing."""
        group = (reference.api_version or "").rpartition("/")[0]
        match reference.kind:
            case "ReplicationController" if not group:
                return _owner(self.replication_controllers, reference, namespace)
            case "StatefulSet" if group == "apps":
                return _owner(self.stateful_sets, reference, namespace)
            case "ReplicaSet" if group in ("apps", "extensions"):
                found = self.replica_sets.named(reference.name or "", namespace)
                if found is None or uid_of(found) != reference.uid:
                    return None
                above = controller_of(found)
                if above is not None and above.kind == "Deployment":
                    return _owner(self.deployments, above, namespace)
                return _owner(self.replica_sets, reference, namespace)
        return None

    async def _any_owner(self, reference: OwnerReference, namespace: str) -> Owner | None:
        """The owner by its `scale`, which custom resources may have too."""
        found = await self.scales.resource_of(reference.api_version or "", reference.kind or "")
        if not found.has_scale:
            raise NoScale(f"{found.resource.fullname} does not implement the scale subresource")
        try:
            scale = await self.scales.get(found.resource, reference.name or "", namespace)
        except errors.NotFound:
            return None
        if uid_of(scale) != reference.uid:
            return None
        return Owner(uid_of(scale), (scale.spec.replicas if scale.spec else None) or 0)

    # -- pods that were to be deleted and were not

    def _pod_seen(self, pod: Pod) -> None:
        wait = arithmetic.seconds_to_stale_disruption(pod, self.clock.now())
        if wait is not None:
            self._stale.add_after(key_of(pod), wait)

    async def _clear(self, key: Key) -> float | None:
        """Remove a stale DisruptionTarget of a pod that was not deleted."""
        pod = self.pods.get(key)
        wait = arithmetic.seconds_to_stale_disruption(pod, self.clock.now()) if pod is not None else None
        if pod is None or wait is None:
            return None
        if wait > 0:
            return wait
        changed = copy(pod)
        assert changed.status is not None
        condition = PodCondition(type="DisruptionTarget", status="False", observed_generation=generation_of(pod))
        update_pod_condition(changed.status, condition, rfc3339(self.clock.now()))
        await self.client.update_status(changed)
        return None


def _owner(informer: Informer[Any], reference: OwnerReference, namespace: str) -> Owner | None:
    found = informer.named(reference.name or "", namespace)
    if found is None or uid_of(found) != reference.uid:
        return None
    replicas = found.spec.replicas if found.spec is not None else None
    return Owner(uid_of(found), 1 if replicas is None else replicas)
