"""JSON without the `json` module: reading with the C scanner, writing as Go's encoder does.

`json` imports `re`, which costs milliseconds at the start of every command.
"""

from __future__ import annotations

import _json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SPACE = " \t\n\r"


class _Settings:
    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}

    @staticmethod
    def parse_constant(word: str) -> float:
        raise ValueError(f"invalid character '{word[0]}' looking for beginning of value")


_scan = _json.make_scanner(_Settings())  # type: ignore[arg-type]


def loads(text: str | bytes) -> Any:
    """The value of a JSON document. Raises ValueError."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        value, end = _scan(text, _skip(text, 0))
    except StopIteration as stop:
        at = stop.value if isinstance(stop.value, int) else 0
        if at >= len(text):
            raise ValueError("unexpected end of JSON input") from None
        raise ValueError(f"invalid character '{text[at]}' looking for beginning of value") from None
    except (ImportError, SystemError):  # the scanner wants to raise json.JSONDecodeError, which is not imported
        raise ValueError("invalid JSON") from None
    end = _skip(text, end)
    if end != len(text):
        raise ValueError(f"invalid character '{text[end]}' after top-level value")
    return value


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def quote(text: str) -> str:
    """A JSON string as Go writes it: `<`, `>` and `&` are escaped for HTML."""
    out = _json.encode_basestring(text)
    if "<" in out or ">" in out or "&" in out:
        out = out.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    if "\u2028" in out or "\u2029" in out:
        out = out.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return out


def number(value: float) -> str:
    """A float as Go's JSON encoder writes it."""
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"json: unsupported value: {value}")
    magnitude = abs(value)
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    if 1e-6 <= magnitude < 1e21:
        text = format(value, "f") if magnitude >= 1e16 else repr(value)
        if "e" in text:
            digits, _, exponent = text.partition("e")
            places = -int(exponent) + len(digits.replace("-", "").replace(".", "")) - 1
            text = f"{value:.{places}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    text = repr(value)
    digits, _, exponent = text.partition("e")
    digits = digits.removesuffix(".0")
    sign = exponent[0] if exponent[0] in "+-" else "+"
    return f"{digits}e{sign}{exponent.lstrip('+-').lstrip('0').rjust(2 if sign == '+' else 1, '0')}"


def _simple(value: Any) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, float):
        return number(value)
    return str(value)


def dumps(value: Any, sort: bool = True) -> str:
    """Compact JSON, keys sorted as in a Go map."""
    if isinstance(value, dict):
        keys = sorted(value) if sort else value
        return "{" + ",".join(f"{quote(key)}:{dumps(value[key], sort)}" for key in keys) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join([dumps(each, sort) for each in value]) + "]"
    return _simple(value)


def pretty(value: Any, indent: str = "    ", sort: bool = True, level: str = "") -> str:
    """Indented JSON."""
    if isinstance(value, dict):
        if not value:
            return "{}"
        inner = level + indent
        keys = sorted(value) if sort else value
        rows = [f"{inner}{quote(key)}: {pretty(value[key], indent, sort, inner)}" for key in keys]
        return "{\n" + ",\n".join(rows) + f"\n{level}}}"
    if isinstance(value, list | tuple):
        if not value:
            return "[]"
        inner = level + indent
        return "[\n" + ",\n".join([inner + pretty(each, indent, sort, inner) for each in value]) + f"\n{level}]"
    return _simple(value)


def in_order(value: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """A map whose keys stand in the order of some names, unknown ones last."""
    return {key: value[key] for key in sorted(value, key=lambda key: names.index(key) if key in names else len(names))}


def copy(value: Any) -> Any:
    """A deep copy of JSON data."""
    if isinstance(value, dict):
        return {key: copy(each) for key, each in value.items()}
    if isinstance(value, list):
        return [copy(each) for each in value]
    return value


def dig(value: Any, *path: str | int, default: Any = None) -> Any:
    """The value at a path of keys and indices, or the default."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return default
    return default if value is None else value


def go_quote(text: str) -> str:
    """A string as Go's %q prints it."""
    out = ['"']
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif char.isprintable():
            out.append(char)
        elif ord(char) < 0x80:
            out.append(f"\\x{ord(char):02x}")
        elif ord(char) < 0x10000:
            out.append(f"\\u{ord(char):04x}")
        else:
            out.append(f"\\U{ord(char):08x}")
    return "".join([*out, '"'])


_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


def stream(raw: bytes) -> list[Any]:
    """JSON values that follow each other. Raises ValueError."""
    text = raw.decode("utf-8", "replace")
    found, at = [], _skip(text, 0)
    while at < len(text):
        try:
            value, at = _scan(text, at)
        except StopIteration:
            if _cut(text[at:]):
                raise ValueError("unexpected EOF") from None
            raise ValueError(f"invalid character '{text[at]}' looking for beginning of value") from None
        except (ImportError, SystemError, ValueError):
            raise ValueError("unexpected EOF" if _cut(text[at:]) else "invalid JSON") from None
        found.append(value)
        at = _skip(text, at)
    return found


def _cut(text: str) -> bool:
    """Whether JSON ends within a string, an object or a list."""
    depth, at = 0, 0
    while at < len(text):
        char = text[at]
        if char == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
            if at >= len(text):
                return True
        depth += (char in "{[") - (char in "}]")
        at += 1
    return depth > 0
