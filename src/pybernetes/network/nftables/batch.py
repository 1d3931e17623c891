"""Changes that the kernel makes all at once, or not at all.

Each call adds messages; `client.Nftables.commit` sends them. Adding what exists with the same properties changes
nothing; deleting what does not exist is refused, and with it the whole batch. `replace_table` is the way to begin anew
whatever is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pybernetes.net.netlink.connection import CREATE, EXCL
from pybernetes.net.netlink.wire import HEADER, attribute, each_attribute

from . import objects
from .objects import Chain, Set, Table

_SUBSYSTEM = 10 << 8
NEW_TABLE, DELETE_TABLE = 0, 2
NEW_CHAIN, DELETE_CHAIN = 3, 5
NEW_RULE, DELETE_RULE = 6, 8
NEW_SET, DELETE_SET = 9, 11
NEW_ELEMENTS, DELETE_ELEMENTS = 12, 14
_REQUEST, _APPEND = 0x1, 0x800
_LONGEST_ELEMENTS = 60_000  # an attribute has at most 65,535 bytes


class Batch:
    """Changes in the order in which they are made."""

    def __init__(self) -> None:
        self._messages: list[bytes] = []
        self._subjects: list[str] = []
        """The subject of each message, for errors."""
        self._sets = 0

    def __len__(self) -> int:
        return len(self._messages)

    def __bool__(self) -> bool:
        return bool(self._messages)

    def add_table(self, table: Table) -> None:
        """Makes a table, unless it is there."""
        self._add(NEW_TABLE, CREATE, table, attribute(1, table.name), f"add table {table}")

    def delete_table(self, table: Table) -> None:
        """Deletes a table with all it has."""
        self._add(DELETE_TABLE, 0, table, attribute(1, table.name), f"delete table {table}")

    def replace_table(self, table: Table) -> None:
        """Makes a table that is empty, whether or not there was one."""
        self.add_table(table)
        self.delete_table(table)
        self.add_table(table)

    def add_chain(self, table: Table, chain: Chain) -> None:
        """Makes a chain, unless it is there."""
        content = objects.chain_content(table, chain)
        self._add(NEW_CHAIN, CREATE, table, content, f"add chain {table} {chain.name}")

    def delete_chain(self, table: Table, name: str) -> None:
        """Deletes a chain to which nothing leads any more, with its rules."""
        content = attribute(1, table.name) + attribute(3, name)
        self._add(DELETE_CHAIN, 0, table, content, f"delete chain {table} {name}")

    def flush_chain(self, table: Table, name: str) -> None:
        """Deletes all rules of a chain."""
        content = attribute(1, table.name) + attribute(2, name)
        self._add(DELETE_RULE, 0, table, content, f"flush chain {table} {name}")

    def add_rule(self, table: Table, chain: str, rule: Iterable[bytes], comment: str = "") -> None:
        """Appends a rule to a chain."""
        content = objects.rule_content(table, chain, rule, comment)
        about = f"add rule {table} {chain}{f' ({comment})' if comment else ''}"
        self._add(NEW_RULE, CREATE | _APPEND, table, content, about)

    def insert_rule(self, table: Table, chain: str, rule: Iterable[bytes], comment: str = "") -> None:
        """Puts a rule before all others of a chain."""
        content = objects.rule_content(table, chain, rule, comment)
        about = f"insert rule {table} {chain}{f' ({comment})' if comment else ''}"
        self._add(NEW_RULE, CREATE, table, content, about)

    def delete_rule(self, table: Table, chain: str, handle: int) -> None:
        """Deletes one rule."""
        content = attribute(1, table.name) + attribute(2, chain) + attribute(3, handle.to_bytes(8, "big"))
        self._add(DELETE_RULE, 0, table, content, f"delete rule {table} {chain} handle {handle}")

    def add_set(self, table: Table, which: Set) -> None:
        """Makes a set or map, unless it is there."""
        self._sets += 1
        kind = "set" if which.data is None else "map"
        content = objects.set_content(table, which, self._sets)
        self._add(NEW_SET, CREATE, table, content, f"add {kind} {table} {which.name}")

    def delete_set(self, table: Table, name: str) -> None:
        """Deletes a set or map that no rule uses, with its elements."""
        content = attribute(1, table.name) + attribute(2, name)
        self._add(DELETE_SET, 0, table, content, f"delete set {table} {name}")

    def flush_set(self, table: Table, name: str) -> None:
        """Deletes all elements of a set or map."""
        content = attribute(1, table.name) + attribute(2, name)
        self._add(DELETE_ELEMENTS, 0, table, content, f"flush set {table} {name}")

    def add_elements(self, table: Table, name: str, elements: Sequence[bytes]) -> None:
        """Puts elements (made by `objects.element`) into a set or map; another value for a key there is refused."""
        self._elements(NEW_ELEMENTS, CREATE, table, name, elements, "add")

    def create_elements(self, table: Table, name: str, elements: Sequence[bytes]) -> None:
        """Puts elements into a set or map; a key that is there is refused."""
        self._elements(NEW_ELEMENTS, CREATE | EXCL, table, name, elements, "create")

    def delete_elements(self, table: Table, name: str, elements: Sequence[bytes]) -> None:
        """Takes elements out of a set or map."""
        self._elements(DELETE_ELEMENTS, 0, table, name, elements, "delete")

    def _elements(self, kind: int, flags: int, table: Table, name: str, elements: Sequence[bytes], verb: str) -> None:
        about = f"{verb} elements {table} {name}"
        start = size = 0
        for index, each in enumerate(elements):
            if size + len(each) > _LONGEST_ELEMENTS:
                some = b"".join(elements[start:index])
                self._add(kind, flags, table, objects.elements_content(table, name, some), about)
                start, size = index, 0
            size += len(each)
        if size:
            some = b"".join(elements[start:])
            self._add(kind, flags, table, objects.elements_content(table, name, some), about)

    def _add(self, kind: int, flags: int, table: Table, content: bytes, subject: str) -> None:
        number = len(self._messages) + 1
        length = HEADER.size + objects.GENERIC.size + len(content)
        header = HEADER.pack(length, _SUBSYSTEM | kind, _REQUEST | flags, number, 0)
        self._messages.append(b"".join((header, table.header, content)))
        self._subjects.append(subject)

    def split(self, room: int) -> list[Batch]:
        """The same changes as several batches of at most so many bytes, for a socket that takes no more at once."""
        found, size = [Batch()], 0
        for each, subject in zip(self._messages, self._subjects, strict=True):
            if found[-1] and size + len(each) > room:
                found.append(Batch())
                size = 0
            last, number = found[-1], len(found[-1]) + 1
            length, kind, flags, _, port = HEADER.unpack_from(each)
            last._messages.append(HEADER.pack(length, kind, flags, number, port) + each[HEADER.size :])
            last._subjects.append(subject)
            size += len(each)
        return found

    def messages(self) -> list[bytes]:
        """The messages; the sequence number of the first is 1."""
        return self._messages

    def subject(self, sequence: int, offset: int = 0) -> str:
        """The object the message of this number is about; with the offset of an attribute, which element it was."""
        if not 0 < sequence <= len(self._subjects):
            return "batch"
        key = _key_at(self._messages[sequence - 1], offset) if "elements" in self._subjects[sequence - 1] else b""
        return self._subjects[sequence - 1] + (f" key {key.hex()}" if key else "")


def _key_at(message: bytes, offset: int) -> bytes:
    """The key of the element which the attribute at this place of the message is, or is in."""
    start = HEADER.size + objects.GENERIC.size
    at = start
    for kind, outer in each_attribute(message[start:]):
        if kind == 3:
            inside = at + 4
            for _, each in each_attribute(outer):
                if inside <= offset < inside + 4 + len(each):
                    return next((value[4:] for number, value in each_attribute(each) if number == 1), b"")
                inside += 4 + len(each) + 3 & ~3
        at += 4 + len(outer) + 3 & ~3
    return b""
