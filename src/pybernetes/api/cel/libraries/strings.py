"""Strings: `charAt`, `indexOf`, `join`, `replace`, `split`, `substring`, `trim`, `format`, `strings.quote`."""

from __future__ import annotations

import re
from typing import Any

from ...gocompat.quote import quote as go_quote
from ..functions import Library, function, method
from ..types import INT, LIST_DYN, STRING, Type, list_of
from ..values import Duration, EvaluationError, Timestamp, show, type_of


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    return text.rfind(part)


def _last_index_of_from(text: str, part: str, start: int) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    if start >= len(text):
        return -1
    return text.rfind(part, 0, start + len(part))


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if not separator:
        characters = list(text)
        if 0 < count < len(characters):
            return [*characters[: count - 1], text[count - 1 :]]
        return characters
    return text.split(separator, count - 1 if count > 0 else -1)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count)


def _join(values: list[Any], separator: str = "") -> str:
    for each in values:
        if not isinstance(each, str):
            raise EvaluationError(f"join: invalid input: {show(each)}")
    return separator.join(values)


_LOWER = {code: code + 32 for code in range(65, 91)}
_UPPER = {code: code - 32 for code in range(97, 123)}
_QUOTED = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


def _quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


MAX_PRECISION = 1000
"""Digits behind the point. Upstream has no limit; a thousand are more than a float has."""
CLAUSE = re.compile(r"%(?:%|(?:\.(\d+))?(.))", re.DOTALL)
UNFINISHED = re.compile(r"(?:^|[^%])(?:%%)*%$")
_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _format(text: str, arguments: list[Any]) -> str:
    position = 0

    def clause(match: re.Match[str]) -> str:
        nonlocal position
        if match[0] == "%%":
            return "%"
        if position >= len(arguments):
            raise EvaluationError(f"index {position} out of range")
        precision = _precision(match[1]) if match[1] is not None else 6
        made = _clause(match[2], precision, arguments[position])
        position += 1
        return made

    if UNFINISHED.search(text):
        raise EvaluationError("unexpected end of string")
    return CLAUSE.sub(clause, text)


_FITTING = {
    "d": (("int", "uint"), "decimal clause can only be used on integers"),
    "f": (("double",), "fixed-point clause can only be used on doubles"),
    "e": (("double",), "scientific clause can only be used on doubles"),
    "b": (("int", "uint", "bool"), "only integers and bools can be formatted as binary"),
    "x": (("int", "uint", "string", "bytes"), "only integers, byte buffers, and strings can be formatted as hex"),
    "o": (("int", "uint"), "octal clause can only be used on integers"),
    "s": (
        (
            "string",
            "bool",
            "bytes",
            "int",
            "uint",
            "double",
            "map",
            "list",
            "type",
            "duration",
            "timestamp",
            "null_type",
        ),
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations,"
        " and timestamps",
    ),
}


def clause_problem(letter: str, kind: str, name: str) -> tuple[str, bool]:
    """The error of formatting a value of this kind so, and whether it is the value's fault."""
    fitting = _FITTING.get("x" if letter == "X" else letter)
    if fitting is None:
        return f'could not parse formatting clause: unrecognized formatting clause "{letter}"', False
    if kind in fitting[0] or kind in ("dyn", "param", "error") or (letter in "fe" and kind == "string"):
        return "", False
    return f"error during formatting: {fitting[1]}, was given {name}", True


def _clause(letter: str, precision: int, value: Any) -> str:
    found = type_of(value)
    message, _ = clause_problem(letter, found.kind, found.name)
    if not message and letter in "fe" and isinstance(value, str):
        if value not in ("NaN", "Infinity", "-Infinity"):
            message = f"error during formatting: {_FITTING[letter][1]}, was given string"
        else:
            value = float(value)
    if message:
        raise EvaluationError(message)
    if letter == "s":
        return _string(value)
    if letter == "d":
        return str(int(value))
    if letter in "fe":
        return _fixed(value, precision) if letter == "f" else _scientific(value)
    if letter in "xX" and isinstance(value, (str, bytes)):
        made = (value.encode() if isinstance(value, str) else value).hex()
        return made.upper() if letter == "X" else made
    return format(int(value), letter)


def _precision(digits: str) -> int:
    if len(digits) > 3 and int(digits[:9]) > MAX_PRECISION:
        raise EvaluationError(f"error during formatting: precision must not be greater than {MAX_PRECISION}")
    return int(digits)


def _fixed(value: float, precision: int) -> str:
    """As upstream's printer for English writes it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "-∞"
    return f"{value:,.{precision}f}"


def _scientific(value: float) -> str:
    """As upstream's printer for English writes it; a precision it takes for a width, which is never reached."""
    if value != value or value in (float("inf"), float("-inf")):
        return _fixed(value, 6)
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    return f"{mantissa}\u00d710{exponent.lstrip('+').translate(_SUPERSCRIPT)}"


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{_literal(key)}:{_literal(item)}" for key, item in value.items())) + "}"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, Type):
        return value.name
    if value is None or isinstance(value, (bool, int, float)):
        return show(value)
    raise EvaluationError(
        "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists,"
        f" types, durations, and timestamps, was given {type_of(value).name}"
    )


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, bytes):
        return "b" + go_quote(value.decode(errors="replace"))
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, Timestamp):
        return f'timestamp("{value}")'
    if isinstance(value, Duration):
        return f'duration("{value}")'
    return _string(value)


_STRINGS = list_of(STRING)

LIBRARY: Library = {
    "charAt": [method("string_char_at_int", (STRING, INT), STRING, _char_at)],
    "indexOf": [
        method("string_index_of_string", (STRING, STRING), INT, _index_of),
        method("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
    ],
    "lastIndexOf": [
        method("string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
        method("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_of_from),
    ],
    "lowerAscii": [method("string_lower_ascii", (STRING,), STRING, lambda text: text.translate(_LOWER))],
    "upperAscii": [method("string_upper_ascii", (STRING,), STRING, lambda text: text.translate(_UPPER))],
    "replace": [
        method("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace),
        method("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace),
    ],
    "split": [
        method("string_split_string", (STRING, STRING), _STRINGS, _split),
        method("string_split_string_int", (STRING, STRING, INT), _STRINGS, _split),
    ],
    "substring": [
        method("string_substring_int", (STRING, INT), STRING, _substring),
        method("string_substring_int_int", (STRING, INT, INT), STRING, _substring_range),
    ],
    "trim": [method("string_trim", (STRING,), STRING, lambda text: text.strip(_SPACE))],
    "format": [method("string_format", (STRING, LIST_DYN), STRING, _format)],
    "strings.quote": [function("strings_quote", (STRING,), STRING, _quote)],
    "join": [
        method("list_join", (_STRINGS,), STRING, _join),
        method("list_join_string", (_STRINGS, STRING), STRING, _join),
    ],
}
