"""Expressions of nftables rules: each function returns one expression as the kernel takes it.

A rule is a list of them, run from the first to the last until one does not match. They pass values in registers:
sixteen of four bytes each, `REGISTER + n`. A rule must load every register it reads.
"""

from __future__ import annotations

import struct

from pybernetes.net.netlink.wire import attribute, nested

VERDICT_REGISTER = 0
REGISTER = 8
"""The first of the registers of four bytes (NFT_REG32_00)."""
EQUAL, NOT_EQUAL, AT_MOST, AT_LEAST = 0, 1, 3, 5
LINK, NETWORK, TRANSPORT = 0, 1, 2
# Of `meta`
MARK, IIFNAME, OIFNAME, NFPROTO, L4PROTO = 3, 6, 7, 15, 16
# Of `fib`
SOURCE, DESTINATION = 1, 2
UNICAST_TYPE, LOCAL_TYPE = 1, 2  # RTN_LOCAL
# Of `ct state`
NEW, ESTABLISHED, RELATED, INVALID = 8, 2, 4, 1
REPLY = 1  # of `ct direction`
IPV4, IPV6 = 2, 10  # families of addresses

ACCEPT, DROP, CONTINUE, JUMP, GOTO, RETURN = 1, 0, -1, -3, -4, -5
ADD, UPDATE, DELETE = 0, 1, 2
_INVERTED = 1  # of `limit`: matches what is above it

_be32 = struct.Struct(">I")
_be64 = struct.Struct(">Q")


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, _be32.pack(value & 0xFFFFFFFF))


def _expression(name: str, *attributes: bytes) -> bytes:
    return nested(1, attribute(1, name), nested(2, *attributes))


def value(data: bytes) -> bytes:
    """Bytes as attribute content."""
    return attribute(1, data)


def verdict_value(code: int, chain: str = "") -> bytes:
    """A verdict as attribute content."""
    return nested(2, _number(1, code), attribute(2, chain) if chain else b"")


def payload(base: int, offset: int, length: int, register: int) -> bytes:
    """Loads bytes of the packet."""
    return _expression("payload", _number(1, register), _number(2, base), _number(3, offset), _number(4, length))


def source_address(family: int, register: int) -> bytes:
    """Loads the source address of the IP header."""
    return payload(NETWORK, 12, 4, register) if family == IPV4 else payload(NETWORK, 8, 16, register)


def destination_address(family: int, register: int) -> bytes:
    """Loads the destination address of the IP header."""
    return payload(NETWORK, 16, 4, register) if family == IPV4 else payload(NETWORK, 24, 16, register)


def destination_port(register: int) -> bytes:
    """Loads the destination port of TCP, UDP and SCTP."""
    return payload(TRANSPORT, 2, 2, register)


def meta(key: int, register: int) -> bytes:
    """Loads what the kernel knows of the packet."""
    return _expression("meta", _number(2, key), _number(1, register))


def set_meta(key: int, register: int) -> bytes:
    """Stores a register as what the kernel knows of the packet."""
    return _expression("meta", _number(2, key), _number(3, register))


def compare(register: int, data: bytes, operator: int = EQUAL) -> bytes:
    """Goes on if the register has (or has not) this value."""
    return _expression("cmp", _number(1, register), _number(2, operator), nested(3, value(data)))


def bitwise(register: int, mask: bytes, xor: bytes = b"") -> bytes:
    """register = (register & mask) ^ xor"""
    return _expression(
        "bitwise",
        _number(1, register),
        _number(2, register),
        _number(3, len(mask)),
        nested(4, value(mask)),
        nested(5, value(xor or bytes(len(mask)))),
    )


def lookup(name: str, register: int, into: int | None = None, *, inverted: bool = False) -> bytes:
    """Goes on if the set has (or has not) the key; of a map, loads the value: `into=VERDICT_REGISTER` follows it."""
    return _expression(
        "lookup",
        attribute(1, name),
        _number(2, register),
        _number(3, into) if into is not None else b"",
        _number(5, 1) if inverted else b"",
    )


def update_set(
    name: str,
    key_register: int,
    data_register: int | None = None,
    *,
    timeout_ms: int = 0,
    operation: int = UPDATE,
    over: tuple[int, int] | None = None,
) -> bytes:
    """Puts a key (and value) into a dynamic set or map. `UPDATE` of a key that is there renews its timeout and keeps
    its value; `DELETE` takes it out. `over`: goes on only for packets above so many a second, and a burst, of a key."""
    limit = b""
    if over is not None:
        rate = attribute(1, _be64.pack(over[0])) + attribute(2, _be64.pack(1)) + _number(3, over[1])
        limit = nested(7, attribute(1, "limit"), nested(2, rate, _number(4, 0), _number(5, _INVERTED)))
    return _expression(
        "dynset",
        attribute(1, name),
        _number(3, operation),
        _number(4, key_register),
        _number(5, data_register) if data_register is not None else b"",
        attribute(6, _be64.pack(timeout_ms)) if timeout_ms else b"",
        limit,
    )


def immediate(register: int, data: bytes) -> bytes:
    """Loads a constant."""
    return _expression("immediate", _number(1, register), nested(2, value(data)))


def verdict(code: int, chain: str = "") -> bytes:
    """Ends the rule."""
    return _expression("immediate", _number(1, VERDICT_REGISTER), nested(2, verdict_value(code, chain)))


def jump(chain: str) -> bytes:
    """Runs another chain and comes back."""
    return verdict(JUMP, chain)


def goto(chain: str) -> bytes:
    """Goes on in another chain."""
    return verdict(GOTO, chain)


def ct_state(register: int) -> bytes:
    """Loads the state bits of the connection."""
    return _expression("ct", _number(2, 0), _number(1, register))


def ct_direction(register: int) -> bytes:
    """Loads which way the packet goes in its connection: one byte, `REPLY` for answers."""
    return _expression("ct", _number(2, 1), _number(1, register))


def random(modulus: int, register: int, offset: int = 0) -> bytes:
    """Loads a random number from `offset` to `offset + modulus - 1`."""
    return _expression("numgen", _number(1, register), _number(2, modulus), _number(3, 1), _number(4, offset))


def address_type(register: int, of: int = DESTINATION) -> bytes:
    """Loads the type of route to an address of the packet (`LOCAL_TYPE`: of this machine)."""
    return _expression("fib", _number(3, of), _number(2, 3), _number(1, register))


def dnat(family: int, address: int, port: int | None = None) -> bytes:
    """Translates the destination to the address and port in these registers."""
    return _nat(1, family, address, port)


def snat(family: int, address: int, port: int | None = None) -> bytes:
    """Translates the source to the address and port in these registers."""
    return _nat(0, family, address, port)


def _nat(kind: int, family: int, address: int, port: int | None) -> bytes:
    return _expression(
        "nat",
        _number(1, kind),
        _number(2, family),
        _number(3, address),
        _number(5, port) if port is not None else b"",
        _number(7, 1 | (2 if port is not None else 0)),
    )


def masquerade(*, fully_random: bool = False) -> bytes:
    """Translates the source to an address of the link the packet leaves by."""
    return _expression("masq", _number(1, 0x10) if fully_random else b"")


def reject(family: int) -> bytes:
    """Refuses with ICMP's port unreachable, in a table of this family (`ip`, `ip6`)."""
    return _expression("reject", _number(1, 0), attribute(2, b"\3" if family == IPV4 else b"\4"))


def reset() -> bytes:
    """Refuses a TCP connection with RST."""
    return _expression("reject", _number(1, 1), attribute(2, b"\0"))


def counter() -> bytes:
    """Counts packets and bytes."""
    return _expression("counter")


def notrack() -> bytes:
    """Keeps the packet out of connection tracking."""
    return _expression("notrack")
