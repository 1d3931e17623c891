"""Keeps as many pods alive as a ReplicaSet asks for.

Woken by: its ReplicaSet, pods it owns, orphans that match. Writes: pods, its own status.
Creates in doubling batches (1, 2, 4, ...) so that a quota refusal costs one request, not hundreds; at most 500 at a
time, and nothing more before all of them have been seen. `replicationcontroller.py` runs the same loop.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from pybernetes.api import errors
from pybernetes.api.apps.v1 import ReplicaSet
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.core.v1.replicationcontroller import ReplicationController
from pybernetes.api.labels import SelectorError
from pybernetes.client.keys import Key, controller_of, controller_reference, is_controlled_by, uid_of
from pybernetes.component import klog

from .base import Controller, adopts, owns
from .common.consistency import CHECK_AGAIN, Consistency
from .common.meta import is_deleting, labels_of, meta
from .common.ownership import claim
from .common.pod_control import PodControl, first_failure, is_namespace_terminating, slow_start
from .common.pod_ranks import pods_to_delete
from .common.pods import is_active, is_terminating, next_availability_check, pod_from_template
from .common.replicas import BURST_REPLICAS, calculate_status, min_ready_seconds, missing, selector_of, template_of
from .common.status import update_status

O = TypeVar("O", ReplicaSet, ReplicationController)  # noqa: E741


class ReplicaController(Controller[O]):
    """The loop that both kinds share."""

    watches = (owns(Pod), adopts(Pod))
    burst = BURST_REPLICAS

    def setup(self) -> None:
        self.pods = self.informer(Pod)
        self.pod_control = PodControl(self.client, self.recorder)
        self.consistency = Consistency()

    async def reconcile(self, key: Key) -> float | None:
        found = self.own.get(key)
        if found is None:
            self.expectations.forget(key)
            self.consistency.forget(key)
            return None
        owner: O = found
        if not self.consistency.ready(key):
            return CHECK_AGAIN
        # Asked before the pods are listed: what is seen later must not count as seen now.
        settled = self.expectations.satisfied(key)
        try:
            selector = selector_of(owner)
        except SelectorError as error:
            self.log.error("%s: %s", key, error)
            return None
        everything = [*self.pods.controlled_by(owner), *self.pods.orphans(key.namespace)]
        active = await claim(
            self.client, owner, filter(is_active, everything), lambda pod: selector.matches(labels_of(pod))
        )
        terminating = [
            pod
            for pod in everything
            if is_terminating(pod) and is_controlled_by(pod, owner) and selector.matches(labels_of(pod))
        ]
        failure = None
        if settled and not is_deleting(owner):
            failure = await self._manage(key, owner, active)
        now = self.clock.now()
        status = calculate_status(owner, active, terminating, failure, now)
        updated = await update_status(self.client, owner, status)
        if updated is not None:
            self.consistency.wrote(key, self.own, updated)
        if failure is not None:
            raise failure
        if (status.ready_replicas or 0) == (status.available_replicas or 0):
            return None
        wait = min_ready_seconds(owner)
        return next_availability_check(active, wait, now) or float(wait)

    async def _manage(self, key: Key, owner: O, active: list[Pod]) -> Exception | None:
        """Make or delete pods; why that could not be done, if so."""
        change = missing(owner, active, self.burst)
        if change > 0:
            klog.info(self.log, 2, "Too few replicas", replicaSet=key, need=len(active) + change, creating=change)
            return await self._create(key, owner, change)
        if change < 0:
            klog.info(self.log, 2, "Too many replicas", replicaSet=key, need=len(active) + change, deleting=-change)
            return await self._delete(key, owner, active, -change)
        return None

    async def _create(self, key: Key, owner: O, count: int) -> Exception | None:
        self.expectations.expect_creations(key, count)
        template, reference = template_of(owner), controller_reference(owner)

        async def create(_: int) -> None:
            pod = pod_from_template(template, key.namespace, key.name, reference)
            try:
                await self.pod_control.create(pod, owner)
            except errors.APIError as error:
                if not is_namespace_terminating(error):
                    raise
                # No pod will come, and none is needed: as good as made, but for what we wait to see.
                self.expectations.creation_observed(key)

        successes, failure = await slow_start(count, create)
        if successes < count:
            self.expectations.creation_observed(key, count - successes)
        return failure

    async def _delete(self, key: Key, owner: O, active: list[Pod], count: int) -> Exception | None:
        victims = pods_to_delete(active, self._related(owner), count, self.clock.now())
        self.expectations.expect_deletions(key, map(uid_of, victims))

        async def delete(pod: Pod) -> None:
            try:
                await self.pod_control.delete(pod, owner)
            except (errors.APIError, OSError, TimeoutError) as error:
                self.expectations.deletion_observed(key, uid_of(pod))
                if not isinstance(error, errors.NotFound):
                    raise

        return first_failure(await asyncio.gather(*map(delete, victims), return_exceptions=True))

    def _related(self, owner: O) -> list[Pod]:
        """The pods of all sets with the same controller: company of an old pod on a node is a new pod too."""
        reference = controller_of(owner)
        if reference is None:
            return []
        siblings = (each for each in self.own.in_namespace(meta(owner).namespace or "") if _has(each, reference.uid))
        return [pod for each in siblings for pod in self.pods.controlled_by(each)]


def _has(obj: ReplicaSet | ReplicationController, uid: str | None) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference.uid == uid


class ReplicaSetController(ReplicaController[ReplicaSet]):
    """Keeps as many pods alive as a ReplicaSet asks for."""

    name = "replicaset-controller"
    kind = ReplicaSet

    def setup(self) -> None:
        super().setup()
        self.workers = self.options.concurrent_replicaset_syncs
