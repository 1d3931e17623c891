"""The types of CEL, how they are written in messages, and which may stand for which.

A type is a `Type`; types from a schema are of kind `object` and know their fields. Type parameters (`A` in
`list(A)`) are bound in a `Mapping` while an expression is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Field:
    """One field of an object type: its type and the key under which JSON has it."""

    __slots__ = ("key", "required", "type")

    def __init__(self, type: Type, key: str, required: bool = False) -> None:
        self.type = type
        self.key = key
        self.required = required


class Type:
    """A type. `max_elements` bounds strings, lists and maps for cost estimates; -1 is no bound known."""

    __slots__ = ("convert", "fields", "kind", "max_elements", "min_serialized", "name", "params")

    def __init__(
        self,
        kind: str,
        name: str = "",
        params: tuple[Type, ...] = (),
        fields: dict[str, Field] | None = None,
        max_elements: int = -1,
        min_serialized: int = 1,
    ) -> None:
        self.kind = kind
        self.name = name or kind
        self.params = params
        self.fields = fields
        self.max_elements = max_elements
        self.min_serialized = min_serialized
        self.convert: Any = None  # JSON of this type -> value of CEL, where they differ (schemas.py)

    def __str__(self) -> str:
        if not self.params:
            return _WRITTEN.get(self.kind, self.name)
        return f"{self.name}({', '.join(map(str, self.params))})"

    @property
    def go(self) -> str:
        """The type as Go's own `String()` writes it, which is not quite what messages of the checker have."""
        if self.params:
            return f"{self.name}({', '.join(each.go for each in self.params)})"
        return self.name

    def __repr__(self) -> str:
        return f"Type({self})"

    def exact(self, other: Type) -> bool:
        """Whether both are the same type, parameters included."""
        if self is other:
            return True
        return (
            self.kind == other.kind
            and self.name == other.name
            and len(self.params) == len(other.params)
            and all(map(Type.exact, self.params, other.params))
        )


_WRITTEN = {"error": "!error!", "null_type": "null"}

BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
NULL = Type("null_type")
TIMESTAMP = Type("timestamp", "google.protobuf.Timestamp")
DURATION = Type("duration", "google.protobuf.Duration")
_WRITTEN |= {"timestamp": "timestamp", "duration": "duration", "any": "any"}
DYN = Type("dyn")
ERROR = Type("error")
TYPE = Type("type")


def list_of(element: Type, max_elements: int = -1) -> Type:
    """list(element)"""
    return Type("list", "list", (element,), max_elements=max_elements)


def map_of(key: Type, value: Type, max_elements: int = -1) -> Type:
    """map(key, value)"""
    return Type("map", "map", (key, value), max_elements=max_elements)


def optional_of(inner: Type) -> Type:
    """optional_type(inner)"""
    return Type("opaque", "optional_type", (inner,))


def type_of_type(inner: Type) -> Type:
    """type(inner)"""
    return Type("type", "type", (inner,))


def param(name: str) -> Type:
    """A type parameter."""
    return Type("param", name)


def opaque(name: str) -> Type:
    """A type that only functions know how to handle."""
    return Type("opaque", name)


def object_type(name: str, fields: dict[str, Type | Field]) -> Type:
    """An object with these fields; a plain Type is a field whose key is its name."""
    known = {key: value if isinstance(value, Field) else Field(value, key) for key, value in fields.items()}
    return Type("object", name, fields=known)


A, B = param("A"), param("B")
LIST_A = list_of(A)
MAP_AB = map_of(A, B)
LIST_DYN = list_of(DYN)

Mapping = dict[str, Type]


def is_optional(type: Type) -> bool:
    """Whether this is optional_type(...)."""
    return type.kind == "opaque" and type.name == "optional_type"


def is_dyn(type: Type) -> bool:
    """Whether anything may be here."""
    return type.kind in ("dyn", "any")


def _dyn_or_error(type: Type) -> bool:
    return type.kind in ("dyn", "any", "error")


def assignable(mapping: Mapping, one: Type, other: Type) -> Mapping | None:
    """The bindings under which `one` may stand for `other`, or None."""
    trial = dict(mapping)
    return trial if _assign(trial, one, other) else None


def assignable_all(mapping: Mapping, ones: Sequence[Type], others: Sequence[Type]) -> Mapping | None:
    """The same for lists of types."""
    trial = dict(mapping)
    return trial if _assign_all(trial, ones, others) else None


def _assign_all(mapping: Mapping, ones: Sequence[Type], others: Sequence[Type]) -> bool:
    return len(ones) == len(others) and all(
        _assign(mapping, one, other) for one, other in zip(ones, others, strict=True)
    )


def _assign(mapping: Mapping, one: Type, other: Type) -> bool:
    if other.kind == "param":
        valid, bound = _substitutes(mapping, one, other)
        if valid:
            return True
        if bound:
            return False
    if one.kind == "param":
        return _substitutes(mapping, other, one)[0]
    if _dyn_or_error(one) or _dyn_or_error(other):
        return True
    if one.kind == "null_type":
        return _nullable(other)
    if other.kind == "null_type":
        return _nullable(one)
    if one.kind == "type":
        return other.kind == "type"
    if one.kind in ("opaque", "list", "map"):
        return one.kind == other.kind and one.name == other.name and _assign_all(mapping, one.params, other.params)
    return one.kind == other.kind and one.name == other.name


def _nullable(type: Type) -> bool:
    return type.kind in ("opaque", "object", "any", "duration", "timestamp", "null_type")


def _substitutes(mapping: Mapping, one: Type, parameter: Type) -> tuple[bool, bool]:
    """Whether `one` may be what the parameter is, and whether the parameter was bound already."""
    if one.exact(parameter):
        return True, True
    bound = mapping.get(parameter.name)
    if bound is not None:
        if one.exact(bound):
            return True, True
        if _assign(mapping, one, bound):
            general = most_general(one, bound)
            if _absent(mapping, parameter, general):
                mapping[parameter.name] = general
            return True, True
        return False, True
    if _absent(mapping, parameter, one):
        mapping[parameter.name] = one
        return True, False
    return False, False


def _absent(mapping: Mapping, parameter: Type, within: Type) -> bool:
    if parameter.exact(within):
        return False
    if within.kind == "param":
        bound = mapping.get(within.name)
        return bound is None or _absent(mapping, parameter, bound)
    return all(_absent(mapping, parameter, each) for each in within.params)


def most_general(one: Type, other: Type) -> Type:
    """Of two types that agree, the one that says less."""
    return one if _less_specific(one, other) else other


def _less_specific(one: Type, other: Type) -> bool:
    if is_dyn(one) or one.kind == "param":
        return True
    if is_dyn(other) or other.kind == "param" or one.kind != other.kind:
        return False
    if one.kind in ("opaque", "list", "map"):
        return (
            one.name == other.name
            and len(one.params) == len(other.params)
            and all(map(_less_specific, one.params, other.params))
        )
    return one.kind == "type" or one.exact(other)


def substitute(mapping: Mapping, type: Type, free_to_dyn: bool = False) -> Type:
    """The type with its parameters replaced by what they are bound to."""
    if type.kind == "param":
        bound = mapping.get(type.name)
        if bound is not None:
            return substitute(mapping, bound, free_to_dyn)
        return DYN if free_to_dyn else type
    if not type.params:
        return type
    params = tuple(substitute(mapping, each, free_to_dyn) for each in type.params)
    if all(one is other for one, other in zip(params, type.params, strict=True)):
        return type
    made = Type(type.kind, type.name, params, max_elements=type.max_elements)
    made.convert = type.convert
    return made
