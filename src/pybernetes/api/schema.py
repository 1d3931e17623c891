"""The fields of the kinds' classes, for code that works on any kind: OpenAPI, strict decoding, strategic merge,
server-side apply, explain.

`fields(cls)` reads annotations and markers once for each class. Decoding and encoding do not need it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints
from typing import Union as TypingUnion

from msgspec import UNSET

from .base import Struct
from .types import Always, Default, Enum, Format, ListType, MapType, Patch, Pointer, Required, Union

STRUCT: Final = "struct"
LIST: Final = "list"
MAP: Final = "map"
ANY: Final = "any"
_PLAIN: Final = {str: "string", int: "int", bool: "bool", float: "float"}
SCALARS: Final = frozenset(_PLAIN.values())
_ZEROES: Final[dict[str, Any]] = {"struct": {}, "string": "", "int": 0, "bool": False}
WITHOUT_ZERO: Final = ("byte", "date-time", "micro-time", "quantity", "int-or-string")
# Formats that take more than one type of JSON and are strings to a schema.
_TEXTUAL: Final = ("quantity", "int-or-string")


@dataclass(frozen=True, slots=True, eq=False)
class FieldInfo:
    """One field, or the element of a list or map (which has no name)."""

    name: str
    """In Python."""
    wire: str
    """In JSON."""
    kind: str
    """`struct`, `list`, `map`, `string`, `int`, `bool`, `float`, `any`. Quantities and int-or-strings are strings."""
    struct: type[Struct] | None = None
    """The class, if it is a struct."""
    items: FieldInfo | None = None
    """The element, if it is a list or a map."""
    variants: tuple[FieldInfo, ...] = ()
    """Its alternative types, if there are several and some have fields; the kind is `any` then."""
    format: str | None = None
    required: bool = False
    enum: tuple[str, ...] = ()
    list_type: str | None = None
    list_map_keys: tuple[str, ...] = ()
    map_type: str | None = None
    """Of the field, else of its class: `atomic`, `granular` or nothing said."""
    patch_strategy: str | None = None
    patch_merge_key: str | None = None
    default: Any = UNSET
    """The schema's default, `UNSET` if there is none."""
    always: Any = UNSET
    """The value that upstream writes for an unset field, `UNSET` if it leaves it out."""
    pointer: bool = False
    """Whether a text, number or flag can be zero without being absent."""

    @property
    def atomic(self) -> bool:
        """Whether server-side apply replaces the value as a whole."""
        if self.kind == LIST:
            return self.list_type in (None, "atomic")
        return self.map_type == "atomic"


@cache
def fields(cls: type[Struct]) -> tuple[FieldInfo, ...]:
    """The fields of a class, in their order on the wire."""
    hints = get_type_hints(cls, include_extras=True)
    names = zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)
    return tuple(_field(name, wire, hints[name]) for name, wire in names)


@cache
def fields_by_wire(cls: type[Struct]) -> dict[str, FieldInfo]:
    """The fields of a class by their names on the wire."""
    return {field.wire: field for field in fields(cls)}


def union_of(cls: type[Struct]) -> Union | None:
    """The union that the fields of the class form, if they do."""
    return getattr(cls, "union", None)


def _field(name: str, wire: str, hint: Any) -> FieldInfo:
    markers: list[Any] = []
    hint = _plain(hint, markers)
    info = _type(hint, name, wire)
    enum: tuple[str, ...] = ()
    for marker in markers:
        match marker:
            case Format():
                info = replace(info, format=marker.name, kind="string" if marker.name in _TEXTUAL else info.kind)
            case ListType():
                info = replace(info, list_type=marker.name, list_map_keys=marker.keys)
            case MapType():
                info = replace(info, map_type=marker.name)
            case Patch():
                info = replace(info, patch_strategy=marker.strategy, patch_merge_key=marker.merge_key)
            case Enum():
                enum = tuple(marker)
            case Always():
                info = replace(info, always=marker.value)
            case Default():
                info = replace(info, default=marker.value)
            case _ if marker is Required:
                info = replace(info, required=True)
            case _ if marker is Pointer:
                info = replace(info, pointer=True)
    if info.always is None and info.kind in SCALARS and info.format not in WITHOUT_ZERO:
        info = replace(info, pointer=True)
    if info.default is UNSET and info.always is not None and info.format not in _TEXTUAL:
        info = replace(info, default=info.always)
    if enum and info.items:
        info = replace(info, items=replace(info.items, enum=enum))
    elif enum:
        info = replace(info, enum=enum)
    return info


def _type(hint: Any, name: str, wire: str) -> FieldInfo:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is list:
        return FieldInfo(name, wire, LIST, items=_element(arguments[0]))
    if origin is dict:
        return FieldInfo(name, wire, MAP, items=_element(arguments[1]))
    if hint in _PLAIN:
        return FieldInfo(name, wire, _PLAIN[hint])
    if isinstance(hint, type) and issubclass(hint, Struct):
        map_type: MapType | None = getattr(hint, "map_type", None)
        return FieldInfo(name, wire, STRUCT, struct=hint, map_type=map_type.name if map_type else None)
    if origin in (TypingUnion, UnionType):
        variants = tuple(_type(each, name, wire) for each in arguments)
        return FieldInfo(name, wire, ANY, variants=variants if any(each.struct for each in variants) else ())
    return FieldInfo(name, wire, ANY)


def _element(hint: Any) -> FieldInfo:
    """Elements of lists and maps are never absent, so their schemas default to the zero value."""
    info = _field("", "", hint)
    return replace(info, default=_ZEROES.get(info.kind, UNSET)) if info.format not in WITHOUT_ZERO else info


def _plain(hint: Any, markers: list[Any]) -> Any:
    """A type without `None` and without markers, which are put into the list."""
    while True:
        if get_origin(hint) is Annotated:
            hint, *found = get_args(hint)
            markers += found
            continue
        if get_origin(hint) in (TypingUnion, UnionType):
            arguments = [each for each in get_args(hint) if each is not NoneType]
            if len(arguments) == 1:
                hint = arguments[0]
                continue
        return hint
