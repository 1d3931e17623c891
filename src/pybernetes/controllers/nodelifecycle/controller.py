"""Notices nodes that are not well, and keeps pods away from them.

Woken by: nodes (their NoSchedule taints follow from their conditions at once), pods that come to a node, and every
few seconds by itself: a node of which neither status nor Lease has changed for `--node-monitor-grace-period` gets the
condition Ready=Unknown, and its pods are marked not ready, so that no Service sends them anything. Lost nodes get
NoExecute taints, at a rate that depends on how their zone is doing (`zones.py`); the pods are then evicted by the
taint eviction controller. Writes: status, taints and labels of nodes, status of pods.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from pybernetes.api import errors
from pybernetes.api.coordination.v1 import Lease
from pybernetes.api.core.podconditions import find_pod_condition
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.times import rfc3339
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.keys import Key, copy, key_of, uid_of
from pybernetes.trace import recorder
from pybernetes.trace.recorder import CURRENT, Cause

from ..base import Controller
from ..common.meta import labels_of, name_of
from ..common.nodes import (
    change_taints,
    has_taint,
    index_by_node,
    node_condition,
    node_reference,
    pods_on,
    tell_status,
    zone_of,
)
from ..common.pods import node_of
from ..common.time_slices import in_slices
from .evictor import Evictor
from .health import Health, is_silent, observe, silent
from .marks import label_changes, no_execute_taints, no_schedule_changes
from .zones import Rates, ZoneState, judge

NODE_WORKERS: Final = 8
POD_WORKERS: Final = 4
EVICTION_PERIOD: Final = 0.1
UPDATE_TRIES: Final = 5
UPDATE_DELAY: Final = 0.02
LEASE_NAMESPACE: Final = "kube-node-lease"
EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
_FAILURES: Final = (errors.APIError, OSError, TimeoutError)
_NO_EXECUTE: Final = tuple(no_execute_taints("False") or ())


class NodeLifecycleController(Controller[Node]):
    """Watches over nodes."""

    name = "node-lifecycle-controller"
    kind = Node
    workers = NODE_WORKERS

    def setup(self) -> None:
        """Follow pods and Leases."""
        self.recorder = self.context.events.recorder("node-controller")
        self.leases = self.informer(Lease)
        self.pods = self.informer(Pod)
        index_by_node(self.pods)
        self.pods.add_handler(self._pod_seen, self._pod_updated)
        self._pod_queue = self.new_queue("node_lifecycle_controller_pods")
        options = self.options
        self.rates = Rates(
            options.node_eviction_rate,
            options.secondary_node_eviction_rate,
            options.large_cluster_size_threshold,
            options.unhealthy_zone_threshold,
        )
        self.known: dict[str, Node] = {}
        self.health: dict[str, Health] = {}
        self.states: dict[str, ZoneState] = {}
        self.evictors: dict[str, Evictor] = {}
        self._causes: dict[str, Cause | None] = {}
        """The cause of the taint of a node that waits for it, for its trace."""
        self._unmarked: set[str] = set()
        """Nodes with pods that should be marked not ready and could not be."""
        self._looked = asyncio.Event()
        """Set after a look at all nodes; before that the eviction rate is unknown."""
        self._make_metrics()

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "node_lifecycle_controller"

    async def run(self) -> None:
        """Work on what changes, and look at all nodes from time to time."""
        await self.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.work(self.queue, self.reconcile, self.workers))
            group.create_task(self.work(self._pod_queue, self._sync_pod, POD_WORKERS))
            group.create_task(self._monitor())
            group.create_task(self._evict())

    # -- taints and labels that follow from the node at once

    async def reconcile(self, key: Key) -> float | None:
        """Make NoSchedule taints and labels what they should be."""
        node = self.own.get(key)
        if node is None:
            return None
        add, remove = no_schedule_changes(node, rfc3339(self.clock.now()))
        if add or remove:
            await change_taints(self.client, node, add, remove)
        labels = label_changes(node)
        if labels:
            await self.client.patch(Node, key.name, {"metadata": {"labels": labels}})
        return None

    # -- looking at all nodes

    async def _monitor(self) -> None:
        while True:
            began = time.monotonic()
            try:
                await self.look()
            except Exception:
                self.log.exception("looking at nodes failed")
            self._all_duration.observe(time.monotonic() - began)
            self._looked.set()
            await self.clock.sleep(self.options.node_monitor_period)

    async def look(self) -> None:
        """Look at all nodes once."""
        nodes = self.own.items()
        await self._register(nodes)
        zones: dict[str, list[bool]] = {}
        turns = asyncio.Semaphore(NODE_WORKERS)

        async def one(node: Node) -> None:
            async with turns:
                began = time.monotonic()
                with recorder.span("monitor node", service=self.name) as span:
                    await judged(node)
                    span.done(name_of(node))
                self._node_duration.observe(time.monotonic() - began)

        async def judged(node: Node) -> None:
            try:
                node, observed = await self._write_silence(node)
                ready = self.health[name_of(node)].ready
                if EXCLUDED not in labels_of(node):
                    zones.setdefault(zone_of(node), []).append(ready is not None and ready.status == "True")
                if ready is not None:
                    await self._follow_up(node, observed, ready.status or "")
            except _FAILURES as error:
                self.log.warning("node %s: %s", name_of(node), error)
            except Exception:  # one node that we cannot judge; the zones are judged by the others
                self.log.exception("node %s", name_of(node))

        # Most nodes are well and need nothing: those are looked at here, without a task for each.
        rest = [node async for node in in_slices(nodes) if not self._is_well(node, zones)]
        await asyncio.gather(*map(one, rest))
        await self._judge(zones, nodes)

    def _is_well(self, node: Node, zones: dict[str, list[bool]]) -> bool:
        """Whether the node is ready, has been heard of, and nothing is to be done about it; it is counted then."""
        began, name = time.monotonic(), name_of(node)
        try:
            now, wall = self.clock.monotonic(), self.clock.now()
            health = observe(self.health.get(name), node, self.leases.get(Key(LEASE_NAMESPACE, name)), now, wall)
            options = self.options
            if (
                health.ready is None
                or health.ready.status != "True"
                or name in self._unmarked
                or name in self.evictors[zone_of(node)]
                or any(has_taint(node, each) for each in _NO_EXECUTE)
                or is_silent(health, now, options.node_monitor_grace_period, options.node_startup_grace_period)
            ):
                return False
        except Exception:
            return False  # looked at again as one that is not well
        self.health[name] = health
        if EXCLUDED not in labels_of(node):
            zones.setdefault(zone_of(node), []).append(True)
        self._node_duration.observe(time.monotonic() - began)
        return True

    async def _register(self, nodes: list[Node]) -> None:
        """Greet new nodes and forget old ones."""
        present = {name_of(node): uid_of(node) for node in nodes}
        for name, old in list(self.known.items()):
            if present.get(name) != uid_of(old):
                self._tell(old, "RemovingNode", f"Removing Node {name} from Controller")
                del self.known[name]
                self.health.pop(name, None)
                self._causes.pop(name, None)
                self._unmarked.discard(name)
                for evictor in self.evictors.values():
                    evictor.remove(name)
        async for node in in_slices(nodes):
            zone = zone_of(node)
            if zone not in self.evictors:
                self.evictors[zone] = Evictor(self.rates.normal, self.clock)
                self._evictions.inc(zone, by=0)
            if name_of(node) not in self.known:
                self._tell(node, "RegisteredNode", f"Registered Node {name_of(node)} in Controller")
                self.known[name_of(node)] = node
                # What was decided before we came is decided again, at the rate that is right now.
                await self._mark_reachable(node)

    async def _follow_up(self, node: Node, observed: str, ready: str) -> None:
        """Update taints and pods of a node after its Ready condition changed."""
        name = name_of(node)
        if ready == "True":
            self._unmarked.discard(name)
        elif observed == "True":
            tell_status(self.recorder, node, "NodeNotReady")
            self._unmarked.add(name)
        try:
            if name in self._unmarked:
                await self._mark_pods(pods_on(self.pods, name), name)
                self._unmarked.discard(name)
        finally:  # a pod that cannot be marked must not keep the others on a lost node
            await self._plan_eviction(node, ready)

    async def _write_silence(self, node: Node) -> tuple[Node, str]:
        """The node, with conditions Unknown if it is silent, and what its Ready condition said before."""
        name = name_of(node)
        for attempt in range(UPDATE_TRIES):
            lease = self.leases.get(Key(LEASE_NAMESPACE, name))
            now, wall = self.clock.monotonic(), self.clock.now()
            health = self.health[name] = observe(self.health.get(name), node, lease, now, wall)
            observed = health.ready.status or "" if health.ready else "Unknown"
            options = self.options
            if not is_silent(health, now, options.node_monitor_grace_period, options.node_startup_grace_period):
                return node, observed
            changed = silent(node, wall)
            ready = node_condition(changed, "Ready")
            if ready != health.ready:
                self.log.info("node %s has been silent for %.0f s", name, now - health.heard_at)
                try:
                    changed = await self.client.update_status(changed)
                except _FAILURES as error:
                    if isinstance(error, errors.NotFound) or attempt == UPDATE_TRIES - 1:
                        raise
                    await asyncio.sleep(UPDATE_DELAY)
                    node = await self.client.get(Node, name)
                    continue
            self.health[name] = Health(health.heard_at, ready, health.renewed)
            return changed, observed
        raise AssertionError("not reached")

    # -- NoExecute taints

    async def _plan_eviction(self, node: Node, ready: str) -> None:
        taints = no_execute_taints(ready)
        if taints is None:
            if await self._mark_reachable(node):
                self.log.info("node %s is healthy again", name_of(node))
            return
        wanted, opposite = taints
        if has_taint(node, opposite):  # it is evicted already: only the reason has changed
            wanted.time_added = rfc3339(self.clock.now())
            await change_taints(self.client, node, [wanted], [opposite])
            return
        evictor = self.evictors[zone_of(node)]
        if not has_taint(node, wanted):
            evictor.remove(name_of(node))
        if evictor.add(name_of(node)):
            self._causes[name_of(node)] = CURRENT.get()

    async def _mark_reachable(self, node: Node) -> bool:
        ours = [each for each in no_execute_taints("False") or () if has_taint(node, each)]
        try:
            if ours:
                await change_taints(self.client, node, remove=ours)
        except _FAILURES as error:  # again at the next look
            self.log.warning("taints of node %s could not be removed: %s", name_of(node), error)
            return False
        return self.evictors[zone_of(node)].remove(name_of(node))

    async def _judge(self, zones: dict[str, list[bool]], nodes: list[Node]) -> None:
        """Set the rates as the zones are doing."""
        verdict = judge(self.states, zones, self.rates)
        self._count(zones)
        for zone, state in verdict.states.items():
            if self.states.get(zone) is not state:
                self.log.info("zone %r is now %s", zone, state)
        self.states = verdict.states
        for zone, rate in verdict.rates.items():
            self.evictors[zone].rate = rate
        if verdict.stopped:
            self.log.warning("no node is ready: nothing is evicted until one is")
            for node in nodes:
                await self._mark_reachable(self.own.get(key_of(node)) or node)
        if verdict.resumed:
            now = self.clock.monotonic()
            for name, health in self.health.items():
                self.health[name] = Health(now, health.ready, health.renewed)

    async def _evict(self) -> None:
        """Taint the nodes that wait, when it is their turn."""
        while True:
            await self._looked.wait()
            for zone, evictor in list(self.evictors.items()):
                while (name := evictor.take()) is not None:
                    cause = self._causes.pop(name, None)
                    try:
                        with recorder.span("taint node", (cause,) if cause else (), service=self.name):
                            if await self._taint(name):
                                self._evictions.inc(zone)
                    except _FAILURES as error:
                        self.log.warning("node %s could not be tainted: %s", name, error)
                        self._causes[name] = cause
                        evictor.retry(name)
            if not any(map(len, self.evictors.values())):
                self._looked.clear()
            await self.clock.sleep(EVICTION_PERIOD)

    async def _taint(self, name: str) -> bool:
        node = self.own.get(Key("", name))
        ready = node_condition(node, "Ready") if node else None
        taints = no_execute_taints((ready.status if ready else None) or "")
        if node is None or taints is None:
            return False  # gone, or well again
        wanted, opposite = taints
        wanted.time_added = rfc3339(self.clock.now())
        await change_taints(self.client, node, [wanted], [opposite])
        return True

    # -- pods of lost nodes

    def _pod_seen(self, pod: Pod) -> None:
        if node_of(pod):
            self._pod_queue.add(key_of(pod))

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if node_of(old) != node_of(new):
            self._pod_seen(new)

    async def _sync_pod(self, key: Key) -> float | None:
        """A pod that comes to a lost node is not ready."""
        pod = self.pods.get(key)
        if pod is None:
            return None
        health = self.health.get(node_of(pod))
        if health is not None and health.ready is not None and health.ready.status != "True":
            await self._mark_pods([pod], node_of(pod))
        return None

    async def _mark_pods(self, pods: list[Pod], node: str) -> None:
        """Say of pods that they are not ready; raises the first failure after all have been tried."""
        failure: Exception | None = None
        for pod in pods:
            ready = find_pod_condition(pod.status, "Ready")
            if ready is None or ready.status == "False":
                continue
            changed = copy(pod)
            ready = find_pod_condition(changed.status, "Ready")
            assert ready is not None
            ready.status = "False"
            ready.last_transition_time = rfc3339(self.clock.now())
            try:
                await self.client.update_status(changed)
            except errors.NotFound:
                continue
            except _FAILURES as error:
                self.log.warning("pod %s of node %s could not be marked: %s", key_of(pod), node, error)
                failure = failure or error
                continue
            self.recorder.event(pod, WARNING, "NodeNotReady", "Node is not ready")
        if failure is not None:
            raise failure

    # -- telling

    def _tell(self, node: Node, reason: str, what: str) -> None:
        self.recorder.event(node_reference(node), NORMAL, reason, f"Node {name_of(node)} event: {what}")

    def _make_metrics(self) -> None:
        metrics, zone = self.context.metrics, ("zone",)
        self._zone_health = metrics.gauge(
            "node_collector_zone_health", "Gauge measuring percentage of healthy nodes per zone.", zone
        )
        self._zone_size = metrics.gauge(
            "node_collector_zone_size", "Gauge measuring number of registered Nodes per zones.", zone
        )
        self._unhealthy = metrics.gauge(
            "node_collector_unhealthy_nodes_in_zone", "Gauge measuring number of not Ready Nodes per zones.", zone
        )
        self._evictions = metrics.counter(
            "node_collector_evictions_total",
            "Number of Node evictions that happened since current instance of NodeController started.",
            zone,
        )
        self._node_duration = metrics.histogram(
            "node_collector_update_node_health_duration_seconds",
            "Duration in seconds for NodeController to update the health of a single node.",
            tuple(0.001 * 4**power for power in range(8)),
        )
        self._all_duration = metrics.histogram(
            "node_collector_update_all_nodes_health_duration_seconds",
            "Duration in seconds for NodeController to update the health of all nodes.",
            tuple(0.01 * 4**power for power in range(8)),
        )

    def _count(self, zones: dict[str, list[bool]]) -> None:
        for zone in self.states.keys() - zones.keys():
            self._zone_size.set(0, zone)
            self._zone_health.set(100, zone)
            self._unhealthy.set(0, zone)
        for zone, ready in zones.items():
            self._zone_size.set(len(ready), zone)
            self._zone_health.set(100 * ready.count(True) / len(ready), zone)
            self._unhealthy.set(ready.count(False), zone)
