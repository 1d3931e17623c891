"""Keeps the EndpointSlices of every Service that selects pods.

Woken by: Services, pods they select or selected, nodes that change zones, slices that another client changed. Writes:
slices that it labels as its own. What to write is `plan.py`'s; what it wrote last is in `tracking.py`, because a
cache that has not seen it yet would make it be written again.
"""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node, Pod, Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.client.backoff import ItemBackoff
from pybernetes.client.keys import Key, key_of
from pybernetes.client.workqueue import WorkQueue

from ..base import Controller
from ..common.conditions import find_condition
from ..common.meta import is_deleting, labels_of, meta, name_of
from ..common.pod_control import is_namespace_terminating
from ..common.pods import matching, node_of
from .endpoints import MANAGED_BY_LABEL, SERVICE_NAME_LABEL, ZONE_LABEL
from .hints import Topology
from .packing import Changes
from .plan import CONTROLLER, plan, set_trigger_time
from .selection import PodWatcher
from .tracking import SliceTracker, TriggerTimes, service_key

MIN_SYNC_DELAY: Final = 1.0
"""Seconds before another client's change of a slice is undone: our own writes come by in the meantime."""
_BY_SERVICE: Final = "endpointslice-service"
_TOPOLOGY: Final = Key("", "")
"""Stands in the queue for the zones of all nodes: many nodes that change at once are one look."""


class EndpointSliceController(Controller[Service]):
    """Keeps slices."""

    name = "endpointslice-controller"
    kind = Service

    def setup(self) -> None:
        """Follow pods, nodes and slices."""
        options = self.options
        self.workers = options.concurrent_service_endpoint_syncs
        self.recorder = self.context.events.recorder("endpoint-slice-controller")
        self.topology = Topology()
        self._waiting: dict[str, set[Key]] = {}
        """Services with pods on nodes that are not known yet, by node."""
        self.tracker = SliceTracker()
        self.times = TriggerTimes()
        self.pods = self.informer(Pod)
        self.nodes = self.informer(Node)
        self.nodes.add_handler(self._node_added, self._node_updated, lambda _: self.queue.add(_TOPOLOGY))
        self.slices = self.informer(EndpointSlice)
        self.slices.add_index(_BY_SERVICE, lambda each: [_index(service_key(each))])
        self.slices.add_handler(self._slice_seen, self._slice_updated, self._slice_gone)
        PodWatcher(self.pods, self.own, lambda key: self.enqueue(key, options.endpointslice_updates_batch_period))

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "endpoint_slice"

    def new_queue(self, name: str) -> WorkQueue[Any]:
        """Failures wait for a second at least."""
        return WorkQueue(name, self.clock, backoff=ItemBackoff(1.0, 1000.0), metrics=self.context.metrics)

    async def reconcile(self, key: Key) -> float | None:
        """Write what differs."""
        if key == _TOPOLOGY:
            for service_key_ in self.topology.set_nodes(self.nodes.items()):
                namespace, _, name = service_key_.partition("/")
                self.queue.add(Key(namespace, name))
            return None
        service = self.own.get(key)
        if service is None:
            self.times.forget(key)
            self.tracker.forget(key)
            for family in ("IPv4", "IPv6"):
                self.topology.forget(str(key), family)
            return None
        if service.spec is None or service.spec.type == "ExternalName" or service.spec.selector is None:
            return None
        # An empty selector that is there selects everything, here.
        pods = matching(self.pods.in_namespace(key.namespace), service.spec.selector)
        slices = [
            each
            for each in self.slices.by_index(_BY_SERVICE, _index(key))
            if labels_of(each).get(MANAGED_BY_LABEL) == CONTROLLER and not is_deleting(each)
        ]
        if self.tracker.is_stale(service, slices):
            raise errors.Conflict("", "services", key.name, "EndpointSlice informer cache is out of date")
        time = self.times.compute(service, pods)
        planned = plan(
            service,
            pods,
            self.nodes.named,
            slices,
            self.topology,
            maximum=self.options.max_endpoints_per_slice,
        )
        for event in planned.events:
            self.recorder.event(service, event.type, event.reason, event.message)
        try:
            await self._write(planned.changes, time)
            if planned.skipped:
                for pod in pods:
                    if node_of(pod) and self.nodes.named(node_of(pod)) is None:
                        self._waiting.setdefault(node_of(pod), set()).add(key)
                raise errors.InternalError("; ".join(planned.skipped))
        except errors.APIError as error:
            message = f"Error updating Endpoint Slices for Service {key}: {error}"
            self.recorder.event(service, "Warning", "FailedToUpdateEndpointSlices", message)
            raise
        return None

    def selects(self, owner: Service, obj: Any) -> bool:
        """An empty selector that is there selects everything, here."""
        selector = owner.spec.selector if owner.spec else None
        labels = labels_of(obj)
        return selector is not None and all(labels.get(key) == value for key, value in selector.items())

    async def _write(self, changes: Changes, time: str | None) -> None:
        for each in changes.create:
            set_trigger_time(each, time)
            try:
                self.tracker.wrote(await self.client.create(each))
            except errors.Forbidden as error:
                if is_namespace_terminating(error):
                    return
                raise
        for each in changes.update:
            set_trigger_time(each, time)
            self.tracker.wrote(await self.client.update(each))
        for each in changes.delete:
            try:
                await self.client.delete(EndpointSlice, name_of(each), meta(each).namespace or "")
            except errors.NotFound:
                pass
            self.tracker.deleted(each)

    # -- being woken

    def _wake(self, each: EndpointSlice) -> None:
        key = service_key(each)
        if key.name:
            self.enqueue(key, max(MIN_SYNC_DELAY, self.options.endpointslice_updates_batch_period))

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

    def _node_added(self, node: Node) -> None:
        self.queue.add(_TOPOLOGY)
        for key in self._waiting.pop(name_of(node), ()):
            self.queue.add(key)

    def _node_updated(self, old: Node, new: Node) -> None:
        moved = labels_of(old).get(ZONE_LABEL) != labels_of(new).get(ZONE_LABEL)
        if moved:
            for pod in self.pods.items():
                if node_of(pod) == name_of(new):
                    self._wake_selecting(pod)
        if moved or _is_ready(old) != _is_ready(new):
            self.queue.add(_TOPOLOGY)

    def _wake_selecting(self, pod: Pod) -> None:
        for service in self.selecting(pod):
            self.queue.add(key_of(service))


def _is_ours(each: EndpointSlice) -> bool:
    return labels_of(each).get(MANAGED_BY_LABEL) == CONTROLLER


def _is_ready(node: Node) -> bool:
    condition = find_condition(node.status.conditions if node.status else None, "Ready")
    return condition is not None and condition.status == "True"


def _index(key: Key) -> str:
    return str(key)
