"""Canonical forms that Go's decoder gives for free: quantities, times, durations, base64, numbers, int-or-strings, and
one form for nothing: a text that is empty, a flag that is false and a number that is zero are absent, unless they are
pointers in Go and can say so.

`normalizer(cls)` is compiled once for each class and changes an object in place. It looks at nothing twice, which keeps
a typical pod at two microseconds.

A value that has no canonical form raises `ValueError` with Go's message; the caller adds the kind (`strict.py`).
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from msgspec import UNSET

from . import quantity, times
from .base import Struct
from .compiled_visitors import Source, Visits, indented
from .schema import MAP, SCALARS, FieldInfo

Canonical = Callable[[Any], Any]


def canonical_duration(text: str) -> str:
    """A duration as Go prints it."""
    return times.format_duration(times.parse_duration(text))


def canonical_base64(text: str) -> str:
    """Base64 without line breaks; `ValueError` as Go words it."""
    try:
        raw = binascii.a2b_base64(text.replace("\n", "").replace("\r", ""), strict_mode=True)
    except ValueError:
        raise ValueError(f"illegal base64 data at input byte {_bad_base64(text)}") from None
    return binascii.b2a_base64(raw, newline=False).decode()


def canonical_int_or_string(value: int | str) -> int | str:
    """The value, if a number fits 32 bits."""
    if type(value) is int and not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"json: cannot unmarshal number {value} into Go value of type int32")
    return value


def canonical_double(value: float) -> float:
    """The number as Go writes it: without a fraction if it has none, and with an exponent only if it is huge."""
    if type(value) is float and value.is_integer() and abs(value) < 1e21:
        return int(Decimal(repr(value)))
    return value


CANONICAL: Final[dict[str, Canonical]] = {
    "quantity": quantity.canonicalize,
    "date-time": times.canonical_time,
    "micro-time": times.canonical_micro_time,
    "duration": canonical_duration,
    "byte": canonical_base64,
    "int-or-string": canonical_int_or_string,
    "double": canonical_double,
}


def normalize(obj: Struct) -> None:
    """Make every value of the object canonical, in place."""
    normalizer(type(obj))(obj)


def _canonical(source: Source, info: FieldInfo) -> list[str]:
    """The code for one field, if it needs any."""
    field = f"obj.{info.name}"
    if canonical := _expression(source, info, "value"):
        lines = [f"new = {canonical}", "if new is not value:", f"    {field} = new"]
        if info.always == 0:  # of int-or-strings: the number is their zero, not the empty text
            lines += ["if new == 0:", f"    {field} = None"]
        elif (info.format == "byte" and info.always is UNSET) or (info.format == "double" and not info.pointer):
            lines += ["if not new:", f"    {field} = None"]
    elif info.kind in SCALARS:
        lines = [] if info.pointer else ["if not value:", f"    {field} = None"]
    elif info.items is not None and (canonical := _expression(source, info.items, "each")):
        # This replaces values; neither the keys nor the length change, so iterating goes on unharmed.
        pairs = "value.items()" if info.kind == MAP else "enumerate(value)"
        # Go's zero time has no canonical form; a field may be left out instead, an entry may not, and null is no text.
        replace = [f"new = {canonical}", "if new != each and new is not None:", "    value[key] = new"]
        lines = [f"for key, each in {pairs}:", *indented(replace)]
    else:
        lines = source.inside(info, "value")
    return [f"value = {field}", "if value is not None:", *indented(lines)] if lines else []


def _expression(source: Source, info: FieldInfo, at: str) -> str:
    """The expression for the canonical form of a scalar; empty if it has none."""
    function = CANONICAL.get(info.format or "")
    if function is None:
        return ""
    call = f"{source.name(function)}({at})"
    return f"{source.name(quantity.cached)}({at}) or {call}" if info.format == "quantity" else call


normalizer: Final = Visits("normalize", _canonical).__getitem__
"""The function that makes objects of a class canonical."""


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _bad_base64(text: str) -> int:
    """The position Go's decoder names: the first character that is wrong, or where a group of four breaks off."""
    count, at, size = 0, 0, len(text)
    while at < size:
        char = text[at]
        at += 1
        if char in "\r\n":
            continue
        if char in _ALPHABET:
            count = (count + 1) % 4
            continue
        if char != "=" or count < 2:
            return at - 1
        if count == 2:  # a second padding character must follow
            while at < size and text[at] in "\r\n":
                at += 1
            if at == size:
                return size
            if text[at] != "=":
                return at - 1
            at += 1
        while at < size and text[at] in "\r\n":
            at += 1
        return at
    return size - count
