"""Tunnel devices, neighbours and forwarding entries of the kernel, and notifications of what others change there.

The numbers are the kernel's (`linux/if_link.h`, `neighbour.h`, `rtnetlink.h`).
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
from dataclasses import dataclass

from pybernetes.cni.fields import Address
from pybernetes.cni.netlink import rtnl
from pybernetes.net.netlink import wire
from pybernetes.net.netlink.connection import ACK, CREATE, DUMP
from pybernetes.net.netlink.wire import attribute, number

from .plan import PROTOCOL, Forwarding, Neighbour

_NEWNEIGH, _DELNEIGH, _GETNEIGH = 28, 29, 30
_REPLACE = 0x100
_NDMSG = struct.Struct("=BxxxiHBB")  # family, link, state, flags, type
_NDA_DST, _NDA_LLADDR = 1, 2
_PERMANENT, _NTF_SELF = 0x80, 0x02
_BRIDGE = 7  # AF_BRIDGE
_GETLINK = 18
_LINKINFO, _INFO_DATA = 18, 2
_VXLAN_ID, _VXLAN_LINK, _VXLAN_LOCAL, _VXLAN_LEARNING, _VXLAN_PORT, _VXLAN_LOCAL6 = 1, 3, 4, 7, 15, 17
_GROUPS = 0x1 | 0x4 | 0x10 | 0x40 | 0x100 | 0x400  # links, neighbours, addresses and routes of both IP versions
_LINK_MESSAGES, _ADDRESS_MESSAGES, _ROUTE_MESSAGES, _NEIGHBOUR_MESSAGES = (16, 17), (20, 21), (24, 25), (28, 29)
_ZERO_MAC = "00:00:00:00:00:00"


@dataclass(frozen=True, slots=True)
class Vxlan:
    """The properties that identify our VXLAN device."""

    id: int
    port: int
    link: int
    local: Address


class Rtnetlink(rtnl.Netlink):
    """Links, routes and neighbours of the namespace it was opened in."""

    def add_vxlan(self, name: str, vxlan: Vxlan, mac: str, mtu: int) -> None:
        """Makes a VXLAN device that learns nothing: its entries are ours."""
        local = _VXLAN_LOCAL if vxlan.local.version == 4 else _VXLAN_LOCAL6
        self.add_link(
            name,
            "vxlan",
            attribute(_VXLAN_ID, vxlan.id),
            attribute(_VXLAN_LINK, vxlan.link),
            attribute(local, vxlan.local.packed),
            attribute(_VXLAN_LEARNING, b"\0"),
            attribute(_VXLAN_PORT, struct.pack("!H", vxlan.port)),
            mac=mac,
            mtu=mtu,
        )

    def vxlan(self, index: int) -> Vxlan | None:
        """The properties of a VXLAN device; None if the link is of another kind."""
        answer = self.request(_GETLINK, 0, struct.pack("=BxHiII", 0, 0, index, 0, 0))[0]
        info = wire.attributes(wire.attributes(answer[16:]).get(_LINKINFO, b""))
        if wire.text(info.get(1, b"")) != "vxlan":
            return None
        data = wire.attributes(info.get(_INFO_DATA, b""))
        local = data.get(_VXLAN_LOCAL) or data.get(_VXLAN_LOCAL6)
        if not local:
            return None
        port = struct.unpack("!H", data.get(_VXLAN_PORT, b"\0\0"))[0]
        return Vxlan(number(data.get(_VXLAN_ID)), port, number(data.get(_VXLAN_LINK)), ipaddress.ip_address(local))

    def neighbours(self, link: int) -> set[Neighbour]:
        """The permanent neighbour entries of a link."""
        found = set()
        for family in (socket.AF_INET, socket.AF_INET6):
            for body in self.request(_GETNEIGH, DUMP, _NDMSG.pack(family, 0, 0, 0, 0)):
                _, index, state, _, _ = _NDMSG.unpack_from(body)
                parts = wire.attributes(body[_NDMSG.size :])
                if index == link and state & _PERMANENT and _NDA_LLADDR in parts:
                    found.add(Neighbour(link, ipaddress.ip_address(parts[_NDA_DST]), parts[_NDA_LLADDR].hex(":")))
        return found

    def forwarding(self, link: int) -> set[Forwarding]:
        """The forwarding entries of a VXLAN device."""
        found = set()
        for body in self.request(_GETNEIGH, DUMP, _NDMSG.pack(_BRIDGE, 0, 0, 0, 0)):
            _, index, _, _, _ = _NDMSG.unpack_from(body)
            parts = wire.attributes(body[_NDMSG.size :])
            mac = parts.get(_NDA_LLADDR, b"").hex(":")
            if index == link and _NDA_DST in parts and mac != _ZERO_MAC:
                found.add(Forwarding(link, mac, ipaddress.ip_address(parts[_NDA_DST])))
        return found

    def set_neighbour(self, entry: Neighbour) -> None:
        """Adds a permanent entry, or replaces that of the address."""
        self.request(_NEWNEIGH, CREATE | _REPLACE | ACK, _neighbour(entry))

    def delete_neighbour(self, entry: Neighbour) -> None:
        """Removes an entry."""
        self.request(_DELNEIGH, ACK, _neighbour(entry))

    def set_forwarding(self, entry: Forwarding) -> None:
        """Adds an entry, or replaces that of the MAC."""
        self.request(_NEWNEIGH, CREATE | _REPLACE | ACK, _forwarding(entry))

    def delete_forwarding(self, entry: Forwarding) -> None:
        """Removes an entry."""
        self.request(_DELNEIGH, ACK, _forwarding(entry))


class Changes:
    """Reports that others changed something of ours: routes, devices, entries or addresses."""

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE
        )
        self._socket.bind((0, _GROUPS))
        self.links: set[int] = set()
        """Numbers of the links whose changes matter: tunnels, and those the nodes' packets leave by."""

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def any(self) -> bool:
        """Reads what is there; whether something of it matters. What the kernel could not report matters."""
        matters = False
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                return matters
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                matters = True
                continue
            matters = matters or any(self._matters(kind, body) for kind, _, _, body in wire.messages(data))

    def _matters(self, kind: int, body: bytes) -> bool:
        if kind in _LINK_MESSAGES or kind in _NEIGHBOUR_MESSAGES:
            return int(struct.unpack_from("=i", body, 4)[0]) in self.links
        if kind in _ADDRESS_MESSAGES:
            return int(struct.unpack_from("=I", body, 4)[0]) in self.links
        return kind in _ROUTE_MESSAGES and body[5] == PROTOCOL


def _neighbour(entry: Neighbour) -> bytes:
    family = socket.AF_INET if entry.address.version == 4 else socket.AF_INET6
    body = _NDMSG.pack(family, entry.link, _PERMANENT, 0, 0)
    return body + attribute(_NDA_DST, entry.address.packed) + attribute(_NDA_LLADDR, rtnl.mac_bytes(entry.mac))


def _forwarding(entry: Forwarding) -> bytes:
    body = _NDMSG.pack(_BRIDGE, entry.link, _PERMANENT, _NTF_SELF, 0)
    return body + attribute(_NDA_LLADDR, rtnl.mac_bytes(entry.mac)) + attribute(_NDA_DST, entry.address.packed)
