"""Tables, chains, rules, sets and elements: the content of messages about them, and what lists of them contain (pure).

Names are those of the kernel's objects; a `Table` says where all others are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pybernetes.net.netlink.wire import ATTRIBUTE, NESTED, attribute, attributes, each_attribute, nested, text

from . import expressions
from .datatypes import DataType

FAMILIES = {"inet": 1, "ip": 2, "arp": 3, "netdev": 5, "bridge": 7, "ip6": 10}
_FAMILY_NAMES = {number: name for name, number in FAMILIES.items()}
INGRESS = 0
PREROUTING, INPUT, FORWARD, OUTPUT, POSTROUTING = range(5)
DSTNAT_PRIORITY, FILTER_PRIORITY, SRCNAT_PRIORITY = -100, 0, 100

GENERIC = struct.Struct(">BBH")  # nfgenmsg: family, version, resource
_be32 = struct.Struct(">I")
_be64 = struct.Struct(">Q")
_signed = struct.Struct(">i")
_KEY, _DATA, _FLAGS, _TIMEOUT, _EXPIRATION, _USERDATA, _KEY_END = 1, 2, 3, 4, 5, 6, 10


def _u32(kind: int, number: int) -> bytes:
    return attribute(kind, _be32.pack(number))


@dataclass(frozen=True)
class Table:
    """A table of a family: `ip`, `ip6`, `inet`, ..."""

    family: str
    name: str

    def __str__(self) -> str:
        return f"{self.family} {self.name}"

    @property
    def header(self) -> bytes:
        """Begins each message about the table or what it has."""
        return GENERIC.pack(FAMILIES[self.family], 0, 0)


@dataclass(frozen=True)
class Hook:
    """Where in the path of packets a base chain is run: `kind` is `filter`, `nat` or `route`.

    In a table of the family `netdev` it is the way in of one device, with which the chain goes.
    """

    kind: str
    number: int
    priority: int
    policy: int = expressions.ACCEPT
    device: str = ""


@dataclass(frozen=True)
class Chain:
    """A chain; with a hook it is a base chain."""

    name: str
    hook: Hook | None = None


@dataclass(frozen=True)
class Rule:
    """A rule as listed. `expressions` are names with their attributes as bytes."""

    chain: str
    handle: int
    expressions: tuple[tuple[str, bytes], ...]
    comment: str


@dataclass(frozen=True)
class Set:
    """A set, or with `data` a map; `data=VERDICT` makes a verdict map.

    `timeout_ms` may be 0 while elements bring timeouts of their own (`expires`).
    """

    name: str
    key: DataType
    data: DataType | None = None
    interval: bool = False
    dynamic: bool = False
    expires: bool = False
    timeout_ms: int = 0
    size: int = 0

    @property
    def flags(self) -> int:
        bits = (self.interval, 4), (self.data is not None, 8), (self.expires or bool(self.timeout_ms), 0x10)
        more = (self.dynamic, 0x20), (self.interval and bool(self.key.fields), 0x80)
        return sum(bit for on, bit in (*bits, *more) if on)


@dataclass(frozen=True)
class Element:
    """An element as listed; `verdict` is set in verdict maps. Times are milliseconds."""

    key: bytes
    data: bytes = b""
    verdict: int | None = None
    chain: str = ""
    key_end: bytes = b""
    interval_end: bool = False
    timeout_ms: int = 0
    expires_ms: int = 0
    comment: str = ""


# Messages


def chain_content(table: Table, chain: Chain) -> bytes:
    """The attributes that make a chain."""
    content = attribute(1, table.name) + attribute(3, chain.name)
    if chain.hook:
        hook = chain.hook
        device = attribute(3, hook.device) if hook.device else b""
        content += nested(4, _u32(1, hook.number), attribute(2, _signed.pack(hook.priority)), device)
        content += _u32(5, hook.policy) + attribute(7, hook.kind)
    return content


def rule_content(table: Table, chain: str, rule: Iterable[bytes], comment: str) -> bytes:
    """The attributes that make a rule."""
    content = attribute(1, table.name) + attribute(2, chain) + nested(4, *rule)
    return content + (attribute(7, _note(comment)) if comment else b"")


def _note(comment: str) -> bytes:
    """A comment as the `nft` program keeps it in user data of rules and elements."""
    text = comment.encode()[:127] + b"\0"
    return bytes((0, len(text))) + text


def _read_note(data: bytes) -> str:
    return text(data[2 : 2 + data[1]]) if len(data) > 2 and data[0] == 0 else ""


def set_content(table: Table, which: Set, number: int) -> bytes:
    """The attributes that make a set or map; `number` is its id within the batch."""
    content = attribute(1, table.name) + attribute(2, which.name) + _u32(3, which.flags)
    content += _u32(4, which.key.number) + _u32(5, which.key.length)
    if which.data is not None:
        content += _u32(6, which.data.number) + _u32(7, which.data.length)
    description = _u32(1, which.size) if which.size else b""
    if which.key.fields and which.interval:
        description += nested(2, *(nested(1, _u32(1, length)) for length in which.key.fields))
    content += nested(9, description) if description else b""
    content += attribute(11, _be64.pack(which.timeout_ms)) if which.timeout_ms else b""
    return content + _u32(10, number)


def element(
    key: bytes,
    data: bytes = b"",
    *,
    key_end: bytes = b"",
    interval_end: bool = False,
    timeout_ms: int = 0,
    expires_ms: int = 0,
    comment: str = "",
) -> bytes:
    """One element; `data` is what `expressions.value` or `verdict_value` returned. `key_end` closes an interval of a
    concatenation; in other interval sets an element with `interval_end` does."""
    length = len(key) + 3 & ~3
    content = ATTRIBUTE.pack(8 + length, _KEY | NESTED) + ATTRIBUTE.pack(4 + len(key), 1) + key.ljust(length, b"\0")
    if data:
        content += ATTRIBUTE.pack(4 + len(data), _DATA | NESTED) + data
    if key_end:
        content += nested(_KEY_END, attribute(1, key_end))
    if interval_end:
        content += _u32(_FLAGS, 1)
    if timeout_ms:
        content += attribute(_TIMEOUT, _be64.pack(timeout_ms))
    if expires_ms:
        content += attribute(_EXPIRATION, _be64.pack(expires_ms))
    if comment:
        content += attribute(_USERDATA, _note(comment))
    return ATTRIBUTE.pack(4 + len(content), 1 | NESTED) + content


def value_elements(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """Elements of one map or set with keys of one length and values of one length, ten times as fast as one by one."""
    if not pairs:
        return []
    key, value = map(len, pairs[0])
    if key % 4 or value % 4:
        return [element(each, attribute(1, data) if data else b"") for each, data in pairs]
    data = ATTRIBUTE.pack(8 + value, _DATA | NESTED) + ATTRIBUTE.pack(4 + value, 1) if value else b""
    length = 4 + 8 + key + len(data) + value
    head = ATTRIBUTE.pack(length, 1 | NESTED) + ATTRIBUTE.pack(8 + key, _KEY | NESTED) + ATTRIBUTE.pack(4 + key, 1)
    return [head + each + data + content for each, content in pairs]


def elements_content(table: Table, name: str, elements: bytes) -> bytes:
    """The attributes that add or delete elements."""
    return attribute(1, table.name) + attribute(2, name) + nested(3, elements)


# Lists


def read_table(body: bytes) -> Table:
    """A table as listed."""
    return Table(_FAMILY_NAMES.get(body[0], str(body[0])), text(attributes(body[4:])[1]))


def read_chain(body: bytes) -> tuple[str, Chain]:
    """The table's name and a chain as listed."""
    found = attributes(body[4:])
    hook = None
    if 4 in found:
        where = attributes(found[4])
        policy = _be32.unpack(found[5])[0] if 5 in found else expressions.ACCEPT
        number, priority = _be32.unpack(where[1])[0], _signed.unpack(where[2])[0]
        hook = Hook(text(found.get(7, b"")), number, priority, policy, text(where.get(3, b"")))
    return text(found[1]), Chain(text(found[3]), hook)


def read_rule(body: bytes) -> tuple[str, Rule]:
    """The table's name and a rule as listed."""
    found = attributes(body[4:])
    parts = []
    for _, each in each_attribute(found.get(4, b"")):
        expression = attributes(each)
        parts.append((text(expression[1]), expression.get(2, b"")))
    return text(found[1]), Rule(text(found[2]), _be64.unpack(found[3])[0], tuple(parts), _read_note(found.get(7, b"")))


def read_set(body: bytes) -> tuple[str, Set]:
    """The table's name and a set as listed; the fields of a concatenation are known only for intervals."""
    found = attributes(body[4:])
    flags = _be32.unpack(found[3])[0] if 3 in found else 0

    def kind(number: int, length: int) -> DataType:
        return DataType(_be32.unpack(found[number])[0], _be32.unpack(found.get(length, bytes(4)))[0], fields)

    description = attributes(found.get(9, b""))
    fields = tuple(_be32.unpack(attributes(each)[1])[0] for _, each in each_attribute(description.get(2, b"")))
    key = kind(4, 5)
    fields = ()
    return text(found[1]), Set(
        text(found[2]),
        key,
        kind(6, 7) if flags & 8 and 6 in found else None,
        bool(flags & 4),
        bool(flags & 0x20),
        bool(flags & 0x10),
        _be64.unpack(found[11])[0] if 11 in found else 0,
        _be32.unpack(description[1])[0] if 1 in description else 0,
    )


def read_elements(body: bytes) -> Iterator[Element]:
    """The elements in one message of a list."""
    for _, each in each_attribute(attributes(body[4:]).get(3, b"")):
        found = attributes(each)
        data = attributes(found.get(_DATA, b""))
        verdict = attributes(data[2]) if 2 in data else {}
        yield Element(
            attributes(found[_KEY])[1] if _KEY in found else b"",
            data.get(1, b""),
            _signed.unpack(verdict[1])[0] if 1 in verdict else None,
            text(verdict.get(2, b"")),
            attributes(found[_KEY_END])[1] if _KEY_END in found else b"",
            bool(_be32.unpack(found[_FLAGS])[0] & 1) if _FLAGS in found else False,
            _be64.unpack(found[_TIMEOUT])[0] if _TIMEOUT in found else 0,
            _be64.unpack(found[_EXPIRATION])[0] if _EXPIRATION in found else 0,
            _read_note(found.get(_USERDATA, b"")),
        )
