"""Errors in the result of a strategic merge patch, with the wording of upstream's converter.

It makes objects of maps field by field, without Go's JSON decoder, and speaks of Go's kinds and types. Types that read
themselves are given their value alone, and do not know what field it is for.
"""

from __future__ import annotations

from typing import Any, Final

from ..schema import LIST, MAP, STRUCT, FieldInfo
from ..slow_decoder import Stack, Walk
from .gojson import Number
from .gotypes import go_field

_KINDS: Final = {str: "string", bool: "bool", int: "int64", float: "float64", Number: "float64", list: "slice"}
_RESTORED: Final = {MAP: "map from", LIST: "slice from", STRUCT: "struct from:"}


class Converter(Walk):
    """Reads a value as the converter does."""

    def wrong(self, value: Any, stack: Stack, depth: int) -> None:
        """The first value that does not fit."""
        if self.error is None:
            self.error = _words(value, stack[-1][1], depth, go_field(*stack[-1]).types[depth])

    def bytes(self, value: str | list[Any], stack: Stack, depth: int) -> str:
        """Text in base 64 is left to the decoder."""
        before, made = self.error, super().bytes(value, stack, depth)
        if before is None and self.error is not None and isinstance(value, str):
            self.error = f"error decoding from json: {self.error}"
        return made

    def where(self, stack: Stack) -> str:
        """A type that reads itself knows of no field."""
        return "Go value"


def _words(value: Any, info: FieldInfo, depth: int, go_type: str) -> str:
    found = _KINDS.get(type(value), "map")
    for _ in range(depth):
        if info.items is None:  # a byte
            return f"unrecognized type: {go_type}"
        info = info.items
    if info.kind in _RESTORED or info.format == "byte":
        return f"cannot restore {_RESTORED.get(info.kind, 'slice from')} {found}"
    kind = info.kind if info.kind != "int" else info.format or "int64"
    if (found, kind) == ("int64", "string") or (found in ("float64", "int64") and info.kind == "int"):
        return f"cannot convert {found} to {go_type}"
    return f"unrecognized type: {'float64' if kind == 'float' else kind}"
