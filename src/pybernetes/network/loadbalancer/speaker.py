"""Answers on this node for the load balancer addresses that are its own to announce.

Woken by: Services of type LoadBalancer, their EndpointSlices, Nodes, and, with several nodes, their Leases. Writes:
nothing in the cluster; opens sockets on the link of this node's InternalIPs. As long as no Service has an address it
follows nothing but what the proxy follows anyway. One node answers for an address (`election`); when it is silent, not
ready or without endpoints (externalTrafficPolicy Local) the next one does.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from typing import Any

from pybernetes.api.addresses import IPAddress
from pybernetes.api.coordination.v1 import Lease
from pybernetes.api.core.v1 import Node, Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.client.clock import Clock
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key, key_of
from pybernetes.cni.netlink.rtnl import Link, Netlink

from . import election
from .responder import Responder

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
LEASES = "kube-node-lease"
BY_SERVICE = "load balancer's service"
SETTLE = 0.02
"""Seconds in which further changes are waited for."""
RETRY = 5.0
log = logging.getLogger(__name__)


class Speaker:
    """The announcements of one node."""

    def __init__(self, informers: InformerFactory, node_name: str, clock: Clock) -> None:
        self._informers, self._node_name, self._clock = informers, node_name, clock
        self._balancers: dict[Key, Service] = {}
        """Services with an address to answer for."""
        self._heartbeats = election.Heartbeats(node_name)
        self._responders: dict[str, Responder] = {}
        self._wake = asyncio.Event()

    @property
    def announced(self) -> dict[str, list[str]]:
        """The addresses that this node answers for, by link."""
        return {link: sorted(map(str, each.addresses)) for link, each in self._responders.items() if each.addresses}

    async def run(self) -> None:
        """Answer until cancelled."""
        services = self._informers.informer(Service)
        handlers: list[tuple[Any, Any]] = [
            (services, services.add_handler(self._service_seen, lambda _, new: self._service_seen(new), self._gone))
        ]
        self._informers.start()
        try:
            await services.wait_synced()
            while not self._balancers:
                self._wake.clear()
                await self._wake.wait()
            handlers += await self._follow()
            await self._answer()
        finally:
            for informer, handler in handlers:
                informer.forget_handler(handler)
            for responder in self._responders.values():
                responder.close()
            self._responders.clear()

    async def _follow(self) -> list[tuple[Any, Any]]:
        """Follow what decides who answers."""
        self._nodes, self._slices = self._informers.informer(Node), self._informers.informer(EndpointSlice)
        self._slices.add_index(BY_SERVICE, _service_name)
        handlers: list[tuple[Any, Any]] = [
            (self._nodes, self._nodes.add_handler(*[lambda *_: self._wake.set()] * 3)),
            (self._slices, self._slices.add_handler(self._slice_seen, self._slice_updated, self._slice_seen)),
        ]
        self._informers.start()
        await self._nodes.wait_synced()
        await self._slices.wait_synced()
        return handlers

    async def _answer(self) -> None:
        leases: Any = None
        handler: Any = None
        try:
            while True:
                self._wake.clear()
                if leases is None and len(self._nodes) > 1:
                    leases = self._informers.informer(Lease, namespace=LEASES)
                    handler = leases.add_handler(self._lease_seen, lambda _, new: self._lease_seen(new), self._lost)
                    self._informers.start()
                again = self._heartbeats.next_change(self._clock.monotonic()) + 0.1 if leases is not None else None
                if not self._sync():
                    again = min(again or RETRY, RETRY)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(again):
                        await self._wake.wait()
                await asyncio.sleep(SETTLE)
        finally:
            if leases is not None:
                leases.forget_handler(handler)

    def _sync(self) -> bool:
        """Answer for the addresses that are this node's now; whether that was possible."""
        mine = self._mine()
        try:
            links = self._links()
        except OSError as error:
            log.error("cannot look at the links of this node: %s", error)
            return False
        good = True
        for name, responder in list(self._responders.items()):
            link = links.get(name)
            if link is None or (link.index, link.mac) != (responder.link.index, responder.link.mac):
                responder.close()  # another link has its name now, or none
                del self._responders[name]
        for name, link in links.items():
            try:
                if mine or name in self._responders:
                    self._responders.setdefault(name, Responder(link)).set(mine)
            except OSError as error:
                log.error("cannot announce addresses on %s: %s", name, error)
                good = False
        return good

    def _mine(self) -> set[IPAddress]:
        silent = self._heartbeats.silent(self._clock.monotonic())
        among = election.candidates(self._nodes.items(), silent)
        claims: dict[str, list[tuple[tuple[str, str], frozenset[str]]]] = {}
        for key, service in self._balancers.items():
            slices = self._slices.by_index(BY_SERVICE, f"{key.namespace}/{key.name}")
            fit = election.with_endpoints(service, slices, among)
            for address in election.addresses_of(service):
                claims.setdefault(address, []).append(((key.namespace, key.name), fit))
        found = set()
        for address, fit in election.shares(claims).items():
            if election.announcer(address, fit) == self._node_name:
                with contextlib.suppress(ValueError):
                    found.add(ipaddress.ip_address(address))
        return found

    def _links(self) -> dict[str, Link]:
        """The links that have one of the node's InternalIPs."""
        node = self._nodes.get(Key("", self._node_name))
        addresses = (node.status.addresses if node and node.status else None) or ()
        own = {each.address for each in addresses if each.type == "InternalIP"}
        with Netlink() as netlink:
            return {
                link.name: link
                for link in netlink.links()
                if link.name != "lo" and any(str(each.interface.ip) in own for each in netlink.addresses(link.index))
            }

    def _service_seen(self, service: Service) -> None:
        key = key_of(service)
        if election.addresses_of(service):
            self._balancers[key] = service
        elif self._balancers.pop(key, None) is None:
            return
        self._wake.set()

    def _gone(self, service: Service) -> None:
        if self._balancers.pop(key_of(service), None) is not None:
            self._wake.set()

    def _slice_seen(self, changed: EndpointSlice) -> None:
        for name in _service_name(changed):
            namespace, _, service = name.partition("/")
            if Key(namespace, service) in self._balancers:
                self._wake.set()

    def _slice_updated(self, old: EndpointSlice, new: EndpointSlice) -> None:
        self._slice_seen(old)
        self._slice_seen(new)

    def _lease_seen(self, lease: Lease) -> None:
        name = (lease.metadata.name if lease.metadata else None) or ""
        before = self._heartbeats.silent(self._clock.monotonic())
        renewed = str(lease.spec.renew_time) if lease.spec else ""
        self._heartbeats.note(name, renewed, self._clock.monotonic())
        if before != self._heartbeats.silent(self._clock.monotonic()):
            self._wake.set()

    def _lost(self, lease: Lease) -> None:
        self._heartbeats.forget((lease.metadata.name if lease.metadata else None) or "")


def _service_name(found: EndpointSlice) -> list[str]:
    metadata = found.metadata
    name = ((metadata.labels if metadata else None) or {}).get(SERVICE_NAME_LABEL)
    return [f"{(metadata.namespace if metadata else None) or ''}/{name}"] if name else []
