"""Keeps `status.used` of every ResourceQuota true.

Woken by: quotas, and objects of the resources that some quota counts, when they come, go, or change what they use.
Writes: the status of quotas. Admission adds what it lets in at once; here everything is counted from what there is.
So what comes is counted a little later: a count at once may not have heard of what was let in just after it, would
take that off again, and let in more than there is room for.

A resource is watched from the moment that a quota counts it: most clusters count few.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pybernetes.api import errors, scheme
from pybernetes.api.core.v1 import ResourceQuota
from pybernetes.api.core.v1.quota import ResourceQuotaSpec
from pybernetes.api.quota import Evaluator, ObjectCount, calculate_usage, evaluator_for
from pybernetes.api.resources import Resource
from pybernetes.client.discovery import discover
from pybernetes.client.event_handlers import Handler
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key, copy

from ..base import Controller
from ..common.meta import meta
from .status import counted

DISCOVERY_AGE: Final = 30.0
"""Seconds that what is served is believed, and between two looks whether it has changed."""
SYNC_TIMEOUT: Final = 30.0
"""Seconds that a count waits for objects it has not seen yet; then others get their turn."""
ADDED_AGE: Final = 1.0
"""Seconds after which what admission has let in is counted here."""

_Kind = tuple[str, str]


class ResourceQuotaController(Controller[ResourceQuota]):
    """Counts."""

    name = "resourcequota-controller"
    kind = ResourceQuota

    def setup(self) -> None:
        """Nothing is watched yet but the quotas."""
        self.workers = self.options.concurrent_resource_quota_syncs
        self.monitors: dict[_Kind, tuple[Informer[Any], Handler[Any]]] = {}
        self._resources: dict[_Kind, Resource] = {}
        self._discovered = float("-inf")

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "resourcequota_primary"

    def concerns(self, old: ResourceQuota | None, new: ResourceQuota | None) -> bool:
        """Whether the spec has changed."""
        return new is not None and (old is None or old.spec != new.spec)

    async def run(self) -> None:
        """Count until cancelled, and again when the server begins or ceases to serve a resource."""
        await self.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_discovery())
            group.create_task(self.work(self.queue, self.reconcile, self.workers))

    async def _follow_discovery(self) -> None:
        while True:
            await self.clock.sleep(DISCOVERY_AGE)
            if not len(self.own):
                continue
            before = self._versions()
            try:
                await self._served()
            except (errors.APIError, OSError, TimeoutError) as error:
                self.log.warning("cannot ask what is served: %s", error)
                continue
            if self._versions() != before:
                for quota in self.own.items():
                    self.enqueue(quota)

    def _versions(self) -> dict[_Kind, str]:
        return {kind: resource.api_version for kind, resource in self._resources.items()}

    async def reconcile(self, key: Key) -> float | None:
        """Count."""
        if self.own.get(key) is None:
            return None
        known = await self._evaluators(self.own.get(key))
        quota = self.own.get(key)
        if quota is None:
            return None
        usage = calculate_usage(
            quota.spec or ResourceQuotaSpec(),
            known,
            lambda each: known[each].in_namespace(key.namespace),
            self.clock.now(),
        )
        status = counted(quota, usage)
        if status is not None:
            changed = copy(quota)
            changed.status = status
            await self.client.update_status(changed)
        # Now and then again: a pod's time to end passes without an event, and a resource may be served only now.
        return self.options.resource_quota_sync_period

    async def _evaluators(self, quota: ResourceQuota | None) -> dict[Evaluator, Informer[Any]]:
        """The evaluators for a quota, and their objects, which are synced when this returns."""
        names = list((quota.spec.hard if quota and quota.spec else None) or ())
        found: dict[Evaluator, Informer[Any]] = {}
        for kind, resource in (await self._served()).items():
            evaluator = evaluator_for(*kind)
            if evaluator is not None and evaluator.matching_resources(names):
                if kind not in self.monitors:
                    self._monitor(kind, resource, evaluator)
                found[evaluator] = self.monitors[kind][0]
        async with asyncio.timeout(SYNC_TIMEOUT):
            for informer in found.values():
                await informer.wait_synced()
        return found

    async def _served(self) -> dict[_Kind, Resource]:
        now = self.clock.monotonic()
        if now - self._discovered >= DISCOVERY_AGE:
            found = await discover(self.client)
            served = found.with_verbs("create", "list", "watch", "delete", namespaced=True)
            if served:
                resources = {(each.group, each.plural): each for each in served}
                for kind in list(self.monitors):
                    if kind not in resources or resources[kind].api_version != self._resources[kind].api_version:
                        await self._unmonitor(kind, found.stale)
                self._resources = resources
                self._discovered = now
        return self._resources

    async def _unmonitor(self, kind: _Kind, stale: list[str]) -> None:
        """Forget a resource that is served no more; one whose server is away stays."""
        resource = self._resources.get(kind)
        known = self.monitors.get(kind)
        if known is not None and resource is not None and resource.api_version not in stale:
            del self.monitors[kind]
            known[1].remove()
            await self.context.informers.release(resource, known[0])

    def _monitor(self, kind: _Kind, resource: Resource, evaluator: Evaluator) -> None:
        if isinstance(evaluator, ObjectCount):
            informer: Informer[Any] = self.context.informers.metadata_informer(resource)
        else:
            known = scheme.resource(resource.group, resource.version, resource.plural)
            assert known is not None
            informer = self.context.informers.informer(known.type)

        def count(obj: Any, after: float = 0.0) -> None:
            self._count(evaluator, meta(obj).namespace or "", after)

        def updated(old: Any, new: Any) -> None:
            if evaluator.changes_usage(old, new, self.clock.now()):
                count(new)

        handler = informer.add_handler(lambda obj: count(obj, ADDED_AGE), updated, count)
        self.monitors[kind] = informer, handler

    def _count(self, evaluator: Evaluator, namespace: str, after: float) -> None:
        for quota in self.own.in_namespace(namespace):
            hard = (quota.spec.hard if quota.spec else None) or {}
            if evaluator.matching_resources(hard):
                self.enqueue(quota, after)
