"""Built-in kinds as nodes, and their Structs as the wire values upstream would see.

Upstream's typed objects hold more than what was sent: a struct that is not a pointer is there when empty, a required
string is there as `""`. Ownership depends on it (who adds a key to an empty map does not own the map), so `wire`
restores these values.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import msgspec
from msgspec import UNSET

from .. import schema
from ..base import Struct
from .node import BOOLEAN, DEDUCED, NUMERIC, STRING, UNTYPED, UNTYPED_SCALAR, Field, List, Map, Node

_SCALARS = {"string": STRING, "int": NUMERIC, "float": NUMERIC, "bool": BOOLEAN}
_ANY_SCALAR = Node(scalar=UNTYPED_SCALAR)
_FORMATS = {
    # Schemas give these a format, and upstream believes any scalar of a string with a format it does not know.
    "quantity": _ANY_SCALAR,
    "date-time": _ANY_SCALAR,
    "micro-time": _ANY_SCALAR,
    # No type at all in the schema.
    "int-or-string": DEDUCED,
    "json": DEDUCED,
    "fields-v1": Node(map=Map(element=DEDUCED)),
    "raw-extension": UNTYPED,
}


@cache
def node_of(cls: type[Struct], atomic: bool | None = None) -> Node:
    """The node of a class; `atomic` overrides what the class says of itself, as a field may."""
    if atomic is None:
        atomic = getattr(getattr(cls, "map_type", None), "name", None) == "atomic"
    if not cls.__struct_fields__:
        return Node(map=Map(element=DEDUCED, atomic=atomic))
    return Node(
        map=Map(lambda: {field.wire: _field(field) for field in schema.fields(cls)}, atomic=atomic, builtin=True)
    )


def _field(info: schema.FieldInfo) -> Field:
    default = UNSET if info.default is None else info.default
    return Field(field_node(info), default, info.always)


def field_node(info: schema.FieldInfo) -> Node:
    """The node of a field, or of the element of a list or map."""
    if info.struct is not None:
        return node_of(info.struct, info.map_type == "atomic")
    if info.kind == schema.LIST:
        assert info.items is not None
        return Node(list=_list(info, field_node(info.items)))
    if info.kind == schema.MAP:
        assert info.items is not None
        return Node(map=Map(element=field_node(info.items), atomic=info.map_type == "atomic"))
    return _FORMATS.get(info.format or "") or (Node(scalar=_SCALARS[info.kind]) if info.kind in _SCALARS else DEDUCED)


def _list(info: schema.FieldInfo, element: Node) -> List:
    if info.list_type is not None:
        return List(element, info.list_type == "atomic", info.list_map_keys)
    if info.patch_strategy in ("merge", "merge,retainKeys"):
        return List(element, False, (info.patch_merge_key,) if info.patch_merge_key else ())
    return List(element)


def wire(value: Struct) -> dict[str, Any]:
    """The Struct as the plain JSON that upstream's object would be."""
    plain: dict[str, Any] = complete(msgspec.to_builtins(value), node_of(type(value)))
    return plain


def complete(value: Any, node: Node) -> Any:
    """The value with everything that is always there, and without what upstream leaves out when it is empty."""
    if isinstance(value, dict) and node.map is not None:
        if node.map.builtin:
            return _complete_struct(value, node.map)
        if node.map.element is not None and _has_structs(node.map.element):
            return {key: complete(item, node.map.element) for key, item in value.items()}
    elif isinstance(value, list) and node.list is not None and _has_structs(node.list.element):
        return [complete(item, node.list.element) for item in value]
    return value


def _complete_struct(value: dict[str, Any], kind: Map) -> dict[str, Any]:
    result = {}
    for key, item in value.items():
        field = kind.fields.get(key)
        if field is None:
            result[key] = item
        elif field.always is not UNSET or not _left_out(item, field.node):
            result[key] = complete(item, field.node)
    for key, always in _always(kind):
        if key not in result:
            result[key] = always
    return result


@lru_cache(4096)  # definitions have maps of their own
def _always(kind: Map) -> list[tuple[str, Any]]:
    return [(key, complete(each.always, each.node)) for key, each in kind.fields.items() if each.always is not UNSET]


def _has_structs(node: Node) -> bool:
    if node.map is not None:
        return node.map.builtin or (node is not DEDUCED and node is not UNTYPED and node.map.element is not None)
    return node.list is not None


def _left_out(item: Any, node: Node) -> bool:
    """Null, and empty lists and maps; an empty struct is a pointer to something and stays."""
    if item is None or item == []:
        return True
    return item == {} and node.map is not None and node.scalar is None and not node.map.builtin
