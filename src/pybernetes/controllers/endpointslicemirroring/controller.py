"""Mirrors Endpoints of Services without a selector into EndpointSlices.

Woken by: Endpoints, their Services, and its slices when another client changed them. Writes: slices that it labels as
its own; they go when the Endpoints or the Service go, or when the Service gets a selector.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Endpoints, Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.client.backoff import ItemBackoff
from pybernetes.client.keys import Key, key_of
from pybernetes.client.workqueue import WorkQueue

from ..base import Controller
from ..common.meta import labels_of, meta, name_of
from ..common.pod_control import is_namespace_terminating
from ..endpointslice.endpoints import MANAGED_BY_LABEL, SERVICE_NAME_LABEL
from ..endpointslice.packing import Changes
from ..endpointslice.tracking import SliceTracker, service_key
from .plan import CONTROLLER, plan, should_mirror

_BY_SERVICE: Final = "endpointslice-service"


class EndpointSliceMirroringController(Controller[Endpoints]):
    """Mirrors Endpoints."""

    name = "endpointslice-mirroring-controller"
    kind = Endpoints

    def setup(self) -> None:
        """Follow services and slices."""
        self.workers = self.options.mirroring_concurrent_service_endpoint_syncs
        self.recorder = self.context.events.recorder("endpoint-slice-mirroring-controller")
        self.tracker = SliceTracker()
        self.services = self.informer(Service)
        self.services.add_handler(self._service_seen, self._service_updated, self._service_seen)
        self.slices = self.informer(EndpointSlice)
        self.slices.add_index(_BY_SERVICE, lambda each: [str(service_key(each))])
        self.slices.add_handler(self._slice_seen, self._slice_updated, self._slice_gone)

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "endpoint_slice_mirroring"

    def new_queue(self, name: str) -> WorkQueue[Any]:
        """Failures wait for a second at least."""
        return WorkQueue(name, self.clock, backoff=ItemBackoff(1.0, 100.0), metrics=self.context.metrics)

    def concerns(self, old: Endpoints | None, new: Endpoints | None) -> bool:
        """Only those that are, or were, to be mirrored."""
        return (old is not None and should_mirror(old)) or (new is not None and should_mirror(new))

    async def reconcile(self, key: Key) -> float | None:
        """Write what differs; delete what is no longer to be mirrored."""
        endpoints, service = self.own.get(key), self.services.get(key)
        mirrored = [each for each in self.slices.by_index(_BY_SERVICE, str(key)) if _is_ours(each)]
        if (
            endpoints is None
            or not should_mirror(endpoints)
            or service is None
            or (service.spec is not None and service.spec.selector is not None)
        ):
            self.tracker.forget(key)
            await self._write(Changes(delete=mirrored))
            self.tracker.forget(key)
            return None
        if self.tracker.is_stale(service, mirrored):
            raise errors.Conflict("", "endpoints", key.name, "EndpointSlice informer cache is out of date")
        maximum = self.options.mirroring_max_endpoints_per_subset
        planned = plan(endpoints, mirrored, maximum=maximum)
        if planned.invalid:
            message = f"Skipped {planned.invalid} invalid IP addresses when mirroring to EndpointSlices"
            self.recorder.event(endpoints, "Warning", "InvalidIPAddress", message)
        if planned.skipped > planned.invalid:
            message = (
                f"A max of {maximum} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{planned.skipped} addresses were skipped"
            )
            self.recorder.event(endpoints, "Warning", "TooManyAddressesToMirror", message)
        await self._write(planned.changes)
        return None

    async def _write(self, changes: Changes) -> None:
        for each in changes.create:
            try:
                self.tracker.wrote(await self.client.create(each))
            except errors.Forbidden as error:
                if is_namespace_terminating(error):
                    return
                raise
        for each in changes.update:
            self.tracker.wrote(await self.client.update(each))
        for each in changes.delete:
            with contextlib.suppress(errors.NotFound):
                await self.client.delete(EndpointSlice, name_of(each), meta(each).namespace or "")
            self.tracker.deleted(each)

    # -- being woken

    def _service_seen(self, service: Service) -> None:
        if service.spec is None or service.spec.selector is None:
            self.queue.add(key_of(service))

    def _service_updated(self, old: Service, new: Service) -> None:
        if _selects(old) != _selects(new):
            self.queue.add(key_of(new))

    def _wake(self, each: EndpointSlice) -> None:
        key = service_key(each)
        if key.name:
            self.enqueue(key, self.options.mirroring_endpointslice_updates_batch_period)

    def _slice_seen(self, each: EndpointSlice) -> None:
        if _is_ours(each) and self.tracker.is_news(each):
            self._wake(each)

    def _slice_updated(self, old: EndpointSlice, new: EndpointSlice) -> None:
        if labels_of(old).get(SERVICE_NAME_LABEL) != labels_of(new).get(SERVICE_NAME_LABEL):
            self._wake(old)
            self._wake(new)
        elif _is_ours(old) != _is_ours(new):
            self._wake(new)
        else:
            self._slice_seen(new)

    def _slice_gone(self, each: EndpointSlice) -> None:
        if _is_ours(each) and not self.tracker.expected(each):
            self._wake(each)


def _is_ours(each: EndpointSlice) -> bool:
    return labels_of(each).get(MANAGED_BY_LABEL) == CONTROLLER


def _selects(service: Service) -> bool:
    return service.spec is not None and service.spec.selector is not None
