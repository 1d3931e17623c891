"""Keeps `status.used` of every ResourceQuota true.

Woken by: quotas, and objects of the resources that some quota counts, when they come, go, or change what they use.
Writes: the status of quotas. Admission adds what it lets in at once; here everything is counted from what there is.

A resource is watched from the moment that a quota counts it: most clusters count few.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pybernetes.api import scheme
from pybernetes.api.core.v1 import ResourceQuota
from pybernetes.api.core.v1.quota import ResourceQuotaSpec
from pybernetes.api.quota import Evaluator, ObjectCount, calculate_usage, evaluator_for
from pybernetes.api.resources import Resource
from pybernetes.client.discovery import discover
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key, copy, key_of

from ..base import Controller
from ..meta import meta
from .status import counted

DISCOVERY_AGE: Final = 30.0
"""Seconds that what is served is believed."""

_Kind = tuple[str, str]


class ResourceQuotaController(Controller[ResourceQuota]):
    """Counts."""

    name = "resourcequota-controller"
    kind = ResourceQuota

    def setup(self) -> None:
        """Nothing is watched yet but the quotas."""
        self.workers = self.options.concurrent_resource_quota_syncs
        self.monitors: dict[_Kind, Informer[Any]] = {}
        self._resources: dict[_Kind, Resource] = {}
        self._discovered = float("-inf")

    def queue_name(self) -> str:
        """As upstream."""
        return "resourcequota_primary"

    def concerns(self, old: ResourceQuota | None, new: ResourceQuota | None) -> bool:
        """What is counted has changed."""
        return new is not None and (old is None or old.spec != new.spec)

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
            lambda each: self.monitors[each.group, each.plural].in_namespace(key.namespace),
            self.clock.now(),
        )
        status = counted(quota, usage)
        if status is not None:
            changed = copy(quota)
            changed.status = status
            await self.client.update_status(changed)
        # Now and then again: a pod's time to end passes without an event, and a resource may be served only now.
        return self.options.resource_quota_sync_period

    async def _evaluators(self, quota: ResourceQuota | None) -> list[Evaluator]:
        """Who counts for a quota; their objects are known when this returns."""
        names = list((quota.spec.hard if quota and quota.spec else None) or ())
        found = []
        for kind, resource in (await self._served(names)).items():
            evaluator = evaluator_for(*kind)
            if evaluator is not None and evaluator.matching_resources(names):
                found.append(evaluator)
                if kind not in self.monitors:
                    self._monitor(kind, resource, evaluator)
        for evaluator in found:
            await self.monitors[evaluator.group, evaluator.plural].wait_synced()
        return found

    async def _served(self, names: Iterable[str]) -> dict[_Kind, Resource]:
        now = self.clock.monotonic()
        if now - self._discovered > DISCOVERY_AGE:
            served = (await discover(self.client)).with_verbs("create", "list", "watch", "delete", namespaced=True)
            self._resources = {(each.group, each.plural): each for each in served}
            self._discovered = now
        return self._resources

    def _monitor(self, kind: _Kind, resource: Resource, evaluator: Evaluator) -> None:
        if isinstance(evaluator, ObjectCount):
            informer: Informer[Any] = self.context.informers.metadata_informer(resource)
        else:
            known = scheme.resource(resource.group, resource.version, resource.plural)
            assert known is not None
            informer = self.context.informers.informer(known.type)

        def one(obj: Any) -> None:
            self._replenish(evaluator, meta(obj).namespace or "")

        def updated(old: Any, new: Any) -> None:
            if evaluator.changes_usage(old, new, self.clock.now()):
                one(new)

        self.monitors[kind] = informer
        informer.add_handler(one, updated, one)

    def _replenish(self, evaluator: Evaluator, namespace: str) -> None:
        for quota in self.own.in_namespace(namespace):
            hard = (quota.spec.hard if quota.spec else None) or {}
            if evaluator.matching_resources(hard):
                self.queue.add(key_of(quota))
