"""JSON as Go reads it, for the slow path: what is wrong with a body in Go's words, and objects with all their keys.

The fast decoder says neither where Go would have stopped nor that a key came twice. This is used after it has refused
a body, or when a key may have come twice.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from .quote import quote

MAX_DEPTH: Final = 10_000
TOO_DEEP: Final = "invalid character '{' exceeded max depth"

_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_ESCAPES = b'bfnrt\\/"'


class Pairs(list[tuple[str, Any]]):
    """An object with its keys in order, repeated ones too."""

    __slots__ = ()


class Number(str):
    """A number with a point or an exponent, as it was written."""

    __slots__ = ()


class SyntaxProblem(ValueError):
    """A body that is no JSON; its words are Go's."""


def loads(body: bytes) -> Any:
    """The body with `Pairs` for objects and `Number` for fractions; `SyntaxProblem` if it is no JSON."""
    text = body.decode("utf-8", "replace")
    if "\\u" in text:
        text = _SURROGATE.sub(_pair_or_replacement, text)
    try:
        return json.loads(text, object_pairs_hook=Pairs, parse_float=Number, parse_int=_int, parse_constant=_constant)
    except RecursionError:  # long before Go's limit; no real object is nested so deep
        raise SyntaxProblem(syntax_problem(body) or TOO_DEEP) from None
    except ValueError:
        raise SyntaxProblem(syntax_problem(body) or "invalid character in JSON input") from None


def plain(value: Any) -> Any:
    """The value with ordinary dicts (the last of repeated keys wins), and floats for what is no 64-bit integer."""
    if type(value) is Pairs:
        return {key: plain(each) for key, each in value}
    if type(value) is list:
        return [plain(each) for each in value]
    if type(value) is Number or (type(value) is int and not -(1 << 63) <= value < 1 << 63):
        return as_float(value)
    return value


def duplicates(value: Any, path: str = "") -> list[str]:
    """A line for every key that an object of `Pairs` has twice, in the order they come."""
    found: list[str] = []
    if type(value) is Pairs:
        seen: set[str] = set()
        told: set[str] = set()
        for key, each in value:
            at = f"{path}.{key}" if path else key
            if key in seen and key not in told:
                told.add(key)
                found.append(f"duplicate field {quote(at)}")
            seen.add(key)
            found += duplicates(each, at)
    elif type(value) is list:
        for index, each in enumerate(value):
            found += duplicates(each, f"{path}[{index}]")
    return found


def as_float(value: int | float | Number) -> float:
    """The number as a float; infinite if it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def word(value: Any) -> str:
    """Go's name for the type of a value."""
    if isinstance(value, Number) or type(value) in (int, float):
        return "number"
    if value is None:
        return "null"
    if isinstance(value, (Pairs, dict)):
        return "object"
    return {str: "string", bool: "bool", list: "array"}[type(value)]


# A pair of surrogates stays; half of one is no character and becomes the replacement character.
_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\[^u]"
)


def _pair_or_replacement(match: re.Match[str]) -> str:
    text = match[0]
    return "\\ufffd" if len(text) == 6 else text


def _int(text: str) -> int | Number:
    # More digits than Python converts.
    return int(text) if len(text) < 4000 else Number(text)


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


class _Wrong(Exception):
    pass


def syntax_problem(body: bytes) -> str | None:
    """Where and why Go's scanner would stop; None if it would not."""
    try:
        end = _scan(body)
    except _Wrong as wrong:
        return str(wrong)
    while end < len(body):
        if body[end] not in _SPACE:
            return f"invalid character {_char(body[end])} after top-level value"
        end += 1
    return None


def _scan(body: bytes) -> int:
    """The end of the first value. What is open is on a stack of our own: input may nest as deep as it likes."""
    stack: list[int] = []
    at = 0
    while True:  # a value is expected
        at = _skip(body, at)
        char = _at(body, at)
        if char in b"{[":
            stack.append(char)
            if len(stack) > MAX_DEPTH:
                raise _Wrong(f"invalid character {_char(char)} exceeded max depth")
            at = _skip(body, at + 1)
            if char == ord("{"):
                if _at(body, at) != ord("}"):
                    at = _key(body, at)
                    continue
            elif _at(body, at) != ord("]"):
                continue
        else:
            at = _scalar(body, at)
        while True:  # a value has ended, or an empty object or array is to be closed
            if not stack:
                return at
            at = _skip(body, at)
            char = _at(body, at)
            closing = ord("}") if stack[-1] == ord("{") else ord("]")
            if char == closing:
                stack.pop()
                at += 1
                continue
            if char != ord(","):
                after = "object key:value pair" if stack[-1] == ord("{") else "array element"
                raise _Wrong(f"invalid character {_char(char)} after {after}")
            at += 1
            if stack[-1] == ord("{"):
                at = _key(body, _skip(body, at))
            break


def _key(body: bytes, at: int) -> int:
    char = _at(body, at)
    if char != ord('"'):
        raise _Wrong(f"invalid character {_char(char)} looking for beginning of object key string")
    at = _skip(body, _string(body, at))
    char = _at(body, at)
    if char != ord(":"):
        raise _Wrong(f"invalid character {_char(char)} after object key")
    return at + 1


def _scalar(body: bytes, at: int) -> int:
    char = body[at]
    if char == ord('"'):
        return _string(body, at)
    for name in (b"true", b"false", b"null"):
        if char == name[0]:
            for index in range(1, len(name)):
                if _at(body, at + index) != name[index]:
                    expecting = f"in literal {name.decode()} (expecting '{chr(name[index])}')"
                    raise _Wrong(f"invalid character {_char(body[at + index])} {expecting}")
            return at + len(name)
    if char == ord("-") or char in _DIGITS:
        return _number(body, at)
    raise _Wrong(f"invalid character {_char(char)} looking for beginning of value")


def _string(body: bytes, at: int) -> int:
    at += 1
    while True:
        char = _at(body, at)
        if char == ord('"'):
            return at + 1
        if char < 0x20:
            raise _Wrong(f"invalid character {_char(char)} in string literal")
        if char == ord("\\"):
            at += 1
            char = _at(body, at)
            if char == ord("u"):
                for _ in range(4):
                    at += 1
                    if _at(body, at) not in _HEX:
                        raise _Wrong(f"invalid character {_char(body[at])} in \\u hexadecimal character escape")
            elif char not in _ESCAPES:
                raise _Wrong(f"invalid character {_char(char)} in string escape code")
        at += 1


def _number(body: bytes, at: int) -> int:
    if body[at] == ord("-"):
        at += 1
        if _at(body, at) not in _DIGITS:
            raise _Wrong(f"invalid character {_char(body[at])} in numeric literal")
    at = at + 1 if body[at] == ord("0") else _digits(body, at)
    if at < len(body) and body[at] == ord("."):
        at += 1
        if _at(body, at) not in _DIGITS:
            raise _Wrong(f"invalid character {_char(body[at])} after decimal point in numeric literal")
        at = _digits(body, at)
    if at < len(body) and body[at] in b"eE":
        at += 1
        if _at(body, at) in b"+-":
            at += 1
        if _at(body, at) not in _DIGITS:
            raise _Wrong(f"invalid character {_char(body[at])} in exponent of numeric literal")
        at = _digits(body, at)
    return at


def _digits(body: bytes, at: int) -> int:
    while at < len(body) and body[at] in _DIGITS:
        at += 1
    return at


def _skip(body: bytes, at: int) -> int:
    while at < len(body) and body[at] in _SPACE:
        at += 1
    return at


def _at(body: bytes, at: int) -> int:
    if at >= len(body):
        raise _Wrong("unexpected end of JSON input")
    return body[at]


def _char(char: int) -> str:
    if char == ord("'"):
        return "'\\''"
    if char == ord('"'):
        return "'\"'"
    return f"'{quote(chr(char))[1:-1]}'"
