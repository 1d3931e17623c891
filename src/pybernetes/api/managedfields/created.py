"""The managed fields of an object that was just created, in microseconds.

A creator owns everything it sent, so the entry depends on the object alone and is written straight from the Struct as
JSON text, by functions that are made once for each class. What comes out is what `compare` finds between the empty
object and this one; the tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from json.encoder import encode_basestring
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET

from .. import schema
from ..base import Kind, Struct
from ..byte_cache import Remembered
from ..meta.v1.objectmeta import ManagedFieldsEntry
from . import paths
from .compare import ABSENT, Walker, same
from .fieldset import EMPTY, Set, encode
from .items import NoIdentity, element
from .kinds import complete, field_node
from .node import Node
from .objects import STRIPPED
from .resetfields import Exclude

Writer = Callable[[Any], str]
"""From a value to JSON text; what it is the text of is said where it is made."""
Row = str | Writer
"""A text that does not depend on the value needs no call."""

_SELF = '".":{}'


def entries(
    new: Kind, manager: str, api_version: str, subresource: str, now: str, reset_fields: Exclude | None
) -> list[ManagedFieldsEntry]:
    """The one entry of the creator, none if it owns nothing."""
    try:
        text = _object(type(new), reset_fields)(new)
    except NoIdentity:
        return []
    if not text:
        return []
    return [
        ManagedFieldsEntry(
            manager=manager,
            operation="Update",
            api_version=api_version,
            time=now,
            fields_type="FieldsV1",
            fields_v_1=msgspec.Raw(f"{{{text}}}".encode()),
            subresource=subresource or None,
        )
    ]


@cache
def _object(cls: type[Kind], reset_fields: Exclude | None) -> Writer:
    # Metadata itself is stripped, not its fields; it was there before, so it has no manager anyway.
    excluded = STRIPPED - {("f:metadata",)}
    return _struct(cls, True, excluded if reset_fields is None else excluded | reset_fields.fields)


def struct_writer(cls: type[Struct], excluded: Set) -> Writer:
    """Writes what is inside a struct of an object that is not of a class, but for these fields."""
    return _struct(cls, True, excluded)


_STRUCTS: dict[tuple[type[Struct], bool, Set], Writer] = {}


def _struct(cls: type[Struct], existed: bool, excluded: Set = EMPTY) -> Writer:
    """Writes what is inside a struct. If it `existed`, with nothing set, only what differs from that is owned.

    A function is compiled for each class, a line or two for each field: Python has no quicker way to look at a hundred
    fields of which eighty are not set.
    """
    known = _STRUCTS.get((cls, existed, excluded))
    if known is not None:
        return known
    names: dict[str, Any] = {}
    # Known before it is compiled: some structs contain themselves.
    _STRUCTS[cls, existed, excluded] = lambda value: str(names["write"](value))
    lines = ["def write(value):", f" text = {'' if existed else _SELF!r}"]
    for info in sorted(schema.fields(cls), key=lambda info: info.wire):
        name = paths.field(info.wire)
        if (name,) in excluded:
            continue
        row = _field(info, existed, frozenset(path[1:] for path in excluded if path[0] == name))
        lines.append(f" item = value.{info.name}")
        if isinstance(row, str):
            lines.append(f" if item is not None: text += {row!r}")
        else:
            # The specs of objects that are made by controllers are often the same.
            names[f"write_{info.name}"] = Remembered(row) if info.wire == "spec" and issubclass(cls, Kind) else row
            lines.append(f" if item is not None: text += write_{info.name}(item)")
        if info.always is not UNSET and not existed:
            node = field_node(info)
            usual = f',"{name}":{{{_anything(node)(complete(info.always, node))}}}'
            lines.append(f" else: text += {usual!r}")
    lines.append(" return text[1:]" if existed else f" return text if len(text) > {len(_SELF)} else ''")
    exec("\n".join(lines), names)
    write: Writer = names["write"]
    _STRUCTS[cls, existed, excluded] = write
    return write


def _field(info: schema.FieldInfo, existed: bool, excluded: Set) -> Row:
    """Writes `,"f:name":{...}`, or nothing if the value is what was there before or what is never stored."""
    name = f',"{paths.field(info.wire)}":'
    if existed and info.always is not UNSET:
        return _changed_field(name, info, excluded)
    inner = _added(info)
    if info.kind in (schema.LIST, schema.MAP) and info.always is UNSET:
        # Empty ones are never stored.
        leaf = name + "{}"
        if isinstance(inner, str):
            return lambda value: leaf if value else ""
        return lambda value: f"{name}{{{inner(value)}}}" if value else ""
    if isinstance(inner, str):
        return f"{name}{{{inner}}}"
    return lambda value: f"{name}{{{inner(value)}}}"


def _changed_field(name: str, info: schema.FieldInfo, excluded: Set) -> Row:
    """The same for a field that is always there: it is owned if its value is not the usual one."""
    always, leaf = info.always, name + "{}"
    if info.struct is not None and not info.atomic:
        write = _struct(info.struct, True, excluded)

        def struct(value: Struct) -> str:
            inner = write(value)
            return f"{name}{{{inner}}}" if inner else ""

        return struct
    if info.struct is not None:
        node = field_node(info)
        usual = complete(always, node)
        return lambda value: leaf if complete(msgspec.to_builtins(value), node) != usual else ""
    if info.kind in (schema.LIST, schema.MAP) and not info.atomic:
        inside = _items(info) if info.kind == schema.LIST else _keys(info)
        return lambda value: f"{name}{{{inside(value)}}}" if value != always else ""
    if info.kind == schema.ANY:
        node = field_node(info)

        def anything(value: Any) -> str:
            inner = _difference(always, msgspec.to_builtins(value), node)
            return f"{name}{{{inner}}}" if inner is not None else ""

        return anything
    return lambda value: leaf if value != always else ""


def _added(info: schema.FieldInfo) -> Row:
    """Writes what is inside something that was not there before: its own mark and all that is below it."""
    if info.kind == schema.ANY:
        return _anything(field_node(info))
    if info.atomic or info.kind not in (schema.STRUCT, schema.LIST, schema.MAP):
        return ""
    if info.struct is not None:
        return _struct(info.struct, False)
    inside = _items(info) if info.kind == schema.LIST else _keys(info)
    return lambda value: f"{_SELF},{inside(value)}" if value else ""


def _items(info: schema.FieldInfo) -> Writer:
    """Writes the items of a set, or of a list with keys."""
    node = field_node(info)
    assert info.items is not None
    assert node.list is not None
    inner = _added(info.items)
    if info.items.struct is not None and node.list.keys:
        name_of = _name_by_keys(info.items.struct, node.list.keys)
    else:
        kind = node.list
        name_of = lambda item: _name(element(kind, item))  # noqa: E731

    def write(value: list[Any]) -> str:
        names = list(map(name_of, value))
        texts = [inner] * len(names) if isinstance(inner, str) else list(map(inner, value))
        if len(names) == 1:
            return f"{names[0][1]}:{{{texts[0]}}}"
        rows = sorted(zip(names, texts, strict=True))
        if len({quoted for _, quoted in names}) < len(names):
            # Duplicate items are one field.
            found: dict[_Name, str] = {}
            for name, text in rows:
                found[name] = "" if name in found else text
            rows = list(found.items())
        return ",".join([f"{quoted}:{{{text}}}" for (_, quoted), text in rows])

    return write


_Name = tuple[tuple[Any, ...], str]
"""An element's place among others, and its text in JSON."""


_SHORT = 512  # characters of an element that is remembered


def _name(element: str) -> _Name:
    return _known_name(element) if len(element) <= _SHORT else _make_name(element)


def _make_name(element: str) -> _Name:
    return paths.order(element), encode_basestring(element)


_known_name = lru_cache(16384)(_make_name)


def _name_by_keys(struct: type[Struct], keys: tuple[str, ...]) -> Callable[[Any], _Name]:
    """The name of a Struct in a list with keys. Few names are new: pods of one template have the same."""
    fields = [schema.fields_by_wire(struct)[key] for key in keys]
    usual = [info.always if info.always is not UNSET else info.default for info in fields]
    values_of = attrgetter(*(info.name for info in fields))

    @lru_cache(16384)
    def name(values: Any) -> _Name:
        given = values if len(keys) > 1 else (values,)
        filled = [
            (key, instead if value is None else value) for key, value, instead in zip(keys, given, usual, strict=True)
        ]
        pairs = [(key, value) for key, value in filled if value is not UNSET]
        if not pairs:
            raise NoIdentity("no keys")
        return _name(paths.key(pairs))

    def by_one(item: Any) -> _Name:
        value: Any = values_of(item)
        return name(value) if type(value) is not str or len(value) <= _SHORT else name.__wrapped__(value)

    def by_several(item: Any) -> _Name:
        values = values_of(item)
        long = any(type(each) is str and len(each) > _SHORT for each in values)
        return name.__wrapped__(values) if long else name(values)

    return by_one if len(keys) == 1 else by_several


def _keys(info: schema.FieldInfo) -> Writer:
    """Writes the keys of a map."""
    assert info.items is not None
    inner = _added(info.items)
    if isinstance(inner, str):
        return lambda value: ",".join([encode_basestring("f:" + key) + ":{}" for key in sorted(value)])
    return lambda value: ",".join([f"{encode_basestring('f:' + key)}:{{{inner(value[key])}}}" for key in sorted(value)])


def _anything(node: Node) -> Writer:
    """Writes what is inside a value of no fixed type that was not there before."""

    def write(value: Any) -> str:
        inner = _difference(ABSENT, msgspec.to_builtins(value), node)
        return f"{_SELF},{inner}" if inner else ""

    return write


def _difference(old: Any, new: Any, node: Node) -> str | None:
    walker = Walker()
    walker.compare(old, new, node)
    changes = walker.result()
    found = changes.added | changes.modified
    if not found:
        return "" if old is ABSENT or not same(old, new) else None
    return encode(found)[1:-1].decode()
