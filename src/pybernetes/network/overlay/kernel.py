"""Makes the kernel agree with a plan: reads what is there, removes what should not be, adds what is missing.

Only what is ours is touched: routes of our protocol number, and the tunnel devices by their names. So it may run at any
moment, after a crash at any point, and changes nothing where nothing is wrong.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from pybernetes.cni.fields import Address, Network
from pybernetes.cni.netlink.namespace import sysctl
from pybernetes.cni.netlink.rtnl import MAIN_TABLE, UNICAST, UNREACHABLE, Link, LinkNotFound, Route

from .peers import Peer
from .plan import PROTOCOL, VXLAN_OVERHEAD, Device, Plan, vtep_mac
from .rtnetlink import Rtnetlink, Vxlan

VXLAN_NAMES = {4: "pyb-vxlan", 6: "pyb-vxlan6"}
TUN_NAMES = {4: "pyb-udp", 6: "pyb-udp6"}
_LINK_SCOPE = 253
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Underlay:
    """The link that packets to other nodes leave by, and our address there."""

    link: int
    mtu: int
    address: Address


class Kernel:
    """The kernel of this network namespace. All calls are short and none waits."""

    def __init__(self) -> None:
        self._netlink = Rtnetlink()

    def close(self) -> None:
        self._netlink.close()

    def underlay(self, address: Address, interface: str = "") -> Underlay | None:
        """The link with this address, or the given one; None if there is none (yet)."""
        try:
            links = [self._netlink.link(interface)] if interface else self._netlink.links()
        except LinkNotFound:
            return None
        for link in links:
            own = [each.interface.ip for each in self._netlink.addresses(link.index)]
            if address in own:
                return Underlay(link.index, link.mtu, address)
            if interface:  # other nodes know it by an address that is translated on the way
                usable = [each for each in own if each.version == address.version and not each.is_link_local]
                return Underlay(link.index, link.mtu, usable[0]) if usable else None
        return None

    def on_link(self, address: Address, link: int) -> int | None:
        """The number of the link if the address is reached there without a router."""
        try:
            route = self._netlink.route_to(address)
        except OSError:
            return None
        return link if route.link == link and route.gateway is None else None

    def ensure_vxlan(self, own: Peer, underlay: Underlay, id: int, port: int) -> Device:
        """The VXLAN device over a link, made anew if it is another one than it should be."""
        version = underlay.address.version
        name, mac = VXLAN_NAMES[version], vtep_mac(own.ranges[0])
        mtu = underlay.mtu - VXLAN_OVERHEAD[version]
        wanted = Vxlan(id, port, underlay.link, underlay.address)
        link = self._link(name)
        if link is not None and (self._netlink.vxlan(link.index) != wanted or link.mac != mac):
            self._netlink.delete_link(link.index)
            link = None
        if link is None:
            self._netlink.add_vxlan(name, wanted, mac, mtu)
            link = self._netlink.link(name)
            # The host may find pods by proxy ARP; a node must not answer for pods that are behind its tunnel.
            _try_sysctl(f"net/ipv4/conf/{name}/medium_id", "-1")
            _try_sysctl(f"net/ipv4/conf/{name}/rp_filter", "0")
            _try_sysctl(f"net/ipv6/conf/{name}/accept_ra", "0")
            _try_sysctl(f"net/ipv6/conf/{name}/accept_dad", "0")
        self._settle(link, own.ranges, mtu)
        return Device(link.index, version)

    def settle_tun(self, name: str, own: Peer, mtu: int, version: int) -> Device:
        """Gives a TUN device that is there its addresses and its size."""
        link = self._netlink.link(name)
        _try_sysctl(f"net/ipv4/conf/{name}/medium_id", "-1")
        _try_sysctl(f"net/ipv4/conf/{name}/rp_filter", "0")
        self._netlink.set_link(link.index, gso_max=60_000)  # with its headers it must fit into one datagram
        self._settle(link, own.ranges, mtu)
        return Device(link.index, version)

    def _settle(self, link: Link, ranges: Iterable[Network], mtu: int) -> None:
        if link.mtu != mtu:
            self._netlink.set_link(link.index, mtu=mtu)
        wanted = {ipaddress.ip_interface(f"{each.network_address}/{each.max_prefixlen}") for each in ranges}
        there = {each.interface for each in self._netlink.addresses(link.index) if not each.interface.is_link_local}
        for address in there - wanted:
            self._netlink.delete_address(link.index, address)
        for address in wanted - there:
            with contextlib.suppress(FileExistsError):
                self._netlink.add_address(link.index, address)
        if not link.up:
            self._netlink.set_link(link.index, up=True)

    def remove_devices(self, keep: Iterable[str] = ()) -> None:
        """Removes our tunnel devices but those to keep; their routes and entries go with them."""
        for name in (*VXLAN_NAMES.values(), *TUN_NAMES.values()):
            link = self._link(name) if name not in keep else None
            if link is not None and link.kind in ("vxlan", "tun"):
                with contextlib.suppress(OSError):
                    self._netlink.delete_link(link.index)

    def apply(self, plan: Plan, devices: Iterable[Device]) -> int:
        """Makes routes and entries those of the plan; how many had to be changed. What the kernel refuses costs none of
        the others: the first error is raised when all have been tried."""
        netlink, changed = self._netlink, 0
        refused: list[OSError] = []
        for device in devices:
            wanted = {each for each in plan.neighbours if each.link == device.index}
            there = netlink.neighbours(device.index)
            changed += _agree(there, wanted, netlink.delete_neighbour, netlink.set_neighbour, refused)
            entries = {each for each in plan.forwarding if each.link == device.index}
            found = netlink.forwarding(device.index)
            changed += _agree(found, entries, netlink.delete_forwarding, netlink.set_forwarding, refused)
        changed += _agree(self.routes(), plan.routes, netlink.delete_route, netlink.add_route, refused)
        if refused:
            raise refused[0]
        return changed

    def routes(self) -> set[Route]:
        """Our routes, in the form in which plans have them."""
        found = set()
        for version in (4, 6):
            for route in self._netlink.routes(version, (UNICAST, UNREACHABLE)):
                if route.protocol == PROTOCOL and route.table == MAIN_TABLE:
                    found.add(_comparable(route))
        return found

    def remove(self) -> None:
        """Removes everything of ours."""
        self.remove_devices()
        _agree(self.routes(), set(), self._netlink.delete_route, self._netlink.add_route, [])

    def _link(self, name: str) -> Link | None:
        try:
            return self._netlink.link(name)
        except LinkNotFound:
            return None


def _comparable(route: Route) -> Route:
    """Without what the kernel adds by itself, so that it can be compared with what was asked for."""
    unreachable = route.kind == UNREACHABLE
    scoped = route.gateway is None and not unreachable
    return Route(
        route.dst,
        route.gateway,
        0 if unreachable else route.link,
        mtu=route.mtu,
        priority=0 if not unreachable else route.priority,
        protocol=route.protocol,
        scope=_LINK_SCOPE if scoped else 0,
        onlink=route.onlink,
        kind=route.kind,
    )


def _agree(
    there: set[T],
    wanted: set[T],
    delete: Callable[[T], None],
    add: Callable[[T], None],
    refused: list[OSError],
) -> int:
    """Removes and adds, and notes what the kernel refused; something that another program removes or adds at the same
    moment is no error."""
    gone, missing = there - wanted, wanted - there
    for each in gone:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            delete(each)
    for each in missing:
        try:
            add(each)
        except FileExistsError:
            continue
        except OSError as error:
            refused.append(OSError(error.errno, f"{error.strerror}: {each}"))
    return len(gone) + len(missing)


def _try_sysctl(name: str, value: str) -> None:
    with contextlib.suppress(OSError):
        sysctl(name, value)
