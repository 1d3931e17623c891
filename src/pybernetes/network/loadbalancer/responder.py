"""Answers ARP and neighbour solicitations for a set of addresses on one link of this node.

The kernel does not have these addresses, so it does not answer; nothing but the ports of Services is reached at them.
Sockets are open only while there is an address of their family. A new address is announced to all at once, and twice
more in case the first announcement was lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
import struct
from collections.abc import Iterable

from pybernetes.api.addresses import IPAddress
from pybernetes.cni.netlink.rtnl import Link

from . import neighbors

ANNOUNCE_AGAIN = (1.0, 5.0)
"""Seconds after which an address that is new here is announced again."""
_AT_ONCE = 64
"""Packets that are read before the loop does something else."""
_ICMP6_FILTER = 1
_PACKET_HOST_LENGTH = 2048
log = logging.getLogger(__name__)


class Responder:
    """The addresses of one link. Invariant: a socket is open exactly while `addresses` has one of its family."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._mac = bytes.fromhex(link.mac.replace(":", ""))
        self.addresses: frozenset[IPAddress] = frozenset()
        self._packed: frozenset[bytes] = frozenset()
        self._loop = asyncio.get_running_loop()
        self._arp: socket.socket | None = None
        self._ndp: socket.socket | None = None
        self._joined: set[bytes] = set()
        self._later: list[asyncio.TimerHandle] = []

    def set(self, wanted: Iterable[IPAddress]) -> None:
        """Answer for these and no others. Raises OSError if the link is gone or sockets are refused."""
        new = frozenset(wanted)
        added = new - self.addresses
        self._open(4 in {each.version for each in new}, 6 in {each.version for each in new})
        self.addresses, self._packed = new, frozenset(each.packed for each in new)
        self._join()
        for address in sorted(added, key=lambda each: (each.version, int(each))):
            log.info("announcing %s on %s", address, self.link.name)
            self._announce(address)
            self._later += [self._loop.call_later(delay, self._announce, address) for delay in ANNOUNCE_AGAIN]
        self._later = [each for each in self._later if not each.cancelled() and each.when() > self._loop.time()]

    def close(self) -> None:
        """Answer no more."""
        for timer in self._later:
            timer.cancel()
        self.addresses, self._packed = frozenset(), frozenset()
        self._open(False, False)

    def _open(self, arp: bool, ndp: bool) -> None:
        if arp and self._arp is None:
            self._arp = _arp_socket(self.link.name)
            self._loop.add_reader(self._arp.fileno(), self._read_arp, self._arp)
        if ndp and self._ndp is None:
            self._ndp = _ndp_socket(self.link.name)
            self._loop.add_reader(self._ndp.fileno(), self._read_ndp, self._ndp)
        if not arp and self._arp is not None:
            self._shut(self._arp)
            self._arp = None
        if not ndp and self._ndp is not None:
            self._shut(self._ndp)
            self._ndp = None
            self._joined.clear()

    def _shut(self, made: socket.socket) -> None:
        self._loop.remove_reader(made.fileno())
        made.close()

    def _join(self) -> None:
        """Listen to the multicast groups that are asked for IPv6 addresses."""
        if self._ndp is None:
            return
        groups = {neighbors.solicited_node(each.packed) for each in self.addresses if each.version == 6}
        index = struct.pack("@I", self.link.index)
        for group, option in (
            *((each, socket.IPV6_JOIN_GROUP) for each in groups - self._joined),
            *((each, socket.IPV6_LEAVE_GROUP) for each in self._joined - groups),
        ):
            with contextlib.suppress(OSError):
                self._ndp.setsockopt(socket.IPPROTO_IPV6, option, group + index)
        self._joined = groups

    def _announce(self, address: IPAddress) -> None:
        if address not in self.addresses:
            return
        with contextlib.suppress(OSError):  # the link is down: who comes up asks
            if isinstance(address, ipaddress.IPv4Address) and self._arp is not None:
                for frame in neighbors.gratuitous_arp(self._mac, address.packed):
                    self._arp.send(frame)
            elif self._ndp is not None:
                message = neighbors.advertisement(self._mac, address.packed, solicited=False)
                self._send_ndp(message, neighbors.ALL_NODES)

    def _read_arp(self, made: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                frame = made.recv(_PACKET_HOST_LENGTH)
            except BlockingIOError:
                return
            except OSError as error:
                log.warning("ARP on %s: %s", self.link.name, error)
                return
            request = neighbors.parse_arp(frame)
            if request is not None and request.target in self._packed and request.sender != request.target:
                with contextlib.suppress(OSError):
                    made.send(neighbors.arp_reply(self._mac, request))

    def _read_ndp(self, made: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                message, ancillary, _, peer = made.recvmsg(_PACKET_HOST_LENGTH, socket.CMSG_SPACE(4))
            except BlockingIOError:
                return
            except OSError as error:
                log.warning("neighbour discovery on %s: %s", self.link.name, error)
                return
            # 255 hops are left only if no router has passed it on: the packet is from this link.
            if not any(int.from_bytes(data, "little") == 255 for _, _, data in ancillary):
                continue
            target = neighbors.solicited_target(message)
            if target is not None and target in self._packed:
                sender = ipaddress.IPv6Address(peer[0].partition("%")[0])
                asked_by = neighbors.ALL_NODES if sender.is_unspecified else sender.packed
                answer = neighbors.advertisement(self._mac, target, solicited=not sender.is_unspecified)
                with contextlib.suppress(OSError):
                    self._send_ndp(answer, asked_by)

    def _send_ndp(self, message: bytes, to: bytes) -> None:
        if self._ndp is not None:
            where = str(ipaddress.IPv6Address(to)), 0, 0, self.link.index
            self._ndp.sendto(message, where)


def _arp_socket(link: str) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
    try:
        made.bind((link, neighbors.ETHERNET_ARP))
    except OSError:
        made.close()
        raise
    return made


def _ndp_socket(link: str) -> socket.socket:
    made = socket.socket(socket.AF_INET6, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_ICMPV6)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, link.encode() + b"\0")
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        blocked = bytearray(b"\xff" * 32)
        word = neighbors.SOLICITATION >> 5
        mask = 0xFFFFFFFF & ~(1 << (neighbors.SOLICITATION & 31))
        blocked[word * 4 : word * 4 + 4] = struct.pack("@I", mask)
        made.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, bytes(blocked))
    except OSError:
        made.close()
        raise
    return made
