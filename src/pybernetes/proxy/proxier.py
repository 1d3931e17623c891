"""Keeps the kernel's tables in step with Services and EndpointSlices.

Woken by: Services, their slices, this node's Node, ServiceCIDRs, and by changes that others make to the tables. Writes:
the tables, nothing in the cluster. Events only note which Service to look at; one sync handles all that were noted
since the last, at most every `min_sync_period`. When the kernel refuses, or another program changed a table, the next
sync makes the tables anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pybernetes.api.core.v1 import Node, Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.api.networking.v1 import ServiceCIDR
from pybernetes.api.times import parse_time
from pybernetes.client.clock import Clock, Timer
from pybernetes.client.event_handlers import Handler
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key, key_of

from . import conntrack, frontends
from .chains import Network, TableFacts
from .claims import Claims
from .endpoints import ZONE_LABEL, NodeFacts
from .frontends import Compiled, compile_service
from .health_checks import HealthChecks
from .kernel import Kernel
from .metrics import Metrics
from .ruleset import Ruleset

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
BY_SERVICE = "service"
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
REPAIR_INTERVAL = 1.0
"""Seconds between two repairs: a program that changes the tables all the time must not make us do the same."""
DELETED_TAINT = "ToBeDeletedByClusterAutoscaler"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """The settings that rules depend on."""

    node_name: str
    table: TableFacts = field(default_factory=TableFacts)
    detect_node_cidrs: bool = False
    """Packets of pods come from the ranges of this node (`--detect-local-mode=NodeCIDR`)."""
    primary_node_ports: bool = False
    """Node ports are served on the node's own addresses alone (`--nodeport-addresses=primary`)."""
    min_sync_period: float = 0.0


class Proxier:
    """The proxy of a node."""

    def __init__(
        self,
        informers: InformerFactory,
        kernel: Kernel,
        settings: ProxySettings,
        clock: Clock,
        metrics: Metrics,
        health_checks: HealthChecks,
    ) -> None:
        self._informers, self._kernel, self._settings = informers, kernel, settings
        self._clock, self._metrics, self._health_checks = clock, metrics, health_checks
        self.started = asyncio.Event()
        self.eligible = True
        """Whether load balancers should send packets here: not if the node is about to be deleted."""
        self.last_synced = self.last_queued = 0.0
        # All of them, not only those it serves: whatever else runs in the process shares the caches.
        self._services = informers.informer(Service)
        self._slices = informers.informer(EndpointSlice)
        self._node = informers.informer(Node, field_selector=f"metadata.name={settings.node_name}")
        self._ranges = informers.informer(ServiceCIDR)
        self._slices.add_index(BY_SERVICE, _service_names)
        self._rulesets = {family.name: Ruleset() for family in kernel.families}
        self._claims = {family.name: Claims() for family in kernel.families}
        self._notes: dict[Key, list[Compiled]] = {}
        """Of Services with UDP, health checks or without local endpoints: what is not in the rulesets."""
        self._facts = NodeFacts(settings.node_name)
        self._table = settings.table
        self._dirty: dict[Key, float | None] = {}
        """Services to look at, with the time of the change that caused it if a slice says it."""
        self._anew = True
        self._timer: Timer | None = None
        self._next = self._next_repair = 0.0
        self._repairing = False
        """The next sync rebuilds the tables because another program changed them."""
        self._failures = 0

    async def run(self) -> None:
        """Work until cancelled. The tables stay when it ends: so do connections."""
        self._informers.start()
        for informer in (self._services, self._slices, self._node, self._ranges):
            await informer.wait_synced()
        handlers: list[Handler[Any]] = [
            self._services.add_handler(
                self._service_changed, lambda _, new: self._service_changed(new), self._service_changed
            ),
            self._slices.add_handler(self._slice_changed, self._slice_updated, self._slice_changed),
            self._node.add_handler(self._node_changed, lambda _, new: self._node_changed(new)),
            self._ranges.add_handler(*[lambda *_: self._ranges_changed()] * 3),
        ]
        loop, watched = asyncio.get_running_loop(), self._kernel.watch()
        loop.add_reader(watched, self._disturbed)
        try:
            self._sync()
            await asyncio.Event().wait()
        finally:
            loop.remove_reader(watched)
            for handler in handlers:
                handler.remove()
            if self._timer:
                self._timer.cancel()
            await self._health_checks.close()

    def problem(self) -> str:
        """Why the rules are not those of the cluster; empty if they are."""
        if not self.started.is_set():
            return "the rules have not been set yet"
        return f"the last {self._failures} syncs failed" if self._failures else ""

    # Events

    def _service_changed(self, service: Service) -> None:
        self._metrics.service_changes.inc()
        self._touch(key_of(service), None)

    def _slice_changed(self, changed: EndpointSlice) -> None:
        self._metrics.endpoint_changes.inc()
        annotations = (changed.metadata.annotations if changed.metadata else None) or {}
        trigger = None
        with contextlib.suppress(ValueError):
            trigger = parse_time(annotations[TRIGGER_TIME]) if TRIGGER_TIME in annotations else None
        namespace = (changed.metadata.namespace if changed.metadata else None) or ""
        for name in _service_names(changed):
            self._touch(Key(namespace, name.partition("/")[2]), trigger)

    def _slice_updated(self, old: EndpointSlice, new: EndpointSlice) -> None:
        if list(_service_names(old)) != list(_service_names(new)):
            self._slice_changed(old)
        self._slice_changed(new)

    def _touch(self, key: Key, trigger: float | None) -> None:
        before = self._dirty.get(key)
        self._dirty[key] = min(filter(None, (before, trigger)), default=None)
        self._queue()

    def _node_changed(self, node: Node | None) -> None:
        if node is None or node.metadata is None:
            return
        taints = (node.spec.taints if node.spec else None) or ()
        self.eligible = not node.metadata.deletion_timestamp and all(each.key != DELETED_TAINT for each in taints)
        facts = NodeFacts(self._settings.node_name, (node.metadata.labels or {}).get(ZONE_LABEL, ""))
        if facts != self._facts:
            self._facts = facts
            self._dirty.update(dict.fromkeys(key_of(each) for each in self._services.items()))
            self._queue()
        table = self._table
        if self._settings.detect_node_cidrs:
            ranges = (node.spec.pod_cidrs if node.spec else None) or ()
            table = replace(table, cluster_cidrs=tuple(_networks(ranges)))
        if self._settings.primary_node_ports:
            addresses = (node.status.addresses if node.status else None) or ()
            own = [each.address or "" for each in addresses if each.type == "InternalIP"]
            table = replace(table, node_port_networks=tuple(_networks(own)))
        self._set_table(table)

    def _ranges_changed(self) -> None:
        ranges = [cidr for each in self._ranges.items() if each.spec for cidr in each.spec.cidrs or ()]
        networks = tuple(_networks(sorted(ranges)))
        if networks != self._table.service_cidrs:
            self._dirty.update(dict.fromkeys(key_of(each) for each in self._services.items()))
        self._set_table(replace(self._table, service_cidrs=networks))

    def _set_table(self, table: TableFacts) -> None:
        if table != self._table:
            self._table = table
            self._anew = True
            self._queue()

    def _disturbed(self) -> None:
        """Others changed the kernel's rules: ours are set again."""
        if self._kernel.disturbed():
            log.warning("another program changed the tables of the proxy, they are rebuilt")
            self._metrics.repairs.inc()
            self._anew = self._repairing = True
            self._next = max(self._next, self._next_repair)
            self._queue()

    # Syncing

    def _queue(self) -> None:
        if self._timer is None:
            self.last_queued = self._clock.now()
            self._metrics.last_queued.set(self.last_queued)
            self._timer = self._clock.call_later(self._next - self._clock.monotonic(), self._sync)

    def _sync(self) -> None:
        """Brings the kernel in step with what the informers know."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        began = self._clock.monotonic()
        dirty, self._dirty = self._dirty, {}
        anew = self._anew
        try:
            stale = self._compile(dirty)
            if anew:
                self._kernel.replace(self._rulesets, self._table)
            else:
                self._kernel.update(self._rulesets, self._table)
        except OSError as error:
            self._failed(error, dirty)
            return
        self._anew, self._failures = False, 0
        self._next = began + self._settings.min_sync_period
        if self._repairing:
            self._next_repair, self._repairing = began + REPAIR_INTERVAL, False
        self._clean_conntrack(stale)
        self._report(began, anew, dirty)
        self.started.set()

    def _failed(self, error: OSError, dirty: dict[Key, float | None]) -> None:
        self._failures += 1
        wait = min(LAST_RETRY, FIRST_RETRY * 2 ** min(self._failures - 1, 10))
        log.error("cannot set the rules of Services, trying again in %g s: %s", wait, error)
        for family in self._kernel.families:
            self._metrics.failures.inc(family.name)
        self._dirty = {**dirty, **self._dirty}
        self._anew = True
        self._next = self._clock.monotonic() + wait
        self._queue()

    def _compile(self, dirty: Iterable[Key]) -> dict[str, conntrack.Targets]:
        """Looks at Services anew; the UDP frontends whose tracked connections may be stale, by IP version."""
        stale: dict[str, conntrack.Targets] = {}
        waiting = deque(dirty)
        while waiting:
            key = waiting.popleft()
            try:
                now = self._compiled(key)
            except Exception:  # whatever is wrong with one Service, the others are served
                log.exception("service %s: cannot be compiled, its rules stay as they are", key)
                continue
            before = self._notes.pop(key, None)
            for number, family in enumerate(self._kernel.families):
                self._rulesets[family.name].replace(str(key), now[number].entries)
                for heir in self._claims[family.name].settle(str(key), now[number].external):
                    namespace, _, name = heir.partition("/")
                    waiting.append(Key(namespace, name))
                if self.started.is_set():
                    former = before[number].udp if before else {}
                    other = conntrack.changed(former, now[number].udp)
                else:  # what changed while no proxy ran is not known
                    other = now[number].udp
                if other:
                    stale.setdefault(family.name, {}).update(other)
            if any(each.udp or each.health_check or any(each.without_local) for each in now):
                self._notes[key] = [Compiled({}, each.udp, each.health_check, each.without_local) for each in now]
            if before or key in self._notes:
                self._update_health_check(key, now)
        return stale

    def _compiled(self, key: Key) -> list[Compiled]:
        """A Service as it is now, for each IP version."""
        service = self._services.get(key)
        if service is None:
            return [frontends.NOTHING] * len(self._kernel.families)
        slices = self._slices.by_index(BY_SERVICE, str(key))
        families = self._kernel.families
        return [
            compile_service(service, slices, self._facts, family, partial(self._claim, family.name, str(key)))
            for family in families
        ]

    def _claim(self, family: str, service: str, address: str, frontend: bytes) -> bool:
        """Whether a Service has an external address and port. Those of the Service range are for cluster IPs alone."""
        found = ipaddress.ip_address(address)
        if any(found in each for each in self._table.service_cidrs):
            return False
        return self._claims[family].claim(service, frontend)

    def _update_health_check(self, key: Key, compiled: list[Compiled]) -> None:
        checks = [each.health_check for each in compiled if each.health_check]
        port = checks[0][0] if checks else 0
        self._health_checks.put(key, port, sum(count for _, count in checks))

    def _clean_conntrack(self, stale: dict[str, conntrack.Targets]) -> None:
        for family in self._kernel.families:
            if family.name not in stale:
                continue
            try:
                deleted = self._kernel.forget_udp(family, stale[family.name])
                self._metrics.conntrack_deleted.inc(family.name, by=deleted)
            except OSError as error:
                log.warning("cannot remove tracked UDP connections to endpoints that are gone: %s", error)

    def _report(self, began: float, anew: bool, dirty: dict[Key, float | None]) -> None:
        metrics, took = self._metrics, self._clock.monotonic() - began
        self.last_synced = self._clock.now()
        metrics.last_sync.set(self.last_synced)
        for family in self._kernel.families:
            metrics.sync.observe(took, family.name)
            (metrics.full_sync if anew else metrics.partial_sync).observe(took, family.name)
            for trigger in filter(None, dirty.values()):
                metrics.programming.observe(max(0.0, self.last_synced - trigger), family.name)
        lacking = [note.without_local for notes in self._notes.values() for note in notes[:1]]
        metrics.without_local.set(sum(internal for internal, _ in lacking), "internal")
        metrics.without_local.set(sum(external for _, external in lacking), "external")
        level = logging.INFO if anew else logging.DEBUG
        log.log(level, "%d Services changed, rules set in %.1f ms", len(dirty), took * 1000)


def _service_names(of: EndpointSlice) -> Iterator[str]:
    metadata = of.metadata
    name = ((metadata.labels if metadata else None) or {}).get(SERVICE_NAME_LABEL)
    if metadata and name:
        yield f"{metadata.namespace}/{name}"


def _networks(texts: Iterable[str]) -> Iterator[Network]:
    for text in texts:
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_network(text, strict=False)
