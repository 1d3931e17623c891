"""Traffic control: a token bucket on a link, and the redirection of what a link receives to another one.

The numbers are the kernel's (`linux/pkt_sched.h`, `pkt_cls.h`, `tc_act/tc_mirred.h`).
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from pybernetes.net.netlink import wire
from pybernetes.net.netlink.connection import ACK, CREATE, DUMP, EXCL
from pybernetes.net.netlink.wire import attribute, nested

from .rtnl import Netlink

_NEWQDISC, _GETQDISC, _NEWTFILTER = 36, 38, 44
_TCMSG = struct.Struct("=BxxxiIII")  # family, link, handle, parent, info
_KIND, _OPTIONS = 1, 2
_ROOT, _INGRESS, _INGRESS_HANDLE, _FIRST_HANDLE = 0xFFFFFFFF, 0xFFFFFFF1, 0xFFFF0000, 0x00010000
_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6
_RATE = struct.Struct("=BBHhHI")  # cell_log, linklayer, overhead, cell_align, mpu, rate
_ETHERNET = 1
_U32_CLASSID, _U32_SEL, _U32_ACT = 1, 5, 7
_EVERYTHING = struct.pack("=BBBxHHhhI4I", 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
"""A selector that ends the search, with one key that any packet has."""
_MIRRED_PARMS = 2
_STOLEN, _EGRESS_REDIRECT = 4, 1
_ETH_P_ALL = 3
_MAX = 0xFFFFFFFF
_TICKS = 15_625_000
"""Units of time of traffic control in a second: 64 ns."""


@dataclass(frozen=True)
class TokenBucket:
    """How fast a link sends: bytes a second, bytes at once, bytes that may wait."""

    rate: int
    burst: int
    limit: int


class Traffic(Netlink):
    """Queueing disciplines and filters of the namespace it was opened in."""

    def set_token_bucket(self, link: int, bucket: TokenBucket) -> None:
        """Limits what a link sends; `FileExistsError` if it has a discipline of its own."""
        rate = _RATE.pack(0, _ETHERNET, 0, -1, 0, min(bucket.rate, _MAX))
        ticks = min(bucket.burst * _TICKS // max(bucket.rate, 1), _MAX)
        parms = rate + _RATE.pack(0, 0, 0, 0, 0, 0) + struct.pack("=III", min(bucket.limit, _MAX), ticks, 0)
        options = [attribute(_TBF_PARMS, parms), attribute(_TBF_BURST, min(bucket.burst, _MAX))]
        if bucket.rate > _MAX:
            options.append(attribute(_TBF_RATE64, struct.pack("=Q", bucket.rate)))
        self._add_qdisc(link, _ROOT, _FIRST_HANDLE, "tbf", nested(_OPTIONS, *options))

    def token_bucket(self, link: int) -> TokenBucket | None:
        """The token bucket of a link, without its burst (the kernel keeps that as time); None if it has none."""
        for body in self.request(_GETQDISC, DUMP, _TCMSG.pack(0, link, 0, 0, 0)):
            _, index, _, parent, _ = _TCMSG.unpack_from(body)
            parts = wire.attributes(body[_TCMSG.size :])
            if index != link or parent != _ROOT or wire.text(parts.get(_KIND, b"")) != "tbf":
                continue
            options = wire.attributes(parts.get(_OPTIONS, b""))
            parms = options.get(_TBF_PARMS, b"")
            rate = int(_RATE.unpack_from(parms)[5])
            if _TBF_RATE64 in options:
                rate = int(struct.unpack("=Q", options[_TBF_RATE64])[0])
            limit, ticks = struct.unpack_from("=II", parms, 2 * _RATE.size)
            return TokenBucket(rate, ticks * rate // _TICKS, limit)
        return None

    def redirect_received(self, link: int, to: int) -> None:
        """Everything that a link receives is sent by another link, whose discipline then applies to it."""
        self._add_qdisc(link, _INGRESS, _INGRESS_HANDLE, "ingress")
        parms = struct.pack("=IIiiiiI", 0, 0, _STOLEN, 0, 0, _EGRESS_REDIRECT, to)
        action = nested(1, attribute(_KIND, "mirred"), nested(_OPTIONS, attribute(_MIRRED_PARMS, parms)))
        options = nested(
            _OPTIONS,
            attribute(_U32_CLASSID, _FIRST_HANDLE | 1),
            attribute(_U32_SEL, _EVERYTHING),
            nested(_U32_ACT, action),
        )
        info = 1 << 16 | socket.htons(_ETH_P_ALL)
        body = _TCMSG.pack(0, link, 0, _INGRESS_HANDLE, info) + attribute(_KIND, "u32") + options
        self.request(_NEWTFILTER, CREATE | EXCL | ACK, body)

    def _add_qdisc(self, link: int, parent: int, handle: int, kind: str, options: bytes = b"") -> None:
        body = _TCMSG.pack(0, link, handle, parent, 0) + attribute(_KIND, kind) + options
        self.request(_NEWQDISC, CREATE | EXCL | ACK, body)
