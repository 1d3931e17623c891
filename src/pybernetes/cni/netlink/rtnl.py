"""The kernel's table of links, addresses and routes: the few operations that network plugins need.

A socket belongs to the network namespace of the thread that opened it. What the kernel refuses is an `OSError` with its
number; a link that is not there is a `LinkNotFound`.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from dataclasses import dataclass

from pybernetes.net.netlink import wire
from pybernetes.net.netlink.connection import ACK, CREATE, DUMP, EXCL, Connection
from pybernetes.net.netlink.wire import attribute, nested, number, text

from ..errors import CNIError

TYPE_CHECKING = False  # see errors.py
if TYPE_CHECKING:
    from ..fields import Address, Interface, Network

_NEWLINK, _DELLINK, _GETLINK, _SETLINK = 16, 17, 18, 19
_NEWADDR, _DELADDR, _GETADDR = 20, 21, 22
_NEWROUTE, _DELROUTE, _GETROUTE = 24, 25, 26
_ADDRESS, _IFNAME, _MTU, _LINK, _MASTER, _PROTINFO = 1, 3, 4, 5, 10, 12
_TXQLEN, _GSO_MAX_SIZE = 13, 41
_OPERSTATE, _LINKINFO, _NET_NS_PID, _AF_SPEC, _NET_NS_FD, _PROMISCUITY = 16, 18, 19, 26, 28, 30
_INFO_KIND, _INFO_DATA = 1, 2
_VETH_PEER, _BRIDGE_VLAN_FILTERING, _BRPORT_HAIRPIN = 1, 7, 4
_IFA_ADDRESS, _IFA_LOCAL, _IFA_BROADCAST, _IFA_FLAGS = 1, 2, 4, 8
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_PREFSRC, _RTA_METRICS, _RTA_TABLE = 1, 4, 5, 6, 7, 8, 15
_RTAX_MTU, _RTAX_ADVMSS = 2, 8
_ONLINK = 4  # RTNH_F_ONLINK

UNICAST, UNREACHABLE = 1, 7  # types of routes
MAIN_TABLE = 254
UP = 0x1
PROMISC = 0x100
ALLMULTI = 0x200
TENTATIVE = 0x40
DAD_FAILED = 0x08
OPERATIONAL = 6  # IF_OPER_UP

_IFINFO = struct.Struct("=BxHiII")
_IFADDR = struct.Struct("=BBBBI")
_RTMSG = struct.Struct("=BBBBBBBBI")


class LinkNotFound(CNIError):
    """There is no link of this name or number."""


@dataclass(frozen=True)
class Link:
    """A link as the kernel describes it; `peer` is the other end's number if that is in this or another namespace."""

    index: int
    name: str
    mac: str
    mtu: int
    flags: int
    master: int
    peer: int
    kind: str
    state: int
    promiscuity: int
    queue: int = 0
    """Packets that may wait to be sent."""

    @property
    def up(self) -> bool:
        return bool(self.flags & UP)


@dataclass(frozen=True)
class AddressOf:
    """An address on a link."""

    interface: Interface
    flags: int


@dataclass(frozen=True)
class Route:
    """A route of the main table (or another, if it says so)."""

    dst: Network
    gateway: Address | None = None
    link: int = 0
    mtu: int = 0
    advmss: int = 0
    priority: int = 0
    table: int = MAIN_TABLE
    scope: int = 0
    source: Address | None = None
    protocol: int = 3  # RTPROT_BOOT, what plugins' routes are
    onlink: bool = False
    """The gateway is on the link, whatever the addresses of the link say."""
    kind: int = UNICAST


class Netlink(Connection):
    """The links, addresses and routes of the namespace it was opened in."""

    def __init__(self) -> None:
        super().__init__(socket.NETLINK_ROUTE)

    # Links

    def link(self, which: str | int) -> Link:
        """The link of this name or number."""
        index = which if isinstance(which, int) else 0
        body = _IFINFO.pack(0, 0, index, 0, 0) + (b"" if index else attribute(_IFNAME, str(which)))
        try:
            return _link(self.request(_GETLINK, 0, body)[0])
        except OSError as error:
            if error.errno == 19:  # ENODEV
                raise LinkNotFound(f"Link not found: {which}") from None
            raise

    def link_with_data(self, name: str) -> tuple[Link, bytes]:
        """The link of this name, and the attributes of its kind."""
        index = self.link(name).index
        body = self.request(_GETLINK, 0, _IFINFO.pack(0, 0, index, 0, 0))[0]
        info = wire.attributes(wire.attributes(body[_IFINFO.size :]).get(_LINKINFO, b""))
        return _link(body), info.get(_INFO_DATA, b"")

    def links(self) -> list[Link]:
        """All links of the namespace."""
        return [_link(body) for body in self.request(_GETLINK, DUMP, _IFINFO.pack(0, 0, 0, 0, 0))]

    def add_bridge(self, name: str, mtu: int = 0, vlan_filtering: bool = False, mac: str = "") -> None:
        """Makes a bridge; `FileExistsError` if there is a link of that name. Without `mac` it takes that of a port."""
        data = nested(_INFO_DATA, attribute(_BRIDGE_VLAN_FILTERING, b"\1")) if vlan_filtering else b""
        body = _IFINFO.pack(0, 0, 0, 0, 0) + attribute(_IFNAME, name)
        body += attribute(_MTU, mtu) if mtu else b""
        body += attribute(_ADDRESS, mac_bytes(mac)) if mac else b""
        body += nested(_LINKINFO, attribute(_INFO_KIND, b"bridge"), data)
        self.request(_NEWLINK, CREATE | EXCL | ACK, body)

    def add_veth(
        self,
        name: str,
        peer: str,
        *,
        peer_netns: int | None = None,
        peer_pid: int | None = None,
        peer_mac: str = "",
        mtu: int = 0,
        master: int | None = None,
    ) -> None:
        """Makes a pair of links: `name` here, up, on the bridge `master`; `peer` in the namespace of a file descriptor
        or a process."""
        size = attribute(_MTU, mtu) if mtu else b""
        other = _IFINFO.pack(0, 0, 0, 0, 0) + attribute(_IFNAME, peer) + size
        other += attribute(_NET_NS_FD, peer_netns) if peer_netns is not None else b""
        other += attribute(_NET_NS_PID, peer_pid) if peer_pid is not None else b""
        other += attribute(_ADDRESS, mac_bytes(peer_mac)) if peer_mac else b""
        info = nested(_LINKINFO, attribute(_INFO_KIND, b"veth"), nested(_INFO_DATA, attribute(_VETH_PEER, other)))
        body = _IFINFO.pack(0, 0, 0, UP, UP) + attribute(_IFNAME, name) + size
        body += attribute(_MASTER, master) if master is not None else b""
        self.request(_NEWLINK, CREATE | EXCL | ACK, body + info)

    def add_link(
        self,
        name: str,
        kind: str,
        *data: bytes,
        link: int = 0,
        mac: str = "",
        mtu: int = 0,
        netns: int | None = None,
        queue: int | None = None,
    ) -> None:
        """Makes a link of a kind (`macvlan`, `vxlan`, ...) with the attributes of that kind, on top of another link or
        in the namespace of a file descriptor; `FileExistsError` if there is one of that name."""
        body = _IFINFO.pack(0, 0, 0, 0, 0) + attribute(_IFNAME, name)
        body += attribute(_LINK, link) if link else b""
        body += attribute(_MTU, mtu) if mtu else b""
        body += attribute(_TXQLEN, queue) if queue is not None else b""
        body += attribute(_ADDRESS, mac_bytes(mac)) if mac else b""
        body += attribute(_NET_NS_FD, netns) if netns is not None else b""
        info = [attribute(_INFO_KIND, kind.encode()), *([nested(_INFO_DATA, *data)] if data else [])]
        self.request(_NEWLINK, CREATE | EXCL | ACK, body + nested(_LINKINFO, *info))

    def delete_link(self, index: int) -> None:
        """Removes a link, and with one end of a pair the other."""
        self.request(_DELLINK, ACK, _IFINFO.pack(0, 0, index, 0, 0))

    def set_link(
        self,
        index: int,
        up: bool | None = None,
        master: int | None = None,
        mac: str = "",
        promisc: bool | None = None,
        *,
        allmulti: bool | None = None,
        mtu: int = 0,
        queue: int | None = None,
        gso_max: int = 0,
        name: str = "",
        netns: int | None = None,
    ) -> None:
        """Changes what is given of a link."""
        given = ((UP, up), (PROMISC, promisc), (ALLMULTI, allmulti))
        flags = sum(bit for bit, on in given if on)
        change = sum(bit for bit, on in given if on is not None)
        body = _IFINFO.pack(0, 0, index, flags, change)
        body += attribute(_MTU, mtu) if mtu else b""
        body += attribute(_TXQLEN, queue) if queue is not None else b""
        body += attribute(_GSO_MAX_SIZE, gso_max) if gso_max else b""
        body += attribute(_IFNAME, name) if name else b""
        body += attribute(_NET_NS_FD, netns) if netns is not None else b""
        body += attribute(_MASTER, master) if master is not None else b""
        body += attribute(_ADDRESS, mac_bytes(mac)) if mac else b""
        self.request(_NEWLINK, ACK, body)

    def set_hairpin(self, index: int, on: bool) -> None:
        """Whether a bridge may send a frame back through the port it came from."""
        body = _IFINFO.pack(socket.AF_BRIDGE, 0, index, 0, 0)
        self.request(_SETLINK, ACK, body + nested(_PROTINFO, attribute(_BRPORT_HAIRPIN, bytes([on]))))

    def set_vlan(self, index: int, vlan: int) -> None:
        """Makes a bridge's port one of this VLAN: frames leave it untagged, and untagged ones that enter are of it."""
        master, pvid, untagged = 1, 2, 4
        flags = attribute(0, struct.pack("=H", master))
        body = _IFINFO.pack(socket.AF_BRIDGE, 0, index, 0, 0)
        body += nested(_AF_SPEC, flags, attribute(2, struct.pack("=HH", pvid | untagged, vlan)))
        self.request(_SETLINK, ACK, body)

    # Addresses

    def addresses(self, index: int) -> list[AddressOf]:
        """The addresses on a link, of both families."""
        found = []
        for body in self.request(_GETADDR, DUMP, _IFADDR.pack(0, 0, 0, 0, 0)):
            _, prefix, flags, _, of = _IFADDR.unpack_from(body)
            if of != index:
                continue
            parts = wire.attributes(body[_IFADDR.size :])
            address = parts.get(_IFA_LOCAL) or parts[_IFA_ADDRESS]
            flags = number(parts[_IFA_FLAGS]) if _IFA_FLAGS in parts else flags
            found.append(AddressOf(ipaddress.ip_interface((address, prefix)), flags))
        return found

    def add_address(self, index: int, address: Interface) -> None:
        """Puts an address on a link; `FileExistsError` if it is there."""
        self.request(_NEWADDR, CREATE | EXCL | ACK, _address(index, address))

    def delete_address(self, index: int, address: Interface) -> None:
        """Takes an address from a link."""
        self.request(_DELADDR, ACK, _address(index, address))

    # Routes

    def routes(self, version: int, kinds: tuple[int, ...] = (UNICAST,)) -> list[Route]:
        """The routes of all tables, for IP of this version."""
        family = socket.AF_INET6 if version == 6 else socket.AF_INET
        dump = self.request(_GETROUTE, DUMP, _RTMSG.pack(family, 0, 0, 0, 0, 0, 0, 0, 0))
        return [_route(body) for body in dump if _RTMSG.unpack_from(body)[7] in kinds]

    def add_route(self, route: Route) -> None:
        """Adds a route; `FileExistsError` if there is such a one."""
        self.request(_NEWROUTE, CREATE | EXCL | ACK, _packed(route))

    def delete_route(self, route: Route) -> None:
        """Removes a route; `ProcessLookupError` if there is no such one."""
        self.request(_DELROUTE, ACK, _packed(route))

    def route_to(self, address: Address) -> Route:
        """Which way the kernel would send to an address."""
        family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        body = _RTMSG.pack(family, address.max_prefixlen, 0, 0, 0, 0, 0, 0, 0) + attribute(_RTA_DST, address.packed)
        return _route(self.request(_GETROUTE, 0, body)[0])


def mac_bytes(mac: str) -> bytes:
    """A hardware address of six bytes, `02:42:...`."""
    try:
        packed = bytes.fromhex(mac.replace(":", "").replace("-", ""))
    except ValueError:
        packed = b""
    if len(packed) != 6:
        raise CNIError(f"address {mac}: invalid MAC address")
    return packed


def _link(body: bytes) -> Link:
    _, _, index, flags, _ = _IFINFO.unpack_from(body)
    parts = wire.attributes(body[_IFINFO.size :])
    info = wire.attributes(parts.get(_LINKINFO, b""))
    return Link(
        index=index,
        name=text(parts.get(_IFNAME, b"")),
        mac=parts.get(_ADDRESS, b"").hex(":"),
        mtu=number(parts.get(_MTU)),
        flags=flags,
        master=number(parts.get(_MASTER)),
        peer=number(parts.get(_LINK)),
        kind=text(info.get(_INFO_KIND, b"")),
        state=number(parts.get(_OPERSTATE)),
        promiscuity=number(parts.get(_PROMISCUITY)),
        queue=number(parts.get(_TXQLEN)),
    )


def _address(index: int, address: Interface) -> bytes:
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    body = _IFADDR.pack(family, address.network.prefixlen, 0, 0, index)
    body += attribute(_IFA_LOCAL, address.packed) + attribute(_IFA_ADDRESS, address.packed)
    if address.version == 4 and address.network.prefixlen < 31:
        body += attribute(_IFA_BROADCAST, address.network.broadcast_address.packed)
    return body


def _packed(route: Route) -> bytes:
    family = socket.AF_INET6 if route.dst.version == 6 else socket.AF_INET
    small = route.table if route.table < 256 else 0
    flags = _ONLINK if route.onlink else 0
    body = _RTMSG.pack(family, route.dst.prefixlen, 0, 0, small, route.protocol, route.scope, route.kind, flags)
    body += attribute(_RTA_TABLE, route.table)
    body += attribute(_RTA_DST, route.dst.network_address.packed) if route.dst.prefixlen else b""
    body += attribute(_RTA_GATEWAY, route.gateway.packed) if route.gateway else b""
    body += attribute(_RTA_OIF, route.link) if route.link else b""
    body += attribute(_RTA_PREFSRC, route.source.packed) if route.source else b""
    body += attribute(_RTA_PRIORITY, route.priority) if route.priority else b""
    metrics = {_RTAX_MTU: route.mtu, _RTAX_ADVMSS: route.advmss}
    given = [attribute(kind, value) for kind, value in metrics.items() if value]
    return body + (nested(_RTA_METRICS, *given) if given else b"")


def _route(body: bytes) -> Route:
    family, prefix, _, _, table, protocol, scope, kind, flags = _RTMSG.unpack_from(body)
    parts = wire.attributes(body[_RTMSG.size :])
    empty = bytes(16 if family == socket.AF_INET6 else 4)
    metrics = wire.attributes(parts.get(_RTA_METRICS, b""))
    gateway, source = parts.get(_RTA_GATEWAY), parts.get(_RTA_PREFSRC)
    return Route(
        dst=ipaddress.ip_network((parts.get(_RTA_DST, empty), prefix), strict=False),
        gateway=ipaddress.ip_address(gateway) if gateway else None,
        link=number(parts.get(_RTA_OIF)),
        mtu=number(metrics.get(_RTAX_MTU)),
        advmss=number(metrics.get(_RTAX_ADVMSS)),
        priority=number(parts.get(_RTA_PRIORITY)),
        table=number(parts.get(_RTA_TABLE)) or table,
        scope=scope,
        source=ipaddress.ip_address(source) if source else None,
        protocol=protocol,
        onlink=bool(flags & _ONLINK),
        kind=kind,
    )
