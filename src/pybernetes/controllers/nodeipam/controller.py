"""Gives each node a range of pod addresses from each network of the cluster.

Runs with `--allocate-node-cidrs`. Woken by: nodes. Writes: `spec.podCIDRs` of nodes, once for each: the API does not
let them change. What nodes have is read before the first range is given, so a restart gives nothing twice; the range
of a node that is deleted is free again. A node with a range that is not of the cluster's gets an event, the others
get their ranges.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node
from pybernetes.client.events import WARNING
from pybernetes.client.keys import Key, key_of, uid_of
from pybernetes.client.metrics import Counter

from ..base import Controller
from ..common.consistency import CHECK_AGAIN, Consistency
from ..common.meta import is_deleting
from ..common.nodes import node_reference, tell_status
from .allocator import RangeAllocator, ranges_of
from .cidrset import CIDRError
from .settings import check_allocator, settings

WORKERS: Final = 30
LOOK_AGAIN: Final = 60.0
"""Seconds after which a node without a range gets the event again; a range that becomes free wakes it at once."""


class NodeIpamController(Controller[Node]):
    """Allocates ranges. Without the flag it asks for no cache and does nothing."""

    name = "node-ipam-controller"
    workers = WORKERS

    def setup(self) -> None:
        """Read the flags."""
        self.allocator: RangeAllocator | None = None
        check_allocator(self.options.cidr_allocator_type)
        if not self.options.allocate_node_cidrs:
            return
        self.recorder = self.context.events.recorder("cidrAllocator")
        self.allocator = RangeAllocator(settings(self.options))
        self.nodes = self.informer(Node)
        self.nodes.add_handler(self._seen, self._updated, self._gone)
        self.consistency = Consistency()
        self.given: dict[str, list[str]] = {}
        """Ranges by uid of nodes on which they were not yet seen."""
        self.waiting: set[Key] = set()
        """Nodes for which there was no range."""
        self._make_metrics()

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "cidrallocator_node"

    async def run(self) -> None:
        """Take what nodes have, then give to the others."""
        if self.allocator is None:
            return
        await self.wait_synced()
        for node in self.nodes.items():
            self._occupy(node)
        self._count()
        await self.work(self.queue, self.reconcile, self.workers)

    async def reconcile(self, key: Key) -> float | None:
        """Give a node its ranges."""
        assert self.allocator is not None
        node = self.nodes.get(key)
        if node is None or is_deleting(node):
            self.waiting.discard(key)
            return None
        if not self.consistency.ready(key):
            return CHECK_AGAIN
        if ranges_of(node):
            self._has(node)
            return None
        ranges = self.given.get(uid_of(node))
        if ranges is None:
            try:
                ranges = self.allocator.allocate()
            except CIDRError as error:
                self.log.warning("node %s: %s", key, error)
                tell_status(self.recorder, node, "CIDRNotAvailable")
                self.waiting.add(key)
                return LOOK_AGAIN
            self.waiting.discard(key)
            self.given[uid_of(node)] = ranges
            self._count(self._allocations)
        await self._write(key, node, ranges)
        return None

    async def _write(self, key: Key, node: Node, ranges: list[str]) -> None:
        # With the uid: another node of this name is no concern of these ranges.
        patch = {"metadata": {"uid": uid_of(node)}, "spec": {"podCIDR": ranges[0], "podCIDRs": ranges}}
        try:
            updated = await self.client.patch(Node, key.name, patch, type="strategic")
        except (errors.NotFound, errors.Conflict, errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
            # The server has refused. After any other error the outcome is unknown, and the same ranges are tried again.
            if not isinstance(error, errors.NotFound):
                tell_status(self.recorder, node, "CIDRAssignmentFailed")
            self._give_back(self.given.pop(uid_of(node), []))
            raise
        self.log.info("node %s has %s", key, ranges)
        self.consistency.wrote(key, self.nodes, updated)

    def _has(self, node: Node) -> None:
        """The node has ranges: ours, or some that others gave."""
        assert self.allocator is not None
        given = self.given.pop(uid_of(node), None)
        if given is not None and given != ranges_of(node):
            self._give_back(given)
        self.waiting.discard(key_of(node))
        self._occupy(node)
        self._count()

    def _occupy(self, node: Node) -> None:
        """Mark the node's ranges as used. A range outside of ours is left alone, and the node gets an event."""
        assert self.allocator is not None
        try:
            self.allocator.occupy(node)
        except CIDRError as error:
            self.log.error("%s", error)
            self.recorder.event(node_reference(node), WARNING, "InvalidPodCIDR", str(error))

    def _seen(self, node: Node) -> None:
        self.queue.add(key_of(node))

    def _updated(self, old: Node, new: Node) -> None:
        if uid_of(old) != uid_of(new):
            self._gone(old)
        if not ranges_of(new) or ranges_of(old) != ranges_of(new):
            self.queue.add(key_of(new))

    def _gone(self, node: Node) -> None:
        self.consistency.forget(key_of(node))
        self.waiting.discard(key_of(node))
        given = self.given.pop(uid_of(node), [])
        self._give_back(ranges_of(node) or given)

    def _give_back(self, ranges: list[str]) -> None:
        """Free ranges, and wake who waits for some."""
        assert self.allocator is not None
        if not ranges:
            return
        self.allocator.release(ranges)
        self._count(self._releases)
        for key in self.waiting:
            self.queue.add(key)

    def _make_metrics(self) -> None:
        metrics, prefix, of = self.context.metrics, "node_ipam_controller_", ("clusterCIDR",)
        self._allocations = metrics.counter(
            f"{prefix}cidrset_cidrs_allocations_total", "Counter measuring total number of CIDR allocations.", of
        )
        self._releases = metrics.counter(
            f"{prefix}cidrset_cidrs_releases_total", "Counter measuring total number of CIDR releases.", of
        )
        self._usage = metrics.gauge(
            f"{prefix}cidrset_usage_cidrs", "Gauge measuring percentage of allocated CIDRs.", of
        )
        size = metrics.gauge(f"{prefix}cirdset_max_cidrs", "Maximum number of CIDRs that can be allocated.", of)
        assert self.allocator is not None
        for each in self.allocator.sets:
            size.set(each.size, str(each.network))
        self._count()

    def _count(self, change: Counter | None = None) -> None:
        assert self.allocator is not None
        for each in self.allocator.sets:
            if change is not None:
                change.inc(str(each.network))
            self._usage.set(each.used / each.size, str(each.network))
