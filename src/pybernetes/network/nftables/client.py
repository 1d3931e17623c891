"""The socket to nf_tables: commits batches, lists objects, reports what others change.

It belongs to the network namespace of the thread that opened it. Calls are synchronous: the kernel has finished a
batch when `send` returns, and its errors are waiting then. `watch` joins the kernel's group of change notifications and
leaves it during each commit, because the notifications of a large batch of our own would fill the socket; generation
numbers show whether another program's change fell into that gap.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from pybernetes.net.netlink import connection, wire

from . import objects
from .batch import Batch
from .errors import GenerationChanged, NftablesError
from .objects import Chain, Element, Rule, Set, Table

TYPE_CHECKING = False  # see cni/errors.py
if TYPE_CHECKING:
    from typing import Self

_NETFILTER = 12  # NETLINK_NETFILTER
_SUBSYSTEM = 10 << 8
_BEGIN, _END = 0x10, 0x11
_GET_TABLE, _GET_CHAIN, _GET_RULE, _GET_SET, _GET_ELEMENTS, _GET_GENERATION = 1, 4, 7, 10, 13, 16
_NEW_GENERATION = 15
_GROUP = 7  # NFNLGRP_NFTABLES
_SOL_NETLINK, _ADD_MEMBERSHIP, _DROP_MEMBERSHIP = 270, 1, 2
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_ERROR, _ERESTART = 2, 85
_RECEIVE = 1 << 22
"""Room for the errors of a batch in which every message is wrong, and for the changes of others."""
T = TypeVar("T")


class Nftables:
    """The packet rules of the namespace it was opened in."""

    def __init__(self) -> None:
        self._socket = connection.open_socket(_NETFILTER)
        self._lists = connection.Connection(_NETFILTER)  # notifications may wait in the other
        self._buffer(_SO_RCVBUFFORCE, socket.SO_RCVBUF, _RECEIVE)
        self._room = 0
        self._watching = False
        self._changes: set[Table] = set()
        self._missed = False

    def close(self) -> None:
        self._socket.close()
        self._lists.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Changes

    def commit(self, batch: Batch, generation: int | None = None) -> None:
        """Makes the changes, all or none; with a generation only if it is still the current one."""
        messages = batch.messages()
        if not messages:
            return
        resource = objects.GENERIC.pack(0, 0, 10)
        guard = wire.attribute(1, struct.pack(">I", generation)) if generation is not None else b""
        begin = wire.message(_BEGIN, 1, 0, resource + guard)
        data = b"".join((begin, *messages, wire.message(_END, 1, len(messages) + 1, resource)))
        if len(data) > self._room:
            self._room = self._buffer(_SO_SNDBUFFORCE, socket.SO_SNDBUF, max(len(data) + 4096, 1 << 18))
        errors = self._send_unnoticed(data) if self._watching else self._send(data)
        if not errors:
            return
        if errors[0].code == _ERESTART:
            raise GenerationChanged(errors[0].code, "batch", "the rules were changed by another program")
        first, *more = errors
        rest = [batch.subject(each.sequence, each.offset) for each in more]
        raise NftablesError(first.code, batch.subject(first.sequence, first.offset), first.words, rest)

    def _send(self, data: bytes) -> list[connection.Refusal]:
        self._socket.send(data)
        return self._drain()

    def _send_unnoticed(self, data: bytes) -> list[connection.Refusal]:
        """Sends a batch without being notified of what it changes; a change by others meanwhile counts as missed."""
        before = self.generation()
        self._socket.setsockopt(_SOL_NETLINK, _DROP_MEMBERSHIP, _GROUP)
        try:
            errors = self._send(data)
        finally:
            self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _GROUP)
        if self.generation() - before != (0 if errors else 1):
            self._missed = True
        return errors

    def _drain(self) -> list[connection.Refusal]:
        """The errors that wait in the socket; changes by others are noted."""
        errors: list[connection.Refusal] = []
        while True:
            try:
                data = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return errors
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._missed = True
                continue
            for kind, flags, sequence, body in wire.messages(data):
                if kind == _ERROR:
                    refusal = connection.refusal(sequence, body, flags)
                    if refusal.code:
                        errors.append(refusal)
                elif kind >> 8 == 10 and kind & 0xFF != _NEW_GENERATION:
                    self._changes.add(objects.read_table(body))

    def _buffer(self, force: int, plain: int, size: int) -> int:
        """Makes room in the socket, as much as this process may have."""
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, force, size)
        except PermissionError:
            self._socket.setsockopt(socket.SOL_SOCKET, plain, size)
        return self._socket.getsockopt(socket.SOL_SOCKET, plain) // 2

    def commit_in_parts(self, batch: Batch) -> None:
        """Makes the changes all at once, or where the socket has no room for that, as in the user namespace of a user
        without rights, in several batches one after another."""
        try:
            self.commit(batch)
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            for part in batch.split(self._room - 4096):
                self.commit(part)

    # What others change

    def watch(self) -> int:
        """Reports what others change from now on by `changes`; the descriptor is readable when there may be some."""
        self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _GROUP)
        self._watching = True
        return self._socket.fileno()

    def changes(self) -> set[Table] | None:
        """The tables that another program changed since the last call; None if the kernel lost track."""
        self._drain()
        found = None if self._missed else self._changes
        self._changes, self._missed = set(), False
        return found

    # Lists

    def generation(self) -> int:
        """The number of the current ruleset: each commit makes another one."""
        body = self._lists.request(_SUBSYSTEM | _GET_GENERATION, 0, objects.GENERIC.pack(0, 0, 0))[0]
        return int.from_bytes(wire.attributes(body[4:])[1], "big")

    def tables(self) -> list[Table]:
        """All tables."""
        return [objects.read_table(body) for body in self._dump(_GET_TABLE, objects.GENERIC.pack(0, 0, 0))]

    def chains(self, table: Table) -> list[Chain]:
        """The chains of a table."""
        return self._of(table, _GET_CHAIN, objects.read_chain)

    def rules(self, table: Table, chain: str = "") -> list[Rule]:
        """The rules of a table, or of one of its chains, in order."""
        found = self._of(table, _GET_RULE, objects.read_rule)
        return [rule for rule in found if not chain or rule.chain == chain]

    def sets(self, table: Table) -> list[Set]:
        """The sets and maps of a table."""
        return self._of(table, _GET_SET, objects.read_set)

    def elements(self, table: Table, name: str) -> list[Element]:
        """The elements of a set or map."""
        body = table.header + wire.attribute(1, table.name) + wire.attribute(2, name)
        try:
            bodies = self._dump(_GET_ELEMENTS, body)
        except OSError as error:
            raise NftablesError(error.errno or 0, f"list elements {table} {name}") from None
        return [element for each in bodies for element in objects.read_elements(each)]

    def _of(self, table: Table, kind: int, read: Callable[[bytes], tuple[str, T]]) -> list[T]:
        body = table.header + wire.attribute(1, table.name)
        found = [read(each) for each in self._dump(kind, body)]
        return [value for name, value in found if name == table.name]

    def _dump(self, kind: int, body: bytes) -> list[bytes]:
        return self._lists.request(_SUBSYSTEM | kind, connection.DUMP, body)
