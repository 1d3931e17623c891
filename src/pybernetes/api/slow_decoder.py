"""A JSON value read against a class, field by field, when the compiled decoder has refused it.

Collects what upstream would say, drops what is unknown, and accepts what Go accepts: null for anything.
"""

from __future__ import annotations

from base64 import b64encode
from math import isfinite
from typing import Any, Final

from .base import Struct
from .gocompat import gojson
from .gocompat.gojson import Number, Pairs
from .gocompat.gotypes import go_field, go_name
from .gocompat.quote import quote
from .normalize import CANONICAL
from .quantity import ERR_FORMAT
from .schema import ANY, LIST, MAP, STRUCT, FieldInfo, fields_by_wire

MAX_PROBLEMS: Final = 100
"""More unknown or repeated fields than these are not listed."""

Stack = tuple[tuple[type[Struct], FieldInfo], ...]
"""The fields on the way to a value, each with its class."""


class DecodeError(ValueError):
    """A body that cannot become the kind; its words are Go's, without the kind's name in front."""


def walk(cls: type[Struct], value: Any, walker: Walk | None = None) -> Walk:
    """Read a value against a class, in Go's words or a walker's own; `DecodeError` if it cannot go on."""
    walker = walker or Walk()
    try:
        if not isinstance(value, (Pairs, dict)):
            walker.error = f"json: cannot unmarshal {gojson.word(value)} into Go value of type {go_name(cls)}"
        else:
            walker.value = walker.struct(value, cls, "", ())
    except RecursionError:
        raise DecodeError(gojson.TOO_DEEP) from None
    return walker


class Walk:
    """Reads a value against a class: collects problems, the first error, and a value that fits."""

    def __init__(self) -> None:
        self.value: Any = None
        self.problems: list[str] = []
        self.error: str | None = None

    def struct(self, pairs: Any, cls: type[Struct], path: str, stack: Stack) -> dict[str, Any]:
        known = fields_by_wire(cls)
        result: dict[str, Any] = {}
        seen: set[str] = set()
        for key, value in pairs if type(pairs) is Pairs else pairs.items():
            info = known.get(key)
            at = f"{path}.{key}" if path else key
            if info is None:
                self.problem("unknown field", at)
                continue
            if key in seen:
                self.problem("duplicate field", at)
            seen.add(key)
            if value is None:
                result.pop(key, None)
            else:
                result[key] = self.read(value, info, at, (*stack, (cls, info)))
        return result

    def read(self, value: Any, info: FieldInfo, path: str, stack: Stack, depth: int = 0) -> Any:
        """A value that is not null; `depth` says in how many lists and maps of the last field in the stack it is."""
        kind = info.kind
        if info.format in _CUSTOM:
            return self.custom(value, info.format or "", stack)
        if kind == STRUCT and info.struct is not None:
            if isinstance(value, (Pairs, dict)):
                return self.struct(value, info.struct, path, stack)
        elif kind == LIST and info.items is not None:
            if type(value) is list:
                items = info.items
                return [self.element(each, items, f"{path}[{n}]", stack, depth + 1) for n, each in enumerate(value)]
        elif kind == MAP and info.items is not None:
            if isinstance(value, (Pairs, dict)):
                return self.map(value, info.items, path, stack, depth + 1)
        elif kind == ANY:
            return _union(value, info) if info.variants else gojson.plain(value)
        elif kind == "string":
            if info.format == "byte":
                if type(value) in (str, list):
                    return self.bytes(value, stack, depth)
            elif type(value) is str:
                return value
        elif kind == "bool":
            if type(value) is bool:
                return value
        elif kind == "int":
            if type(value) is int:
                bits = 31 if info.format == "int32" else 63
                if -(1 << bits) <= value < 1 << bits:
                    return value
        elif kind == "float" and type(value) in (int, float, Number):
            number = gojson.as_float(value)
            if isfinite(number):
                return number
        return self.wrong(value, stack, depth)

    def element(self, value: Any, info: FieldInfo, path: str, stack: Stack, depth: int) -> Any:
        """A value in a list or map, where null is the zero of the type."""
        if value is None:
            return _ZERO.get(info.format or "", _ZERO.get(info.kind))
        return self.read(value, info, path, stack, depth)

    def map(self, pairs: Any, items: FieldInfo, path: str, stack: Stack, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs if type(pairs) is Pairs else pairs.items():
            if key in result:
                self.problem("duplicate field", f"{path}.{key}")
            if value is None and items.format in _TIMES:  # no time at all, which JSON has no text for
                continue
            result[key] = self.element(value, items, f"{path}.{key}", stack, depth)
        return result

    def custom(self, value: Any, format: str, stack: Stack) -> Any:
        """Types that read themselves: what they refuse ends the reading, whatever was found before."""
        if format == "quantity":
            if type(value) is Number:
                value = str(value)
            if type(value) not in (str, int, float):
                raise DecodeError(ERR_FORMAT)
        elif format == "int-or-string":
            if type(value) not in (str, int) or (type(value) is int and not -(1 << 31) <= value < 1 << 31):
                raise DecodeError(f"json: cannot unmarshal {_value_word(value)} into {self.where(stack)} of type int32")
        elif type(value) is not str:
            raise DecodeError(f"json: cannot unmarshal {gojson.word(value)} into {self.where(stack)} of type string")
        try:
            return CANONICAL[format](value)
        except ValueError as error:
            raise DecodeError(str(error)) from None

    def bytes(self, value: str | list[Any], stack: Stack, depth: int) -> str:
        """Bytes are text in base 64, and Go takes a list of numbers as well."""
        try:
            if isinstance(value, str):
                return str(CANONICAL["byte"](value))
            return b64encode(bytes(self.byte(each, stack, depth + 1) for each in value)).decode()
        except ValueError as error:
            if self.error is None:
                self.error = str(error)
            return ""

    def byte(self, value: Any, stack: Stack, depth: int) -> int:
        if type(value) is int and 0 <= value < 256:
            return value
        if value is not None:
            self.wrong(value, stack, depth)
        return 0

    def problem(self, what: str, path: str) -> None:
        text = f"{what} {quote(path)}"
        if len(self.problems) < MAX_PROBLEMS and text not in self.problems:
            self.problems.append(text)

    def wrong(self, value: Any, stack: Stack, depth: int) -> None:
        """The first wrong type is remembered; reading goes on, for something worse may follow."""
        if self.error is None:
            go_type = go_field(*stack[-1]).types[depth]
            found = _value_word(value) if go_type in _NUMBERS else gojson.word(value)
            self.error = f"json: cannot unmarshal {found} into {self.where(stack)} of type {go_type}"

    def where(self, stack: Stack) -> str:
        """The field, as Go's decoder calls it."""
        names = [name for cls, info in stack for name in (*go_field(cls, info).embedded, info.wire)]
        return f"Go struct field {stack[-1][0].__name__}.{'.'.join(names)}"


def _union(value: Any, info: FieldInfo) -> Any:
    """A value of several types, which reads itself: unknown fields in it are not reported, errors end the reading.

    What is none of its types counts as nothing said, unless one of them is a flag.
    """
    struct = next(each.struct for each in info.variants if each.struct is not None)
    others = {each.kind: each for each in info.variants}
    if isinstance(value, (Pairs, dict)):
        return _alone(struct, value)
    if type(value) is list and LIST in others:
        items = others[LIST].items
        return [_alone(struct, each) if items and items.struct else _text(each) for each in value]
    if "bool" not in others:
        return []
    if type(value) is not bool:
        raise DecodeError("boolean or JSON schema expected")
    return value


def _alone(cls: type[Struct], value: Any) -> Any:
    walked = walk(cls, value if value is not None else {})
    if walked.error is not None:
        raise DecodeError(walked.error)
    return walked.value


def _text(value: Any) -> str:
    if type(value) is str or value is None:
        return value or ""
    raise DecodeError(f"json: cannot unmarshal {gojson.word(value)} into Go value of type string")


_NUMBERS = frozenset({"int32", "int64", "float64", "uint8"})
_TIMES = frozenset({"date-time", "micro-time"})
_CUSTOM = frozenset({"quantity", "int-or-string", "duration", *_TIMES})
_ZERO: dict[str, Any] = {
    "string": "",
    "int": 0,
    "bool": False,
    "float": 0.0,
    STRUCT: {},
    LIST: [],
    MAP: {},
    "quantity": "0",
    "int-or-string": 0,
}


def _value_word(value: Any) -> str:
    word = gojson.word(value)
    return f"number {value}" if word == "number" else word
