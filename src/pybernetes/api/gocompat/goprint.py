"""How Go prints plain JSON values inside messages: `%v`, `%T` and `%#v`."""

from __future__ import annotations

from typing import Any

from . import quote


def plain(value: Any) -> str:
    """As `%v`: `map[a:1 b:[x y]]`."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return quote.number(value)
        case dict():
            return "map[" + " ".join(f"{key}:{plain(value[key])}" for key in sorted(value)) + "]"
        case list():
            return "[" + " ".join(map(plain, value)) + "]"
    return str(value)


def type_of(value: Any) -> str:
    """As `%T`: `map[string]interface {}`."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case str():
            return "string"
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
    return "float64" if isinstance(value, float) else "int64"


def syntax(value: Any) -> str:
    """As `%#v`: `map[string]interface {}{"a":1}`."""
    match value:
        case None:
            return "interface {}(nil)"
        case str():
            return quote.quote(value)
        case dict():
            pairs = ", ".join(f"{quote.quote(key)}:{syntax(value[key])}" for key in sorted(value))
            return f"map[string]interface {{}}{{{pairs}}}"
        case list():
            return "[]interface {}{" + ", ".join(map(syntax, value)) + "}"
    return plain(value)
