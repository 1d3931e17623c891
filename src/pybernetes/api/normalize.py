"""Canonical forms that Go's decoder gives for free: quantities, times, durations, base64, int-or-string ranges.

`normalizer(cls)` compiles, once for each class, a function that visits only what can hold such a value and changes it
in place. Most of an object is skipped without being looked at, which keeps a typical pod at a microsecond or two.

A value that has no canonical form raises `ValueError` in Go's words; whoever knows the kind adds it (`strict.py`).
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from . import quantity, times
from .base import Struct
from .schema import LIST, MAP, FieldInfo, fields

Visit = Callable[[Any], None]
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


CANONICAL: Final[dict[str, Canonical]] = {
    "quantity": quantity.canonicalize,
    "date-time": times.canonical_time,
    "micro-time": times.canonical_micro_time,
    "duration": canonical_duration,
    "byte": canonical_base64,
    "int-or-string": canonical_int_or_string,
}


def normalize(obj: Struct) -> None:
    """Make every value of the object canonical, in place."""
    normalizer(type(obj))(obj)


_visitors: dict[type[Struct], Visit] = {}


def normalizer(cls: type[Struct]) -> Visit:
    """The function that makes objects of this class canonical."""
    found = _visitors.get(cls)
    if found is None:
        # A class may contain itself: until it is compiled, it is looked up at run time.
        _visitors[cls] = lambda obj: _visitors[cls](obj)
        found = _visitors[cls] = _compile(cls)
    return found


def _compile(cls: type[Struct]) -> Visit:
    """Write the visit down as Python and compile it, as dataclasses do; plain attribute access makes it quick."""
    source = _Source()
    for info in fields(cls):
        source.field(info)
    return source.function(cls.__name__)


class _Source:
    """The text of one visit function and the names it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"cached": quantity.cached}

    def field(self, info: FieldInfo) -> None:
        """What to do with one field, if anything."""
        canonical = self.canonical(info, "value")
        body = (
            [f"new = {canonical}", "if new != value:", f"    obj.{info.name} = new"]
            if canonical
            else self.inside(info, "value", 0)
        )
        if body:
            self.lines += [f"value = obj.{info.name}", "if value is not None:", *(f"    {line}" for line in body)]

    def inside(self, info: FieldInfo, at: str, depth: int) -> list[str]:
        """What to do with a value that is no scalar; `at` is the expression for it."""
        if info.struct is not None:
            return [f"{self.name(normalizer(info.struct))}({at})"] if _concerned(info.struct) else []
        if info.kind not in (LIST, MAP) or info.items is None:
            return []
        key, each = f"key{depth}", f"each{depth}"
        canonical = self.canonical(info.items, each)
        if canonical:
            # This replaces values; neither the keys nor the length change, so iterating goes on unharmed.
            pairs = f"{at}.items()" if info.kind == MAP else f"enumerate({at})"
            lines = [f"new = {canonical}", f"if new != {each}:", f"    {at}[{key}] = new"]
            return [f"for {key}, {each} in {pairs}:", *(f"    {line}" for line in lines)]
        lines = self.inside(info.items, each, depth + 1)
        values = f"{at}.values()" if info.kind == MAP else at
        return [f"for {each} in {values}:", *(f"    {line}" for line in lines)] if lines else []

    def canonical(self, info: FieldInfo, at: str) -> str:
        """The expression for the canonical form of a scalar; empty if it has none."""
        function = CANONICAL.get(info.format or "")
        if function is None:
            return ""
        call = f"{self.name(function)}({at})"
        return f"cached({at}) or {call}" if info.format == "quantity" else call

    def name(self, function: Callable[..., Any]) -> str:
        name = f"f{len(self.names)}"
        self.names[name] = function
        return name

    def function(self, title: str) -> Visit:
        """The compiled function."""
        text = "\n".join(["def visit(obj):", *(f"    {line}" for line in self.lines or ["pass"])])
        exec(compile(text, f"<normalize {title}>", "exec"), self.names)
        visit: Visit = self.names["visit"]
        return visit


@cache
def _concerned(cls: type[Struct]) -> bool:
    """Whether anything below a class can need a canonical form."""
    seen, todo = {cls}, [cls]
    while todo:
        for field in fields(todo.pop()):
            info: FieldInfo | None = field
            while info is not None:
                if info.format in CANONICAL:
                    return True
                if info.struct is not None and info.struct not in seen:
                    seen.add(info.struct)
                    todo.append(info.struct)
                info = info.items
    return False


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
