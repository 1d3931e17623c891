"""A socket to the kernel: requests and what it answers.

It belongs to the network namespace of the thread that opened it. What the kernel refuses is an `OSError` with its
number and, where it says more, its words.
"""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from types import TracebackType

from . import wire

TYPE_CHECKING = False  # see cni/errors.py
if TYPE_CHECKING:
    from typing import Self

ACK, DUMP, CREATE, EXCL = 0x4, 0x300, 0x400, 0x200
_REQUEST, _MULTI, _DUMP_INTERRUPTED = 0x1, 0x2, 0x10
_ERROR, _DONE = 2, 3
_DUMP_TRIES = 10
_LONGEST = 1 << 15  # the kernel sends no longer pieces
_SOL_NETLINK, _EXT_ACK = 270, 11  # with it the kernel says in words what it did not like


@dataclass(frozen=True)
class Refusal:
    """An error (or with code 0 an acknowledgement) for the message of this sequence number."""

    sequence: int
    code: int
    words: str
    offset: int
    """Where in the message the attribute is that the kernel did not like; 0 if it did not say."""


def open_socket(protocol: int) -> socket.socket:
    """A socket for one of the kernel's protocols, on which it explains its errors."""
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    made.setsockopt(_SOL_NETLINK, _EXT_ACK, 1)
    made.bind((0, 0))
    return made


class Connection:
    """A socket for one of the kernel's protocols: one request after another."""

    def __init__(self, protocol: int) -> None:
        self._socket = open_socket(protocol)
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
        """Sends one message and answers the bodies that came back; a list that changed meanwhile is read again."""
        for _ in range(_DUMP_TRIES):
            bodies, complete = self._ask(kind, flags, body)
            if complete:
                break
        return bodies

    def _ask(self, kind: int, flags: int, body: bytes) -> tuple[list[bytes], bool]:
        self._sequence += 1
        self._socket.send(wire.message(kind, _REQUEST | flags, self._sequence, body))
        bodies: list[bytes] = []
        complete = True
        while True:
            for got, got_flags, sequence, data in wire.messages(self._socket.recv(_LONGEST)):
                if sequence != self._sequence:
                    continue
                complete = complete and not got_flags & _DUMP_INTERRUPTED
                if got == _ERROR:
                    refused = refusal(sequence, data, got_flags)
                    if refused.code:
                        reason = os.strerror(refused.code)
                        raise OSError(refused.code, f"{reason} ({refused.words})" if refused.words else reason)
                    return bodies, True
                if got == _DONE:
                    return bodies, complete
                bodies.append(data)
                if not got_flags & _MULTI and not flags & ACK:
                    return bodies, True


def refusal(sequence: int, data: bytes, flags: int) -> Refusal:
    """Parse an error message: its code and, with an extended acknowledgement, text and offset."""
    code = -struct.unpack_from("=i", data)[0]
    words, offset = "", 0
    if flags & 0x200:  # NLM_F_ACK_TLVS
        original = struct.unpack_from("=I", data, 4)[0]
        at = 4 + (16 if flags & 0x100 else (original + 3) & ~3)  # NLM_F_CAPPED: only the header was sent back
        more = wire.attributes(data[at:])
        words, offset = wire.text(more.get(1, b"")), wire.number(more.get(2))
    return Refusal(sequence, code, words, offset)
