"""Keeps this node's routes to the pods of all other nodes.

Woken by: Nodes (pod ranges and addresses), and by changes that others make to our routes, devices and entries. Writes:
the kernel's tables, and annotations of its own Node: backend, addresses and MTU. A sync compares all of what is there
with all of what should be, so whatever was missed, removed by hand or left by an earlier process is put right.
Nothing is removed before all Nodes are known.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pybernetes.api.core.v1 import Node
from pybernetes.client.informers import InformerFactory
from pybernetes.cni.fields import Address
from pybernetes.cni.netlink.rtnl import LinkNotFound

from . import cni_config, peers
from .kernel import TUN_NAMES, VXLAN_NAMES, Kernel, Underlay
from .peers import Peer
from .plan import UDP_OVERHEAD, Device, plan, pod_mtu, versions
from .rtnetlink import Changes
from .udp_tunnel import PORT as UDP_PORT
from .udp_tunnel import UdpTunnel

SETTLE = 0.02
"""Seconds in which further changes are waited for before a sync."""
REPAIR_INTERVAL = 0.5
"""Seconds between two syncs: a program that removes our routes again and again must not keep a core busy."""
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
log = logging.getLogger(__name__)
Annotate = Callable[[dict[str, str]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How nodes reach each other's pods."""

    node_name: str
    backend: str = "vxlan"
    direct: bool = False
    interface: str = ""
    vxlan_id: int = 1
    vxlan_port: int = 8472
    udp_port: int = UDP_PORT
    cni_conf: str = ""
    """File to write the pods' network to; empty if another program does."""


class Agent:
    """The overlay of one node."""

    def __init__(self, informers: InformerFactory, settings: Settings, annotate: Annotate | None = None) -> None:
        self._settings, self._annotate = settings, annotate
        self._nodes = informers.informer(Node)
        self._informers = informers
        self._wake = asyncio.Event()
        self._facts: dict[str, object] = {}
        """The relevant fields of each Node when it was last seen: most of their changes do not matter."""
        self._told: dict[str, str] = {}
        self._recorded: dict[str, str] = {}
        self._tunnels: dict[int, UdpTunnel] = {}
        self.synced = asyncio.Event()
        self.repairs = 0
        """Routes and entries that were changed, in all."""

    async def run(self) -> None:
        """Keep the routes until cancelled. They stay when it ends; only a TUN device goes with its process."""
        loop = asyncio.get_running_loop()
        kernel, changes = Kernel(), Changes()
        handler = self._nodes.add_handler(self._changed, lambda _, new: self._changed(new), self._deleted)
        loop.add_reader(changes.fileno(), self._kernel_changed, changes)
        try:
            self._informers.start()
            await self._nodes.wait_synced()
            retry = FIRST_RETRY
            while True:
                self._wake.clear()
                try:
                    await self._sync(kernel, changes)
                except OSError as error:
                    log.error("cannot set the routes to other nodes, next try in %g s: %s", retry, error)
                    await asyncio.sleep(retry)
                    retry = min(LAST_RETRY, retry * 2)
                    continue
                retry = FIRST_RETRY
                if changes.any():  # what the sync itself has changed, and perhaps more
                    self._wake.set()
                    await asyncio.sleep(REPAIR_INTERVAL)
                await self._wake.wait()
                await asyncio.sleep(SETTLE)
        finally:
            loop.remove_reader(changes.fileno())
            self._nodes.forget_handler(handler)
            for tunnel in self._tunnels.values():
                tunnel.close()
            self._tunnels.clear()
            changes.close()
            kernel.close()

    def _changed(self, node: Node) -> None:
        name, spec, status = peers.name_of(node), node.spec, node.status
        listed = (status.addresses or []) if status else []
        annotations = peers.annotations_of(node)
        facts = (
            tuple((spec.pod_cidrs or [spec.pod_cidr]) if spec else ()),
            tuple((each.type, each.address) for each in listed),
            annotations.get(peers.OVERWRITE),
            annotations.get(peers.PUBLIC_ADDRESSES),
        )
        if self._facts.get(name) != facts:
            self._facts[name] = facts
            self._wake.set()

    def _deleted(self, node: Node) -> None:
        self._facts.pop(peers.name_of(node), None)
        self._wake.set()

    def _kernel_changed(self, changes: Changes) -> None:
        if changes.any():
            self._wake.set()

    async def _sync(self, kernel: Kernel, changes: Changes) -> None:
        settings = self._settings
        found, problems = peers.readable(self._nodes.items())
        own = next((peer for peer in found if peer.name == settings.node_name), None)
        others = [peer for peer in found if peer.name != settings.node_name]
        if own is None:
            # Until the node has a range it can have no routes; what an earlier process set stays.
            self._report(problems)
            return
        underlays = self._underlays(kernel, own, problems)
        if not underlays:
            self._report(problems)
            return
        devices = self._devices(kernel, own, others, underlays)
        changes.links = {each.index for each in devices.values()} | {each.link for each in underlays.values()}
        made = plan(
            settings.backend, own, others, devices, partial(_on_link, kernel, underlays), direct=settings.direct
        )
        # Packets are sent by a tunnel before the first route leads there.
        for tunnel in self._tunnels.values():
            tunnel.route(made.tunnels)
        count = kernel.apply(made, devices.values())
        if count and self.synced.is_set():
            log.info("changed %d routes and entries for %d nodes", count, len(others))
        self.repairs += count
        self._report({**problems, **made.unrouted})
        first = next(iter(underlays.values()))
        mtu = pod_mtu(settings.backend, first.mtu, first.address.version)
        if settings.cni_conf:
            cni_config.write(settings.cni_conf, own.ranges, mtu)
        self.synced.set()
        await self._record(own, underlays, mtu)

    def _underlays(self, kernel: Kernel, own: Peer, problems: dict[str, str]) -> dict[int, Underlay]:
        """The links by which this node reaches others, by IP version; the first address of the node comes first."""
        found: dict[int, Underlay] = {}
        for version in dict.fromkeys(each.version for each in own.addresses):
            address = own.address(version)
            assert address is not None
            link = kernel.underlay(address, self._settings.interface)
            if link is not None:
                found[version] = link
            else:
                problems[own.name] = f"no link of this node has its address {address}; --iface names one"
        return found

    def _devices(
        self, kernel: Kernel, own: Peer, others: list[Peer], underlays: dict[int, Underlay]
    ) -> dict[int, Device]:
        """The tunnel devices that are needed, by the IP version they send in; all others are removed."""
        settings = self._settings
        needed = [underlays[each] for each in sorted(versions(own, others)) if each in underlays]
        if not others and settings.backend != "host-gw":
            needed = list(underlays.values())[:1]  # so that the first peer finds it ready
        devices: dict[int, Device] = {}
        if settings.backend == "vxlan":
            kernel.remove_devices([VXLAN_NAMES[each.address.version] for each in needed])
            for each in needed:
                made = kernel.ensure_vxlan(own, each, settings.vxlan_id, settings.vxlan_port)
                devices[made.version] = made
        elif settings.backend == "udp":
            self._close_tunnels([each.address for each in needed])
            kernel.remove_devices([TUN_NAMES[version] for version in self._tunnels])
            for each in needed:
                devices[each.address.version] = self._tun(kernel, own, each)
        else:
            kernel.remove_devices()
        return devices

    def _tun(self, kernel: Kernel, own: Peer, underlay: Underlay) -> Device:
        version = underlay.address.version
        name, mtu = TUN_NAMES[version], underlay.mtu - UDP_OVERHEAD[version]
        if version in self._tunnels:
            try:
                return kernel.settle_tun(name, own, mtu, version)
            except LinkNotFound:
                self._tunnels.pop(version).close()  # the device was removed
        self._tunnels[version] = UdpTunnel(name, underlay.address, self._settings.udp_port)
        return kernel.settle_tun(name, own, mtu, version)

    def _close_tunnels(self, needed: list[Address]) -> None:
        for version, tunnel in list(self._tunnels.items()):
            if tunnel.address not in needed:
                self._tunnels.pop(version).close()

    def _report(self, problems: dict[str, str]) -> None:
        """Logs what is wrong with a node once, until it is something else."""
        for name, problem in problems.items():
            if self._told.get(name) != problem:
                log.warning('node "%s": %s', name, problem)
        self._told = problems

    async def _record(self, own: Peer, underlays: dict[int, Underlay], mtu: int) -> None:
        """Writes the annotations of this Node that are not as they should be."""
        node = next((each for each in self._nodes.items() if peers.name_of(each) == own.name), None)
        if self._annotate is None or node is None:
            return
        there = peers.annotations_of(node)
        addresses = [str(each.address) for each in underlays.values()]
        wanted = {peers.BACKEND: self._settings.backend, peers.MTU: str(mtu)}
        if not there.get(peers.OVERWRITE):
            # Only where they differ from the Node's own: those follow the kubelet by themselves.
            listed = [each.address for each in (node.status.addresses or [] if node.status else [])]
            if any(each not in listed for each in addresses):
                wanted[peers.PUBLIC_ADDRESSES] = ",".join(addresses)
        missing = {key: value for key, value in wanted.items() if there.get(key) != value}
        if not missing or missing == self._recorded:
            return
        try:
            await self._annotate(missing)
            self._recorded = missing
        except Exception as error:  # the routes are what matters
            log.warning('node "%s": cannot record how it is reached: %s', own.name, error)


def _on_link(kernel: Kernel, underlays: dict[int, Underlay], address: Address) -> int | None:
    link = underlays.get(address.version)
    return kernel.on_link(address, link.link) if link else None


async def annotate(client: Any, name: str, annotations: dict[str, str]) -> None:
    """Patches a Node's annotations."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(client.patch(Node, name, {"metadata": {"annotations": annotations}}), 10.0)
