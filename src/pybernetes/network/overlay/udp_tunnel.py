"""The backend `udp`: packets to other nodes' pods come out of a TUN device and are sent to these nodes by UDP.

For machines between which nothing but UDP passes and whose kernel has no VXLAN. The device leaves segmentation and
checksums undone (`IFF_VNET_HDR`): one read gives up to 60 KB of a TCP stream with a header of ten bytes that says what
is left to do. Both travel together in one datagram, which the kernel cuts into fragments, and go into the device of the
other node as they are. So Python handles one packet where a program without this offload handles forty.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import struct
from collections.abc import Mapping

from pybernetes.cni.fields import Address, Network

PORT = 8285
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
_CHECKSUM, _TSO4, _TSO6 = 0x1, 0x2, 0x4
_HEADER = 10  # struct virtio_net_hdr
_LONGEST = 65_507 + _HEADER
_AT_ONCE = 64
"""Packets that are handled before others of this process get their turn."""
_BUFFER = 4 << 20
_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _DONT = 10, 23, 0
_SO_RCVBUFFORCE, _SO_SNDBUFFORCE = 33, 32


class UdpTunnel:
    """A TUN device and a socket, served by the running event loop until `close`; the device goes with it."""

    def __init__(self, name: str, address: Address, port: int = PORT) -> None:
        self.name, self.address, self.port = name, address, port
        self.dropped = 0
        """Packets that no node could be found for, that came from no known node, or that the kernel did not take."""
        self._ranges: dict[int, list[tuple[int, dict[int, tuple[str, int]]]]] = {4: [], 6: []}
        """For each IP version: bits behind the prefix -> (prefix -> where to send), longest prefix first."""
        self._peers: frozenset[str] = frozenset()
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        self._socket = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self._tun = -1
        try:
            for option in (_SO_RCVBUFFORCE, _SO_SNDBUFFORCE):
                with contextlib.suppress(OSError):
                    self._socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
            level, option = (
                (socket.IPPROTO_IP, _IP_MTU_DISCOVER)
                if address.version == 4
                else (socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER)
            )
            self._socket.setsockopt(level, option, _DONT)
            self._socket.bind((str(address), port))
            self._tun = _open_tun(name)
        except BaseException:
            self.close()
            raise
        loop = asyncio.get_running_loop()
        loop.add_reader(self._tun, self._from_pods)
        loop.add_reader(self._socket.fileno(), self._from_nodes)

    def route(self, tunnels: Mapping[Network, Address]) -> None:
        """Which range is behind which node."""
        tables: dict[int, dict[int, dict[int, tuple[str, int]]]] = {4: {}, 6: {}}
        for network, address in tunnels.items():
            bits = network.max_prefixlen - network.prefixlen
            table = tables[network.version].setdefault(bits, {})
            table[int(network.network_address) >> bits] = (str(address), self.port)
        self._ranges = {version: sorted(table.items()) for version, table in tables.items()}
        self._peers = frozenset(str(address) for address in tunnels.values())

    def close(self) -> None:
        """Ends it; what is on the way is lost."""
        with contextlib.suppress(RuntimeError):
            loop = asyncio.get_running_loop()
            if self._tun >= 0:
                loop.remove_reader(self._tun)
            if self._socket.fileno() >= 0:
                loop.remove_reader(self._socket.fileno())
        if self._tun >= 0:
            os.close(self._tun)
            self._tun = -1
        self._socket.close()

    def _from_pods(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                packet = os.read(self._tun, _LONGEST)
            except OSError:  # nothing more, or the device was removed: the agent makes it anew
                return
            target = self._target(packet)
            try:
                if target is None:
                    raise OSError
                self._socket.sendto(packet, target)
            except OSError:  # a full queue loses packets, as on any link
                self.dropped += 1

    def _from_nodes(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                packet, sender = self._socket.recvfrom(_LONGEST)
            except OSError:
                return
            try:
                if sender[0] not in self._peers or len(packet) < _HEADER + 20:
                    raise OSError
                os.write(self._tun, packet)
            except OSError:
                self.dropped += 1

    def _target(self, packet: bytes) -> tuple[str, int] | None:
        if len(packet) < _HEADER + 20:
            return None
        version = packet[_HEADER] >> 4
        at, length = (_HEADER + 16, 4) if version == 4 else (_HEADER + 24, 16)
        destination = int.from_bytes(packet[at : at + length], "big")
        for bits, table in self._ranges.get(version, ()):
            found = table.get(destination >> bits)
            if found is not None:
                return found
        return None


def _open_tun(name: str) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        flags = _IFF_TUN | _IFF_NO_PI | _IFF_VNET_HDR
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
        fcntl.ioctl(descriptor, _TUNSETOFFLOAD, _CHECKSUM | _TSO4 | _TSO6)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
