"""The schema of a place in an object, as far as server-side apply needs it.

A `Node` may be a scalar, a list or a map; where the schema leaves it open it is all three, and the value decides.
Built-in kinds (`kinds.py`) and custom resources (`structural.py`) both end here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import UNSET

MAP, LIST, SCALAR = "map", "list", "scalar"
NUMERIC, STRING, BOOLEAN, UNTYPED_SCALAR = "numeric", "string", "boolean", "untyped"


class Node:
    """One place. Nodes are compared by identity."""

    __slots__ = ("list", "map", "reconciled", "scalar")

    def __init__(self, scalar: str | None = None, list: List | None = None, map: Map | None = None) -> None:
        self.scalar, self.list, self.map = scalar, list, map
        self.reconciled: dict[frozenset[Any], frozenset[Any]] | None = None
        """Sets of fields as this schema has them (`owned.reconcile`): kept here, they go with the schema."""


class List:
    """A list: replaced as a whole if atomic, else a set of scalars or, with keys, of maps."""

    __slots__ = ("atomic", "element", "keys")

    def __init__(self, element: Node, atomic: bool = True, keys: tuple[str, ...] = ()) -> None:
        self.element, self.atomic, self.keys = element, atomic, keys


class Field(NamedTuple):
    """A declared field of a map."""

    node: Node
    default: Any = UNSET
    """Stands for a key of a list's item that is not given."""
    always: Any = UNSET
    """The stored value when no client set the field."""


class Map:
    """A struct or a map: declared fields, and what any other key leads to (nothing: there may be no other).

    `builtin` is a struct of a built-in kind, whose fields are there or not by the rules of `Field.always`.
    """

    def __init__(
        self,
        fields: Mapping[str, Field] | Callable[[], Mapping[str, Field]] = {},  # noqa: B006 - never written
        element: Node | None = None,
        atomic: bool = False,
        builtin: bool = False,
    ) -> None:
        self._fields, self.element, self.atomic, self.builtin = fields, element, atomic, builtin

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """Resolved when first asked for: some kinds contain themselves."""
        return self._fields() if callable(self._fields) else self._fields

    def child(self, key: str) -> Node | None:
        """Where a key leads."""
        field = self.fields.get(key)
        return field.node if field is not None else self.element


UNTYPED = Node(scalar=UNTYPED_SCALAR)
"""Anything, and always as a whole."""
UNTYPED.list = List(UNTYPED)
UNTYPED.map = Map(element=UNTYPED, atomic=True)

DEDUCED = Node(scalar=UNTYPED_SCALAR, list=List(UNTYPED))
"""Anything: maps merge key by key, all else is taken as a whole."""
DEDUCED.map = Map(element=DEDUCED)


def shape(node: Node, value: Any) -> str:
    """The shape of a place given its value: `map`, `list` or `scalar`. Null, or what does not fit, decides nothing."""
    if isinstance(value, dict):
        if node.map is not None:
            return MAP
    elif isinstance(value, list):
        if node.list is not None:
            return LIST
    elif value is not None and node.scalar is not None:
        return SCALAR
    return MAP if node.map is not None else SCALAR if node.scalar is not None else LIST
