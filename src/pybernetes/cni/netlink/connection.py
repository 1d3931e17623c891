"""A socket to the kernel: requests and what it answers.

It belongs to the network namespace of the thread that opened it. What the kernel refuses is an `OSError` with its
number and, where it says more, its words.
"""

from __future__ import annotations

import os
import socket
import struct
from types import TracebackType

from . import wire

TYPE_CHECKING = False  # see errors.py
if TYPE_CHECKING:
    from typing import Self

ACK, DUMP, CREATE, EXCL = 0x4, 0x300, 0x400, 0x200
_REQUEST, _MULTI = 0x1, 0x2
_ERROR, _DONE = 2, 3
_LONGEST = 1 << 15  # the kernel sends no longer pieces
_SOL_NETLINK, _EXT_ACK = 270, 11  # with it the kernel says in words what it did not like


class Connection:
    """A socket for one of the kernel's protocols."""

    def __init__(self, protocol: int) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        self._socket.setsockopt(_SOL_NETLINK, _EXT_ACK, 1)
        self._socket.bind((0, 0))
        self._sequence = 0

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def request(self, kind: int, flags: int, body: bytes) -> list[bytes]:
        """Sends one message and answers the bodies that came back."""
        self._sequence += 1
        self._socket.send(wire.message(kind, _REQUEST | flags, self._sequence, body))
        bodies: list[bytes] = []
        while True:
            for got, got_flags, sequence, data in wire.messages(self._socket.recv(_LONGEST)):
                if sequence != self._sequence:
                    continue
                if got == _ERROR:
                    code = -struct.unpack_from("=i", data)[0]
                    if code:
                        raise _error(code, data, got_flags)
                    return bodies
                if got == _DONE:
                    return bodies
                bodies.append(data)
                if not got_flags & _MULTI and not flags & ACK:
                    return bodies


def _error(code: int, data: bytes, flags: int) -> OSError:
    """The kernel's refusal; with its own words if it said any (attribute 1 of an extended acknowledgement)."""
    words = ""
    if flags & 0x200:  # NLM_F_ACK_TLVS
        original = struct.unpack_from("=I", data, 4)[0]
        at = 4 + (16 if flags & 0x100 else (original + 3) & ~3)  # NLM_F_CAPPED: only the header was sent back
        words = wire.text(wire.attributes(data[at:]).get(1, b""))
    return OSError(code, f"{os.strerror(code)} ({words})" if words else os.strerror(code))
