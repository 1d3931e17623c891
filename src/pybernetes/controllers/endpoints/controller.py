"""Keeps one Endpoints object of the name of each Service that selects pods.

Woken by: Services, pods they select or selected, and deleted Endpoints. Writes: Endpoints, which it labels as its own.
Services without a selector have Endpoints of other writers.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Endpoints, Pod, Service
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.keys import Key, copy, key_of

from ..base import Controller
from ..common.meta import annotations_of, labels_of, meta, name_of
from ..common.pod_control import is_namespace_terminating
from ..common.pods import matching
from ..endpointslice.endpoints import HEADLESS_LABEL, is_headless
from ..endpointslice.plan import TRIGGER_TIME
from ..endpointslice.selection import PodWatcher
from ..endpointslice.tracking import TriggerTimes
from .subsets import same_subsets, subsets_of, truncate

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
CONTROLLER: Final = "endpoint-controller"
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"


class EndpointsController(Controller[Service]):
    """Keeps Endpoints."""

    name = "endpoints-controller"
    kind = Service

    def setup(self) -> None:
        """Follow pods and Endpoints."""
        self.workers = self.options.concurrent_endpoint_syncs
        self.recorder = self.context.events.recorder(CONTROLLER)
        self.pods = self.informer(Pod)
        self.endpoints = self.informer(Endpoints)
        self.endpoints.add_handler(self._leftover, None, lambda gone: self.queue.add(key_of(gone)))
        self.times = TriggerTimes()
        self._stale: dict[Key, str] = {}
        """The revision that our last update has replaced: a cache that still shows it is behind."""
        PodWatcher(self.pods, self.own, lambda key: self.enqueue(key, self.options.endpoint_updates_batch_period))

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "endpoint"

    def _leftover(self, found: Endpoints) -> None:
        """Endpoints whose service was deleted while no controller ran are found at the start."""
        if LEADER not in annotations_of(found) and not self.endpoints.has_synced:
            self.queue.add(key_of(found))

    async def reconcile(self, key: Key) -> float | None:
        """Write the Endpoints of a service if they are not what its pods are."""
        service = self.own.get(key)
        if service is None:
            await self._delete(key)
            return None
        spec = service.spec
        if spec is None or spec.type == "ExternalName" or spec.selector is None:
            return None
        pods = matching(self.pods.in_namespace(key.namespace), spec.selector) if spec.selector else []
        time = self.times.compute(service, pods)
        current = self.endpoints.get(key)
        if current is not None and self._stale.get(key) == meta(current).resource_version:
            raise errors.Conflict("", "endpoints", key.name, "the cache is behind our last update")
        desired = subsets_of(service, pods)
        if current is not None and self._is_right(current, service) and same_subsets(current.subsets, desired):
            return None
        changed = self._changed(service, current)
        subsets, cut = truncate(desired)
        changed.subsets = subsets or None
        annotations = {
            name: value for name, value in annotations_of(changed).items() if name not in (TRIGGER_TIME, OVER_CAPACITY)
        }
        if time is not None:
            annotations[TRIGGER_TIME] = time
        if cut:
            annotations[OVER_CAPACITY] = "truncated"
        meta(changed).annotations = annotations or None
        await self._write(service, current, changed)
        return None

    async def _delete(self, key: Key) -> None:
        self.times.forget(key)
        self._stale.pop(key, None)
        if self.endpoints.get(key) is None:
            return
        try:
            await self.client.delete(Endpoints, key.name, key.namespace)
        except errors.NotFound:
            return

    async def _write(self, service: Service, current: Endpoints | None, changed: Endpoints) -> None:
        key = key_of(service)
        try:
            if current is None:
                await self.client.create(changed)
            else:
                written = await self.client.update(changed)
                if meta(written).resource_version != meta(current).resource_version:
                    self._stale[key] = meta(current).resource_version or ""
        except errors.APIError as error:
            if current is None and is_namespace_terminating(error):
                return
            if current is None:
                message = f"Failed to create endpoint for service {key}: {error}"
                self.recorder.event(changed, "Warning", "FailedToCreateEndpoint", message)
            else:
                message = f"Failed to update endpoint {key}: {error}"
                self.recorder.event(changed, "Warning", "FailedToUpdateEndpoint", message)
            raise

    def _is_right(self, current: Endpoints, service: Service) -> bool:
        """Whether labels and annotations are as they should be."""
        return labels_of(current) == _labels(service) and OVER_CAPACITY not in annotations_of(current)

    def _changed(self, service: Service, current: Endpoints | None) -> Endpoints:
        metadata = ObjectMeta(name=name_of(service), namespace=meta(service).namespace)
        changed = Endpoints(metadata=metadata) if current is None else copy(current)
        meta(changed).labels = _labels(service)
        return changed


def _labels(service: Service) -> dict[str, str]:
    labels = {key: value for key, value in labels_of(service).items() if key != HEADLESS_LABEL}
    if is_headless(service):
        labels[HEADLESS_LABEL] = ""
    labels[MANAGED_BY] = CONTROLLER
    return labels
