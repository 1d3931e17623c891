"""Types of set keys and map values.

The kernel only needs lengths; the type numbers are those of the `nft` program, which prints keys by them. Each field of
a concatenation takes a multiple of four bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

_BITS = 6  # of a type number in a concatenation


@dataclass(frozen=True)
class DataType:
    """One type, or a concatenation of several."""

    number: int
    length: int
    """In bytes, without padding."""
    fields: tuple[int, ...] = ()
    """The lengths of a concatenation's fields."""

    @property
    def padded(self) -> int:
        """Bytes it takes in registers."""
        return (self.length + 3) & ~3


VERDICT = DataType(0xFFFFFF00, 0)
IPV4 = DataType(7, 4)
IPV6 = DataType(8, 16)
PROTOCOL = DataType(12, 1)
"""inet_proto"""
PORT = DataType(13, 2)
"""inet_service"""
MARK = DataType(19, 4)
"""A number of 32 bits in the machine's byte order; `integer` has no length that `nft` could list."""
IFNAME = DataType(41, 16)


def concat(*types: DataType) -> DataType:
    """A key or value of several fields."""
    if len(types) == 1:
        return types[0]
    number = 0
    for each in types:
        number = number << _BITS | each.number
    return DataType(number, sum(each.padded for each in types), tuple(each.length for each in types))


def protocol(number: int) -> bytes:
    """A protocol as a field of a concatenation."""
    return bytes((number, 0, 0, 0))


def port(number: int) -> bytes:
    """A port as a field of a concatenation."""
    return bytes((number >> 8, number & 0xFF, 0, 0))
