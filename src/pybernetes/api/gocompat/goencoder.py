"""Objects as Go's encoder shows them, whatever a client left out or spelled out.

Of a value that is zero Go writes what its type demands: `status: {}`, `attached: false` and `lastProbeTime: null` are
there although no client set them, `labels: {}` and `ports: []` are not although a client did. The `Always` markers of
the kinds say which is which. Three steps lead there, so that each stage sees what upstream's code sees:

1. `normalize.py`, while decoding: texts, numbers and flags that are zero are absent, unless they are pointers in Go.
   Defaults need not tell `protocol: ""` from no protocol.
2. `fill`, after defaults: what is always there is there, for validation and for comparing with the stored object.
   Empty lists and maps stay, for a few rules tell them from absent ones.
3. `encode`, for the store: empty lists and maps go, as upstream's storage format does not know them, and null is
   written where nothing else can be. An object cannot hold it, None is absent.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..base import Struct
from ..compiled_visitors import Source, Visits, indented
from ..schema import LIST, MAP, STRUCT, FieldInfo

NULL: Final = msgspec.Raw(b"null")

_to_json = msgspec.json.Encoder().encode


def fill(obj: Struct) -> None:
    """Put in the zero values that are always written, at every level."""
    _FILL[type(obj)](obj)


def encode(obj: Struct) -> bytes:
    """The JSON that Go would write. Fills the object."""
    nulls: list[tuple[Any, str]] = []
    try:
        _ENCODE[type(obj)](obj, nulls)
        return _to_json(obj)
    finally:
        for part, name in nulls:
            setattr(part, name, None)


def _fill(source: Source, info: FieldInfo) -> list[str]:
    field = f"obj.{info.name}"
    if info.kind == STRUCT and info.struct and info.always == {}:
        create = f"value = {field} = {source.name(info.struct)}()"
        return [f"value = {field}", "if value is None:", f"    {create}", *source.inside(info, "value")]
    if info.always is not UNSET and info.always is not None:
        return [f"if {field} is None:", f"    {field} = {info.always!r}"]
    inside = source.inside(info, "value")
    return [f"value = {field}", "if value is not None:", *indented(inside)] if inside else []


def _encode(source: Source, info: FieldInfo) -> list[str]:
    field = f"obj.{info.name}"
    null = [f"{field} = {source.name(NULL)}", f"nulls.append((obj, {info.name!r}))"]
    if info.kind not in (LIST, MAP):
        lines = _fill(source, info)
        return [*lines, f"if {field} is None:", *indented(null)] if info.always is None else lines
    empty = ["if not value:", *indented(null)]
    if info.always is UNSET:
        empty = ["if value is not None and not value:", f"    {field} = None"]
    inside = source.inside(info, "value")
    return [f"value = {field}", *(["if value:", *indented(inside)] if inside else []), *empty]


_FILL: Final = Visits("fill", _fill)
_ENCODE: Final = Visits("encode", _encode, "nulls")
