"""CEL's own functions and operators."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...apiextensions.patterns import PatternError, compile_pattern
from ...gocompat.quote import number
from ..functions import Library, Overload, function, method
from ..types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST_A,
    MAP_AB,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    B,
    Type,
    type_of_type,
)
from ..values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    EvaluationError,
    Timestamp,
    UInt,
    bare_type,
    concatenate,
    contains,
    duration,
    equal,
    parse_go_duration,
    parse_timestamp,
    timestamp,
)


def _int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def _uint(value: int) -> UInt:
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")


def _quotient(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("division by zero")
    result = abs(one) // abs(other)
    return _int(result if (one < 0) == (other < 0) else -result)


def _remainder(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("modulus by zero")
    if one == INT_MIN and other == -1:
        raise EvaluationError("integer overflow")
    return (
        int(math.fmod(one, other))
        if abs(one) < 2**53 and abs(other) < 2**53
        else abs(one) % abs(other) * (-1 if one < 0 else 1)
    )


def _divide_double(one: float, other: float) -> float:
    if other == 0:
        if one == 0 or math.isnan(one):
            return math.nan
        return math.copysign(math.inf, one) * math.copysign(1.0, other)
    return one / other


def _double(compute: Callable[[float, float], float]) -> Callable[[float, float], float]:
    def safe(one: float, other: float) -> float:
        try:
            return compute(one, other)
        except OverflowError:
            return math.inf

    return safe


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def checked(one: Any, other: Any) -> bool:
        if one != one or other != other:
            raise EvaluationError("NaN values cannot be ordered")
        return compare(one, other)

    return checked


def _comparisons(word: str, compare: Callable[[Any, Any], bool]) -> list[Overload]:
    checked = _ordered(compare)
    found = [
        function(f"{word}_{name}", (type, type), BOOL, compare)
        for name, type in (
            ("bool", BOOL),
            ("int64", INT),
            ("uint64", UINT),
            ("string", STRING),
            ("bytes", BYTES),
            ("timestamp", TIMESTAMP),
            ("duration", DURATION),
        )
    ]
    found.append(function(f"{word}_double", (DOUBLE, DOUBLE), BOOL, checked))
    numbers = (("int64", INT), ("uint64", UINT), ("double", DOUBLE))
    for name, type in numbers:
        for name2, type2 in numbers:
            if type is not type2:
                found.append(function(f"{word}_{name}_{name2}", (type, type2), BOOL, checked))
    return found


def _conversion_error(source: str, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


def _parse_int(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits.isascii() and digits.isdigit() and len(digits) < 25 and INT_MIN <= int(text) <= INT_MAX:
        return int(text)
    raise _conversion_error("string", "int")


def _parse_uint(text: str) -> UInt:
    if text.isascii() and text.isdigit() and len(text) < 25 and int(text) <= UINT_MAX:
        return UInt(text)
    raise _conversion_error("string", "uint")


def _parse_double(text: str) -> float:
    try:
        if "_" in text or text != text.strip():
            raise ValueError
        return float(text)
    except ValueError:
        raise _conversion_error("string", "double") from None


def _parse_bool(text: str) -> bool:
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise _conversion_error("string", "bool")


def _double_to_int(value: float) -> int:
    if math.isnan(value) or math.isinf(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> UInt:
    if math.isnan(value) or math.isinf(value) or not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return UInt(int(value))


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _string_to_duration(text: str) -> Duration:
    found = parse_go_duration(text)
    if found is None:
        raise _conversion_error("string", "google.protobuf.Duration")
    return found


def _string_to_timestamp(text: str) -> Timestamp:
    found = parse_timestamp(text)
    if found is None:
        raise _conversion_error("string", "google.protobuf.Timestamp")
    return found


def _matches(text: str, pattern: str) -> bool:
    try:
        return compile_pattern(pattern).search(text) is not None
    except PatternError as error:
        raise EvaluationError(str(error)) from None


def _zone(name: str) -> tzinfo:
    if ":" in name:
        try:
            sign = -1 if name[0] == "-" else 1
            hours, minutes = name.lstrip("+-").split(":", 1)
            return timezone(sign * timedelta(hours=int(hours), minutes=int(minutes)))
        except ValueError:
            raise EvaluationError(f"unknown time zone {name}") from None
    try:
        return UTC if name in ("", "UTC") else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _moment(value: Timestamp, zone: str) -> datetime:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value // 1_000_000_000)).astimezone(_zone(zone))


def _part(
    name: str, read: Callable[[datetime, Timestamp], int], of_duration: Callable[[Duration], int] | None = None
) -> list[Overload]:
    found = [
        method(f"timestamp_to_{name}", (TIMESTAMP,), INT, lambda value: read(_moment(value, ""), value)),
        method(
            f"timestamp_to_{name}_with_tz", (TIMESTAMP, STRING), INT, lambda value, tz: read(_moment(value, tz), value)
        ),
    ]
    if of_duration is not None:
        found.append(method(f"duration_to_{name}", (DURATION,), INT, of_duration))
    return found


def _whole(unit: int) -> Callable[[Duration], int]:
    return lambda value: _quotient(int(value), unit)


def _identity(value: Any) -> Any:
    return value


def _same(id: str, type: Type) -> Overload:
    return function(id, (type,), type, _identity)


def _length(value: Any) -> int:
    return len(value)


_LENGTHS: tuple[tuple[str, Type], ...] = (("bytes", BYTES), ("list", LIST_A), ("map", MAP_AB), ("string", STRING))

LIBRARY: Library = {
    "_==_": [function("equals", (A, A), BOOL, equal)],
    "_!=_": [function("not_equals", (A, A), BOOL, lambda one, other: not equal(one, other))],
    "_<_": _comparisons("less", operator.lt),
    "_<=_": _comparisons("less_equals", operator.le),
    "_>_": _comparisons("greater", operator.gt),
    "_>=_": _comparisons("greater_equals", operator.ge),
    "_+_": [
        function("add_bytes", (BYTES, BYTES), BYTES, operator.add),
        function("add_double", (DOUBLE, DOUBLE), DOUBLE, operator.add),
        function("add_duration_duration", (DURATION, DURATION), DURATION, lambda a, b: duration(int(a) + int(b))),
        function(
            "add_duration_timestamp",
            (DURATION, TIMESTAMP),
            TIMESTAMP,
            lambda a, b: timestamp(int(a) + int(b), b.offset),
        ),
        function(
            "add_timestamp_duration",
            (TIMESTAMP, DURATION),
            TIMESTAMP,
            lambda a, b: timestamp(int(a) + int(b), a.offset),
        ),
        function("add_int64", (INT, INT), INT, lambda a, b: _int(a + b)),
        function("add_list", (LIST_A, LIST_A), LIST_A, concatenate),
        function("add_string", (STRING, STRING), STRING, operator.add),
        function("add_uint64", (UINT, UINT), UINT, lambda a, b: _uint(int(a) + int(b))),
    ],
    "_-_": [
        function("subtract_double", (DOUBLE, DOUBLE), DOUBLE, operator.sub),
        function("subtract_duration_duration", (DURATION, DURATION), DURATION, lambda a, b: duration(int(a) - int(b))),
        function("subtract_int64", (INT, INT), INT, lambda a, b: _int(a - b)),
        function(
            "subtract_timestamp_duration",
            (TIMESTAMP, DURATION),
            TIMESTAMP,
            lambda a, b: timestamp(int(a) - int(b), a.offset),
        ),
        function(
            "subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION, lambda a, b: duration(int(a) - int(b))
        ),
        function("subtract_uint64", (UINT, UINT), UINT, lambda a, b: _uint(int(a) - int(b))),
    ],
    "_*_": [
        function("multiply_double", (DOUBLE, DOUBLE), DOUBLE, _double(operator.mul)),
        function("multiply_int64", (INT, INT), INT, lambda a, b: _int(a * b)),
        function("multiply_uint64", (UINT, UINT), UINT, lambda a, b: _uint(int(a) * int(b))),
    ],
    "_/_": [
        function("divide_double", (DOUBLE, DOUBLE), DOUBLE, _divide_double),
        function("divide_int64", (INT, INT), INT, _quotient),
        function("divide_uint64", (UINT, UINT), UINT, lambda a, b: UInt(_quotient(int(a), int(b)))),
    ],
    "_%_": [
        function("modulo_int64", (INT, INT), INT, _remainder),
        function("modulo_uint64", (UINT, UINT), UINT, lambda a, b: UInt(_remainder(int(a), int(b)))),
    ],
    "-_": [
        function("negate_double", (DOUBLE,), DOUBLE, operator.neg),
        function("negate_int64", (INT,), INT, lambda a: _int(-a)),
    ],
    "!_": [function("logical_not", (BOOL,), BOOL, operator.not_)],
    "@not_strictly_false": [function("not_strictly_false", (BOOL,), BOOL, _identity)],
    "_&&_": [function("logical_and", (BOOL, BOOL), BOOL, _identity)],
    "_||_": [function("logical_or", (BOOL, BOOL), BOOL, _identity)],
    "_?_:_": [function("conditional", (BOOL, A, A), A, _identity)],
    "_[_]": [
        function("index_list", (LIST_A, INT), A, _identity),
        function("index_map", (MAP_AB, A), B, _identity),
    ],
    "@in": [
        function("in_list", (A, LIST_A), BOOL, lambda value, values: contains(values, value)),
        function("in_map", (A, MAP_AB), BOOL, lambda key, mapping: key in mapping),
    ],
    "size": [function(f"size_{name}", (type,), INT, _length) for name, type in _LENGTHS]
    + [method(f"{name}_size", (type,), INT, _length) for name, type in _LENGTHS],
    "type": [function("type", (A,), type_of_type(A), bare_type)],
    "dyn": [function("to_dyn", (A,), DYN, _identity)],
    "bool": [_same("bool_to_bool", BOOL), function("string_to_bool", (STRING,), BOOL, _parse_bool)],
    "bytes": [_same("bytes_to_bytes", BYTES), function("string_to_bytes", (STRING,), BYTES, str.encode)],
    "double": [
        _same("double_to_double", DOUBLE),
        function("int64_to_double", (INT,), DOUBLE, float),
        function("string_to_double", (STRING,), DOUBLE, _parse_double),
        function("uint64_to_double", (UINT,), DOUBLE, float),
    ],
    "duration": [
        _same("duration_to_duration", DURATION),
        function("int64_to_duration", (INT,), DURATION, duration),
        function("string_to_duration", (STRING,), DURATION, _string_to_duration),
    ],
    "int": [
        _same("int64_to_int64", INT),
        function("double_to_int64", (DOUBLE,), INT, _double_to_int),
        function("duration_to_int64", (DURATION,), INT, int),
        function("string_to_int64", (STRING,), INT, _parse_int),
        function("timestamp_to_int64", (TIMESTAMP,), INT, lambda value: int(value) // 1_000_000_000),
        function("uint64_to_int64", (UINT,), INT, lambda value: _int(int(value))),
    ],
    "string": [
        _same("string_to_string", STRING),
        function("bool_to_string", (BOOL,), STRING, lambda value: "true" if value else "false"),
        function("bytes_to_string", (BYTES,), STRING, _bytes_to_string),
        function("double_to_string", (DOUBLE,), STRING, number),
        function("duration_to_string", (DURATION,), STRING, str),
        function("int64_to_string", (INT,), STRING, str),
        function("timestamp_to_string", (TIMESTAMP,), STRING, str),
        function("uint64_to_string", (UINT,), STRING, str),
    ],
    "timestamp": [
        _same("timestamp_to_timestamp", TIMESTAMP),
        function("int64_to_timestamp", (INT,), TIMESTAMP, lambda value: timestamp(value * 1_000_000_000)),
        function("string_to_timestamp", (STRING,), TIMESTAMP, _string_to_timestamp),
    ],
    "uint": [
        _same("uint64_to_uint64", UINT),
        function("double_to_uint64", (DOUBLE,), UINT, _double_to_uint),
        function("int64_to_uint64", (INT,), UINT, _uint),
        function("string_to_uint64", (STRING,), UINT, _parse_uint),
    ],
    "contains": [method("contains_string", (STRING, STRING), BOOL, lambda text, part: part in text)],
    "endsWith": [method("ends_with_string", (STRING, STRING), BOOL, str.endswith)],
    "startsWith": [method("starts_with_string", (STRING, STRING), BOOL, str.startswith)],
    "matches": [
        function("matches", (STRING, STRING), BOOL, _matches),
        method("matches_string", (STRING, STRING), BOOL, _matches),
    ],
    "getFullYear": _part("year", lambda moment, _: moment.year),
    "getMonth": _part("month", lambda moment, _: moment.month - 1),
    "getDayOfYear": _part("day_of_year", lambda moment, _: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": _part("day_of_month", lambda moment, _: moment.day - 1),
    "getDate": _part("day_of_month_1_based", lambda moment, _: moment.day),
    "getDayOfWeek": _part("day_of_week", lambda moment, _: (moment.weekday() + 1) % 7),
    "getHours": _part("hours", lambda moment, _: moment.hour, _whole(3_600_000_000_000)),
    "getMinutes": _part("minutes", lambda moment, _: moment.minute, _whole(60_000_000_000)),
    "getSeconds": _part("seconds", lambda moment, _: moment.second, _whole(1_000_000_000)),
    "getMilliseconds": _part(
        "milliseconds", lambda _, value: int(value) % 1_000_000_000 // 1_000_000, _whole(1_000_000)
    ),
}
