"""The values of CEL in Python: plain JSON values where that is possible, a few classes where it is not.

| CEL | Python |
| --- | --- |
| null, bool, int, double, string, bytes | None, bool, int, float, str, bytes |
| uint | `UInt` |
| list, map, object | list, dict, dict |
| timestamp, duration | `Timestamp`, `Duration` (nanoseconds) |
| optional_type | `Optional` |
| type | `types.Type` |

Errors are exceptions: `EvaluationError` may be absorbed by `&&` and `||`, `CostLimitExceeded` may not.
"""

from __future__ import annotations

import math
from typing import Any

from ..gocompat.quote import number
from ..times import TimeError, civil, parse_duration, parse_moment
from . import types as t

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1


class EvaluationError(Exception):
    """The expression has no value; the message is CEL's. `cost` is what was spent until then."""

    cost = 0


class CostLimitExceeded(Exception):
    """The expression was stopped because it became too expensive."""

    cost = 0

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class UInt(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class Timestamp(int):
    """Nanoseconds since 1970, and the offset in seconds that it was written with and is written with again."""

    offset = 0

    def __str__(self) -> str:
        seconds, nanos = divmod(int(self), 1_000_000_000)
        fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
        minutes = abs(self.offset) // 60
        zone = f"{'-' if self.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if self.offset else "Z"
        return civil(seconds + self.offset) + fraction + zone


class Duration(int):
    """Nanoseconds."""

    __slots__ = ()

    def __str__(self) -> str:
        return number_text(int(self) / 1e9) + "s"


class Optional:
    """A value that may be missing."""

    __slots__ = ("present", "value")

    def __init__(self, present: bool, value: Any = None) -> None:
        self.present = present
        self.value = value


NONE = Optional(False)


class SetList(list[Any]):
    """A list of x-kubernetes-list-type set: its order means nothing."""

    __slots__ = ()


class MapList(list[Any]):
    """A list of x-kubernetes-list-type map: its elements are known by their keys."""

    __slots__ = ("keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def key(self, item: Any) -> tuple[Any, ...]:
        """The identity of an element."""
        return tuple((type(item.get(key)).__name__, str(item.get(key))) for key in self.keys)


class Opaque:
    """Base of values that only functions know; `cel_type` is their type."""

    __slots__ = ()
    cel_type: t.Type


_TYPES: dict[type, t.Type] = {
    bool: t.BOOL,
    int: t.INT,
    UInt: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    type(None): t.NULL,
    Timestamp: t.TIMESTAMP,
    Duration: t.DURATION,
    list: t.list_of(t.DYN),
    tuple: t.list_of(t.DYN),
    SetList: t.list_of(t.DYN),
    MapList: t.list_of(t.DYN),
    dict: t.map_of(t.DYN, t.DYN),
    Optional: t.optional_of(t.DYN),
    t.Type: t.TYPE,
}
_BARE = {"list": t.Type("list"), "map": t.Type("map"), "opaque": t.Type("opaque", "optional_type")}


def type_of(value: Any) -> t.Type:
    """The type a value has at run time."""
    found = _TYPES.get(type(value))
    if found is not None:
        return found
    declared = getattr(value, "cel_type", None)
    if declared is not None:
        return declared  # type: ignore[no-any-return]
    if isinstance(value, dict):
        return _TYPES[dict]
    if isinstance(value, list):
        return _TYPES[list]
    raise EvaluationError(f"unsupported conversion to ref.Val: ({type(value).__name__}){value}")


def bare_type(value: Any) -> t.Type:
    """The result of `type(value)`: without parameters."""
    found = type_of(value)
    return _BARE.get(found.kind, found) if found.params else found


_NUMBERS = (int, float, UInt)


def equal(one: Any, other: Any) -> bool:
    """CEL's equality: numbers across their types, everything else only within its type."""
    kind, kind2 = type(one), type(other)
    if kind is kind2:
        if kind is str or kind is int or kind is bool or kind is float:
            return one == other  # type: ignore[no-any-return]
        if kind is dict:
            if len(one) != len(other):
                return False
            return all(key in other and equal(value, other[key]) for key, value in one.items())
    if kind in _NUMBERS and kind2 in _NUMBERS:
        return one == other  # type: ignore[no-any-return]
    if isinstance(one, list):
        return isinstance(other, list) and _equal_lists(one, other)
    if isinstance(one, dict):
        return isinstance(other, dict) and equal(dict(one), dict(other))
    if kind is not kind2:
        return False
    if kind is Optional:
        return one.present == other.present and (not one.present or equal(one.value, other.value))
    if kind is t.Type:
        return one.name == other.name  # type: ignore[no-any-return]
    return one == other  # type: ignore[no-any-return]


def _equal_lists(one: list[Any], other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    if isinstance(one, SetList):
        return all(contains(other, each) for each in one)
    if isinstance(one, MapList):
        keyed = {one.key(item): item for item in other}
        return all(equal(item, keyed.get(one.key(item))) for item in one)
    return all(map(equal, one, other))


def contains(values: list[Any], wanted: Any) -> bool:
    """Whether one of the values equals the wanted one."""
    kind = type(wanted)
    if kind is str:
        return wanted in values
    return any(equal(each, wanted) for each in values)


def concatenate(one: list[Any], other: list[Any]) -> list[Any]:
    """`+` of lists; of sets it is their union, of maps a merge in which the right side wins."""
    if isinstance(one, SetList):
        return SetList(one + [each for each in other if not contains(one, each)])
    if isinstance(one, MapList):
        incoming = {one.key(item): item for item in other}
        merged = [incoming.pop(one.key(item), item) for item in one]
        return MapList(merged + list(incoming.values()), one.keys)
    return one + other


def size(value: Any) -> int:
    """How large cost accounting takes a value to be."""
    kind = type(value)
    if kind is str or kind is list or kind is dict or kind is bytes:
        return len(value)
    if kind is Optional:
        return size(value.value) if value.present else 1
    if isinstance(value, (list, dict)):
        return len(value)
    measure = getattr(value, "cel_size", None)
    return measure() if measure is not None else 1


def number_text(value: float) -> str:
    """A double as Go's shortest decimal without an exponent."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    text = repr(value)
    if "e" in text:
        text = format(__import__("decimal").Decimal(text), "f")
    return text.removesuffix(".0")


def parse_timestamp(text: str) -> Timestamp | None:
    """RFC 3339 to the nanosecond; None for other text. Raises EvaluationError for what CEL does not know: year 0."""
    try:
        seconds, nanos, offset = parse_moment(text)
    except TimeError:
        return None
    return timestamp(seconds * 1_000_000_000 + nanos, offset)


_FIRST, _LAST = -62135596800, 253402300799  # 0001-01-01T00:00:00Z, 9999-12-31T23:59:59Z


def timestamp(nanos: int, offset: int = 0) -> Timestamp:
    """A moment, if CEL knows it."""
    if not _FIRST <= nanos // 1_000_000_000 <= _LAST:
        raise EvaluationError("timestamp overflow")
    made = Timestamp(nanos)
    if offset:
        made.offset = offset
    return made


def duration(nanos: int) -> Duration:
    """A span, if 64 bits of nanoseconds hold it."""
    if not INT_MIN <= nanos <= INT_MAX:
        raise EvaluationError("duration overflow")
    return Duration(nanos)


def parse_go_duration(text: str) -> Duration | None:
    """`1h2m3.5s`, or None."""
    try:
        return Duration(parse_duration(text))
    except (TimeError, ValueError):
        return None


def show(value: Any) -> str:
    """A value as Go's `%v` shows it in messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value)
    return str(value)
