"""Deletes everything in a namespace that is being deleted, then takes the `kubernetes` finalizer off it.

Woken by: namespaces with a deletion timestamp, five seconds after they were seen: by then every API server has noticed
and refuses new content. Writes: deletes all namespaced resources, custom ones too; the namespace's status, finalizer.

Pods go first, and the rest only when no pod is left: a pod that ends may still need its Secrets and its policies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Namespace, NamespaceSpec, NamespaceStatus, Pod
from pybernetes.api.meta.v1 import PartialObjectMetadata
from pybernetes.api.resources import Resource
from pybernetes.api.times import rfc3339
from pybernetes.client.backoff import ItemBackoff
from pybernetes.client.discovery import Discovery, discover
from pybernetes.client.keys import Key, copy, key_of, uid_of
from pybernetes.client.metadata import MetadataClient
from pybernetes.client.workqueue import WorkQueue

from ..base import Controller
from ..common.meta import is_deleting, meta, name_of, seconds
from ..common.pods import is_terminal
from .conditions import Findings, update_conditions

FINALIZER: Final = "kubernetes"
FINALIZER_ESTIMATE: Final = 15
"""Seconds that another controller's finalizer is given before the next look."""
_AT_ONCE: Final = 10
"""Resources that are emptied at the same time."""


class NamespaceController(Controller[Namespace]):
    """Empties namespaces."""

    name = "namespace-controller"
    kind = Namespace
    grace_period = 5.0

    def setup(self) -> None:
        """Wait before the first look at a namespace."""
        self.workers = self.options.concurrent_namespace_syncs
        self.metadata = MetadataClient(self.client)
        self.own.add_handler(self._seen, lambda _, new: self._seen(new), resync=self.options.namespace_sync_period)

    def concerns(self, old: Namespace | None, new: Namespace | None) -> bool:
        """Never at once: `_seen` waits."""
        return False

    def new_queue(self, name: str) -> WorkQueue[Any]:
        """Content that keeps being refused is tried again every minute at least."""
        return WorkQueue(name, self.clock, backoff=ItemBackoff(longest=60.0), metrics=self.context.metrics)

    def _seen(self, namespace: Namespace) -> None:
        if is_deleting(namespace):
            self.queue.add_after(key_of(namespace), self.grace_period)

    async def reconcile(self, key: Key) -> float | None:
        """Delete what can be deleted now."""
        if self.own.get(key) is None:
            return None
        try:
            namespace = await self.client.get(Namespace, key.name)
            namespace = await self._mark_terminating(namespace)
            if not is_deleting(namespace) or not (namespace.spec and namespace.spec.finalizers):
                return None
            findings, estimate = await self._delete_all_content(namespace)
            await self._report(namespace, findings)
            if findings.failed():
                raise errors.InternalError(_aggregate(findings))
            if estimate:
                return estimate // 2 + 1
            await self._finalize(namespace)
        except errors.NotFound:
            return None
        return None

    async def _mark_terminating(self, namespace: Namespace) -> Namespace:
        while is_deleting(namespace) and (namespace.status is None or namespace.status.phase != "Terminating"):
            changed = copy(namespace)
            changed.status = changed.status or NamespaceStatus()
            changed.status.phase = "Terminating"
            try:
                return await self.client.update_status(changed)
            except errors.Conflict:
                namespace = await self._again(namespace)
        return namespace

    async def _finalize(self, namespace: Namespace) -> None:
        while True:
            finalizers = (namespace.spec.finalizers if namespace.spec else None) or []
            rest = sorted({each for each in finalizers if each != FINALIZER})
            changed = Namespace(metadata=namespace.metadata, spec=NamespaceSpec(finalizers=rest))
            try:
                await self.client.update(changed, subresource="finalize")
                return
            except errors.Conflict:
                namespace = await self._again(namespace)

    async def _again(self, namespace: Namespace) -> Namespace:
        """The namespace as it is now; another one of the same name is none of our business."""
        live = await self.client.get(Namespace, name_of(namespace))
        if uid_of(live) != uid_of(namespace):
            raise errors.NotFound("", "namespaces", name_of(namespace))
        return live

    async def _report(self, namespace: Namespace, findings: Findings) -> None:
        current = namespace.status.conditions if namespace.status else None
        conditions = update_conditions(current, findings, rfc3339(self.clock.now()))
        if conditions is None:
            return
        changed = copy(namespace)
        changed.status = changed.status or NamespaceStatus()
        changed.status.conditions = conditions
        try:
            written = await self.client.update_status(changed)
            meta(namespace).resource_version = meta(written).resource_version
        except errors.Conflict as error:  # the next look says it
            self.log.debug("%s: conditions: %s", name_of(namespace), error)

    async def _delete_all_content(self, namespace: Namespace) -> tuple[Findings, int]:
        """Delete the namespace's objects; the findings, and seconds until the rest may be gone (0 if nothing is
        left)."""
        findings = Findings()
        resources = await self._discover(findings)
        pods = [each for each in resources if (each.group, each.plural) == ("", "pods")]
        estimate = await self._delete_each(namespace, pods, findings)
        if not findings.remaining and not findings.failures:
            others = [each for each in resources if each not in pods]
            for start in range(0, len(others), _AT_ONCE):
                part = others[start : start + _AT_ONCE]
                estimate = max(estimate, await self._delete_each(namespace, part, findings))
        return findings, estimate

    async def _discover(self, findings: Findings) -> Iterable[Resource]:
        try:
            found: Discovery = await discover(self.client)
        except errors.APIError as error:
            findings.discovery = str(error)
            return []
        if found.stale:
            stale = ", ".join(f"{each}: stale GroupVersion discovery: {each}" for each in sorted(found.stale))
            findings.discovery = (
                f"Discovery failed for some groups, {len(found.stale)} failing: "
                f"unable to retrieve the complete list of server APIs: {stale}"
            )
        return found.with_verbs("delete", namespaced=True)

    async def _delete_each(self, namespace: Namespace, resources: Iterable[Resource], findings: Findings) -> int:
        return max(
            await asyncio.gather(*(self._delete_resource(namespace, each, findings) for each in resources)), default=0
        )

    async def _delete_resource(self, namespace: Namespace, resource: Resource, findings: Findings) -> int:
        try:
            return await self._try_resource(namespace, resource, findings)
        except (errors.APIError, OSError, TimeoutError) as error:
            findings.failures.append(str(error))
            return 0

    async def _try_resource(self, namespace: Namespace, resource: Resource, findings: Findings) -> int:
        name = name_of(namespace)
        items = await self._list(resource, name)
        if not items:
            return 0
        estimate = await self._estimate(namespace, resource)
        await self._delete_items(resource, name, items)
        left = await self._list(resource, name)
        if not left:
            return 0
        findings.remaining[resource.plural, resource.group] = len(left)
        held = False
        for each in left:
            for finalizer in meta(each).finalizers or ():
                held = True
                findings.finalizers[finalizer] = findings.finalizers.get(finalizer, 0) + 1
        if estimate:
            return estimate
        if held:
            return FINALIZER_ESTIMATE
        gvr = f"{resource.group}/{resource.version}, Resource={resource.plural}"
        findings.failures.append(f"unexpected items still remain in namespace: {name} for gvr: {gvr}")
        return 0

    async def _list(self, resource: Resource, namespace: str) -> list[PartialObjectMetadata]:
        if "list" not in resource.verbs:
            return []
        try:
            return list((await self.metadata.list(resource, namespace)).items or ())
        except (errors.NotFound, errors.MethodNotSupported):
            return []  # gone since it was discovered

    async def _delete_items(self, resource: Resource, namespace: str, items: list[PartialObjectMetadata]) -> None:
        if "deletecollection" in resource.verbs:
            try:
                await self.metadata.delete_collection(resource, namespace, propagation_policy="Background")
                return
            except (errors.NotFound, errors.MethodNotSupported):
                pass
        for each in items:
            try:
                await self.metadata.delete(resource, name_of(each), namespace, propagation_policy="Background")
            except (errors.NotFound, errors.MethodNotSupported):
                continue

    async def _estimate(self, namespace: Namespace, resource: Resource) -> int:
        """How long pods may take to end, until they have had that time since the namespace was deleted."""
        if (resource.group, resource.plural) != ("", "pods"):
            return 0
        pods = (await self.client.list(Pod, name_of(namespace))).items or ()
        graces = (
            each.spec.termination_grace_period_seconds or 0 for each in pods if each.spec and not is_terminal(each)
        )
        estimate = max(graces, default=0)
        passed = self.clock.now() - seconds(meta(namespace).deletion_timestamp)
        return 0 if passed >= estimate else estimate


def _aggregate(findings: Findings) -> str:
    texts = [each for each in (findings.discovery, findings.group_version) if each] + findings.failures
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
