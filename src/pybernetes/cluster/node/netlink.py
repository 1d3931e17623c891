"""Links, addresses and routes by rtnetlink: the few requests a node needs.

Written out instead of taken from a library, because the process that holds a node must stay small (a netlink library
takes more memory than the rest of it) and `up` has no time to import one. A socket belongs to the network namespace it
was opened in, also after its process has gone into another one: that is how a node's cable is plugged in at both ends.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from types import TracebackType

_NEWLINK, _DELLINK, _NEWADDR, _NEWROUTE, _GETLINK = 16, 17, 20, 24, 18
_ERROR = 2
_REQUEST, _ACK, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x200, 0x400
_IFNAME, _MASTER, _LINKINFO, _NS_PID, _MAC = 3, 10, 18, 19, 1
_INFO_KIND, _INFO_DATA, _PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PREFSRC = 1, 4, 5, 7
_UP = 1
_MAIN_TABLE, _PROTOCOL_STATIC, _UNICAST, _SCOPE_GLOBAL, _SCOPE_LINK = 254, 4, 1, 0, 253


class Netlink:
    """A connection to the kernel's network configuration of the namespace it was made in. Errors are OSError."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))
        self._sequence = 0

    def __enter__(self) -> Netlink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def index(self, name: str) -> int | None:
        """The number of a link, None if there is none of this name."""
        try:
            answer = self._request(_GETLINK, 0, _link() + _text(_IFNAME, name), name)
        except OSError as error:
            if error.errno == 19:  # ENODEV
                return None
            raise
        return int(struct.unpack_from("=i", answer, 4)[0])

    def add_bridge(self, name: str, mac: str) -> None:
        """Makes a bridge. Its MAC is given, else it would be that of whichever port came first."""
        info = _attribute(_LINKINFO, _text(_INFO_KIND, "bridge"))
        self._request(_NEWLINK, _CREATE | _EXCLUSIVE, _link() + _text(_IFNAME, name) + _mac(mac) + info, name)

    def add_cable(self, name: str, master: str, pid: int, far_name: str, far_mac: str) -> None:
        """Makes a veth pair: one end here, a port of the bridge `master`, the other in the namespace of a process."""
        far = _link() + _text(_IFNAME, far_name) + _mac(far_mac) + _attribute(_NS_PID, struct.pack("=I", pid))
        info = _attribute(
            _LINKINFO, _text(_INFO_KIND, "veth") + _attribute(_INFO_DATA, _attribute(_PEER, far))
        )  # fmt: skip
        port = _attribute(_MASTER, struct.pack("=i", self._index(master)))
        body = _link(flags=_UP, change=_UP) + _text(_IFNAME, name) + port + info
        self._request(_NEWLINK, _CREATE | _EXCLUSIVE, body, name)

    def up(self, name: str) -> None:
        """Switches a link on."""
        self._request(_NEWLINK, 0, _link(self._index(name), _UP, _UP), name)

    def down(self, name: str) -> None:
        """Switches a link off: the cable is pulled."""
        self._request(_NEWLINK, 0, _link(self._index(name), 0, _UP), name)

    def delete(self, name: str) -> bool:
        """Removes a link, and says whether there was one."""
        index = self.index(name)
        if index is None:
            return False
        self._request(_DELLINK, 0, _link(index), name)
        return True

    def add_address(self, name: str, address: str) -> None:
        """Gives a link an address, written as `10.0.0.1/24`."""
        interface = ipaddress.IPv4Interface(address)
        packed = interface.ip.packed
        header = struct.pack("=BBBBi", socket.AF_INET, interface.network.prefixlen, 0, _SCOPE_GLOBAL, self._index(name))
        body = header + _attribute(_IFA_LOCAL, packed) + _attribute(_IFA_ADDRESS, packed)
        self._request(_NEWADDR, _CREATE | _EXCLUSIVE, body, name)

    def add_route(self, network: str, name: str, *, gateway: str | None = None, source: str | None = None) -> None:
        """Routes a network over a link; without a gateway all its addresses are on the link."""
        destination = ipaddress.IPv4Network(network)
        scope = _SCOPE_GLOBAL if gateway else _SCOPE_LINK
        body = struct.pack(
            "=BBBBBBBBI", socket.AF_INET, destination.prefixlen, 0, 0, _MAIN_TABLE, _PROTOCOL_STATIC, scope, _UNICAST, 0
        )
        body += _attribute(_RTA_OIF, struct.pack("=i", self._index(name)))
        if destination.prefixlen:
            body += _attribute(_RTA_DST, destination.network_address.packed)
        if gateway:
            body += _attribute(_RTA_GATEWAY, ipaddress.IPv4Address(gateway).packed)
        if source:
            body += _attribute(_RTA_PREFSRC, ipaddress.IPv4Address(source).packed)
        self._request(_NEWROUTE, _CREATE | _EXCLUSIVE, body, network)

    def _index(self, name: str) -> int:
        index = self.index(name)
        if index is None:
            raise OSError(19, os.strerror(19), name)
        return index

    def _request(self, kind: int, flags: int, body: bytes, subject: str) -> bytes:
        """Sends one request and answers the body of the reply."""
        self._sequence += 1
        acknowledge = 0 if kind == _GETLINK else _ACK
        header = struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | acknowledge | flags, self._sequence, 0)
        self._socket.send(header + body)
        while True:
            answer = self._socket.recv(65536)
            length, answered, _, sequence, _ = struct.unpack_from("=IHHII", answer)
            if sequence != self._sequence:
                continue
            if answered == _ERROR:
                code = -struct.unpack_from("=i", answer, 16)[0]
                if code:
                    raise OSError(code, os.strerror(code), subject)
            return answer[16:length]


def _link(index: int = 0, flags: int = 0, change: int = 0) -> bytes:
    return struct.pack("=BBHiII", socket.AF_UNSPEC, 0, 0, index, flags, change)


def _attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def _text(kind: int, text: str) -> bytes:
    return _attribute(kind, text.encode() + b"\0")


def _mac(address: str) -> bytes:
    return _attribute(_MAC, bytes.fromhex(address.replace(":", "")))
