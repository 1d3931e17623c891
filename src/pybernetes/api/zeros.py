"""Objects as Go's encoder shows them, whatever a client left out or spelled out.

Of a value that is zero Go writes what its type demands: `status: {}`, `attached: false` and `lastProbeTime: null` are
there although nobody set them, `labels: {}` and `ports: []` are not although somebody did. The `Always` markers of the
kinds say which is which. (Texts, numbers and flags that are zero are taken away earlier, in `normalize.py`, so that
defaults need not tell `protocol: ""` from no protocol.)

`fill` makes two objects that mean the same the same, which is what updates are compared by. A `null` cannot be kept in
an object, where None is absent; `encode` writes it. Where a list must be written, an empty one becomes null too: in
upstream's store, which does not know the difference, but not before validation has spoken of `[]`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET

from .base import Struct
from .schema import LIST, MAP, STRUCT, FieldInfo
from .visits import Source, Visits, indented

NULL: Final = msgspec.Raw(b"null")

_encode = msgspec.json.Encoder().encode


def fill(obj: Struct) -> None:
    """Put in the zero values that are always written, at every level, and take out empty lists and maps."""
    _FILL.of(type(obj))(obj)


normalize = fill


def encode(obj: Struct) -> bytes:
    """The JSON that Go would write. Fills the object."""
    nulls: list[tuple[Any, str, Any]] = []
    try:
        _FILL_WITH_NULLS.of(type(obj))(obj, nulls)
        return _encode(obj)
    finally:
        for part, name, value in nulls:
            setattr(part, name, value)


def _fill(source: Source, info: FieldInfo) -> list[str]:
    field = f"obj.{info.name}"
    always = info.always is not UNSET and info.always is not None
    if info.kind == STRUCT and info.struct and always:
        create = f"value = {field} = {source.name(info.struct)}()"
        return [f"value = {field}", "if value is None:", f"    {create}", *source.inside(info, "value")]
    if always:
        return [f"if {field} is None:", f"    {field} = {info.always!r}"]
    inside = indented(source.inside(info, "value"))
    if info.kind in (LIST, MAP) and info.always is UNSET:
        drop = ["if value is not None and not value:", f"    {field} = None"]
        if inside:
            drop = ["if value:", *inside, "elif value is not None:", f"    {field} = None"]
        return [f"value = {field}", *drop]
    return [f"value = {field}", "if value is not None:", *inside] if inside else []


def _fill_with_nulls(source: Source, info: FieldInfo) -> list[str]:
    lines = _fill(source, info)
    if info.always is None:
        field = f"obj.{info.name}"
        absent = f"not {field}" if info.kind in (LIST, MAP) else f"{field} is None"
        put = [f"nulls.append((obj, {info.name!r}, {field}))", f"{field} = {source.name(NULL)}"]
        lines += [f"if {absent}:", *indented(put)]
    return lines


_FILL: Final = Visits("fill", _fill)
_FILL_WITH_NULLS: Final = Visits("encode", _fill_with_nulls, "nulls")
