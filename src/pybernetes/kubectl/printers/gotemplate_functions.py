"""The functions of Go templates, `printf` with Go's verbs, and kubectl's `exists` and `base64decode`."""

from __future__ import annotations

from pybernetes.kubectl.data import dumps, go_quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class FunctionError(Exception):
    """A call that fails."""


class _NoValue:
    """A key that a map does not have."""


class Int(int):
    """Go's `int`: a number of the template, a length or an index. Whole numbers of objects are `int64`."""

    __slots__ = ()


NO_VALUE = _NoValue()
NOTHING = object()
"""No value came down the pipeline."""


def shown(value: Any) -> str:
    """A value as a template prints it: Go's %v."""
    if value is NO_VALUE or value is None:
        return "<no value>"
    return go_value(value)


def go_value(value: Any) -> str:
    """Go's %v of JSON data."""
    if isinstance(value, str):
        return value
    if value is None or value is NO_VALUE:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_value(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list | tuple):
        return "[" + " ".join(go_value(each) for each in value) + "]"
    if isinstance(value, float):
        return float_text(value)
    return str(value)


def go_syntax(value: Any) -> str:
    """Go's %#v of JSON data."""
    if isinstance(value, dict):
        inner = ", ".join(f"{go_quote(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(go_syntax(each) for each in value)}}}"
    if value is None:
        return "interface {}(nil)"
    return go_quote(value) if isinstance(value, str) else go_value(value)


def float_text(value: float) -> str:
    """Go's %v of a float64: the shortest form, with an exponent from 1e21 on."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "0"
    text = repr(abs(value))
    digits, _, exponent = text.partition("e")
    whole, _, fraction = digits.partition(".")
    fraction = "" if fraction == "0" else fraction
    if exponent:
        power = int(exponent) + len(whole) - 1
    else:
        power = len(whole) - 1 if whole != "0" else -(len(fraction) - len(fraction.lstrip("0"))) - 1
    significant = (whole + fraction).strip("0") or "0"
    sign = "-" if value < 0 else ""
    if power < -4 or power >= 21:
        mantissa = significant[0] + (f".{significant[1:]}" if len(significant) > 1 else "")
        return f"{sign}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{significant}"
    padded = significant.ljust(power + 1, "0")
    rest = padded[power + 1 :]
    return f"{sign}{padded[: power + 1]}{'.' + rest if rest else ''}"


def type_name(value: Any) -> str:
    """The Go type of JSON data."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "int" if isinstance(value, Int) else "int64"
    if isinstance(value, float):
        return "float64"
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return "interface {}"


def quoted(value: Any) -> str:
    """A constant as it stood in the template."""
    return go_quote(value) if isinstance(value, str) else go_value(value)


def truth(value: Any) -> bool:
    """The truth value for `if`."""
    return bool(value) and value is not NO_VALUE


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "string"
    return "other"


def _basic(value: Any) -> str:
    kind = _kind(value)
    if kind == "other":
        raise FunctionError(
            "incompatible types for comparison"
            if value is None or value is NO_VALUE
            else f"non-comparable type {go_value(value)}: {type_name(value)}"
        )
    return kind


def _equal(first: Any, *others: Any) -> bool:
    if not others:
        raise FunctionError("missing argument for comparison")
    if first is NO_VALUE:
        first = None
    for other in others:
        other = None if other is NO_VALUE else other
        if first is None or other is None:
            if first is other:
                return True
            continue
        left, right = _kind(first), _kind(other)
        if left == "other" or right == "other":
            value = first if left == "other" else other
            raise FunctionError(f"non-comparable type {go_value(value)}: {type_name(value)}")
        if left != right:
            raise FunctionError("incompatible types for comparison")
        if first == other:
            return True
    return False


def _less(left: Any, right: Any) -> bool:
    first, second = _basic(left), _basic(right)
    if first != second:
        raise FunctionError("incompatible types for comparison")
    if first == "bool":
        raise FunctionError("invalid type for comparison")
    return bool(left < right)


def _index(value: Any, *keys: Any) -> Any:
    if value is NO_VALUE or value is None:
        if not keys:
            return value
        raise FunctionError("index of untyped nil")
    for key in keys:
        if isinstance(value, dict):
            if not isinstance(key, str):
                raise FunctionError(f"value has type {type_name(key)}; should be string")
            value = value.get(key, NO_VALUE)
        elif isinstance(value, list | str):
            if not isinstance(key, int) or isinstance(key, bool):
                raise FunctionError(f"cannot index slice/array with type {type_name(key)}")
            if not 0 <= key < len(value):
                raise FunctionError(f"index out of range: {key}")
            value = value[key] if isinstance(value, list) else value.encode()[key]
        elif value is None or value is NO_VALUE:
            raise FunctionError("index of nil pointer")
        else:
            raise FunctionError(f"can't index item of type {type_name(value)}")
    return value


def _slice(value: Any, *bounds: Any) -> Any:
    if not isinstance(value, list | str):
        raise FunctionError(
            f"can't slice item of type {type_name(value)}" if value is not None else "slice of untyped nil"
        )
    start = bounds[0] if bounds else 0
    stop = bounds[1] if len(bounds) > 1 else len(value)
    for bound in (start, stop):
        if not 0 <= bound <= len(value):
            raise FunctionError(f"index out of range: {bound}")
    if start > stop:
        raise FunctionError(f"invalid slice index: {start} > {stop}")
    return value[start:stop]


def _length(value: Any) -> int:
    if isinstance(value, str):
        return Int(len(value.encode()))
    if isinstance(value, dict | list):
        return Int(len(value))
    if value is None or value is NO_VALUE:
        raise FunctionError("len of nil pointer")
    raise FunctionError(f"len of type {type_name(value)}")


def _print(*values: Any) -> str:
    out = ""
    for at, value in enumerate(values):
        if at and not isinstance(value, str) and not isinstance(values[at - 1], str):
            out += " "
        out += go_value(value)
    return out


def _println(*values: Any) -> str:
    return " ".join(go_value(value) for value in values) + "\n"


def _html(*values: Any) -> str:
    text = _joined(values)
    for char, name in (("&", "&amp;"), ("'", "&#39;"), ('"', "&#34;"), ("<", "&lt;"), (">", "&gt;"), ("\0", "\ufffd")):
        text = text.replace(char, name)
    return text


def _joined(values: tuple[Any, ...]) -> str:
    return values[0] if len(values) == 1 and isinstance(values[0], str) else _print(*values)


def _js(*values: Any) -> str:
    out = []
    for char in _joined(values):
        if char in "\\'\"":
            out.append("\\" + char)
        elif char in "<>&=":
            out.append(f"\\u{ord(char):04X}")
        elif ord(char) < 0x20:
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\u0009"}.get(char, f"\\u{ord(char):04X}"))
        else:
            out.append(char)
    return "".join(out)


def _urlquery(*values: Any) -> str:
    from urllib.parse import quote_plus

    return quote_plus(_joined(values), safe="-_.~")


def _exists(value: Any, *keys: Any) -> bool:
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _call(value: Any, *arguments: Any) -> Any:
    """Objects hold no functions."""
    if value is None or value is NO_VALUE:
        raise FunctionError("call of nil")
    raise FunctionError(f"non-function of type {type_name(value)}")


def _base64decode(text: Any) -> str:
    from base64 import b64decode

    if text is NO_VALUE:
        raise FunctionError("invalid value; expected string")
    try:
        return b64decode(str(text), validate=True).decode("utf-8", "surrogateescape")
    except ValueError:
        raise FunctionError("base64 decode failed: illegal base64 data at input byte 0") from None


def printf(form: Any, *values: Any) -> str:
    """fmt.Sprintf with Go's verbs, flags, widths and its complaints."""
    if not isinstance(form, str):
        raise FunctionError(f"wrong type for value; expected string; got {type_name(form)}")
    out = []
    at, used = 0, 0
    while at < len(form):
        char = form[at]
        at += 1
        if char != "%":
            out.append(char)
            continue
        flags = ""
        while at < len(form) and form[at] in "+-# 0":
            flags += form[at]
            at += 1
        width, at, used = _width(form, at, values, used)
        precision = None
        if at < len(form) and form[at] == ".":
            precision, at, used = _width(form, at + 1, values, used)
            precision = precision or 0
        if at >= len(form):
            out.append("%!(NOVERB)")
            break
        verb = form[at]
        at += 1
        if verb == "%":
            out.append("%")
            continue
        if used >= len(values):
            out.append(f"%!{verb}(MISSING)")
            continue
        out.append(_pad(_verb(verb, flags, precision, values[used]), flags, width, values[used]))
        used += 1
    if used < len(values):
        rest = ", ".join(f"{type_name(value)}={go_value(value)}" for value in values[used:])
        out.append(f"%!(EXTRA {rest})")
    return "".join(out)


def _width(form: str, at: int, values: tuple[Any, ...], used: int) -> tuple[int | None, int, int]:
    if at < len(form) and form[at] == "*" and used < len(values):
        return int(values[used]), at + 1, used + 1
    start = at
    while at < len(form) and form[at].isdigit():
        at += 1
    return (int(form[start:at]) if at > start else None), at, used


def _pad(text: str, flags: str, width: int | None, value: Any) -> str:
    if width is None or len(text) >= width:
        return text
    if "-" in flags:
        return text.ljust(width)
    if "0" in flags and isinstance(value, int | float):
        sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
        return sign + digits.rjust(width - len(sign), "0")
    return text.rjust(width)


def _verb(verb: str, flags: str, precision: int | None, value: Any) -> str:
    wrong = f"%!{verb}({type_name(value)}={go_value(value)})"
    if verb in "vs":
        if value is None or value is NO_VALUE:
            return "<nil>" if verb == "v" else "%!s(<nil>)"
        if verb == "s" and isinstance(value, bool | int | float):
            return wrong
        text = dumps(value) if verb == "v" and "#" in flags and isinstance(value, str) else go_value(value)
        return text[:precision] if precision is not None and isinstance(value, str) else text
    if verb == "q":
        return go_quote(value) if isinstance(value, str) else wrong
    if verb == "t":
        return go_value(value) if isinstance(value, bool) else wrong
    if verb == "T":
        return "<nil>" if value is None or value is NO_VALUE else type_name(value)
    if isinstance(value, str) and verb in "xX":
        text = value.encode().hex()
        return text.upper() if verb == "X" else text
    if isinstance(value, bool) or not isinstance(value, int | float):
        return wrong
    if verb in "dboxXc" and isinstance(value, int):
        if verb == "c":
            return chr(value)
        text = format(value, verb)
        return f"+{text}" if "+" in flags and value >= 0 else f" {text}" if " " in flags and value >= 0 else text
    if verb in "feEgG" and isinstance(value, float):
        if verb in "gG" and precision is None:
            text = float_text(value)
        else:
            text = format(value, f".{6 if precision is None else precision}{verb}")
        return f"+{text}" if "+" in flags and value >= 0 else text
    return wrong


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": lambda *values: values,
    "or": lambda *values: values,
    "not": lambda value: not truth(value),
    "eq": _equal,
    "ne": lambda left, right: not _equal(left, right),
    "lt": _less,
    "le": lambda left, right: _less(left, right) or _equal(left, right),
    "gt": lambda left, right: not (_less(left, right) or _equal(left, right)),
    "ge": lambda left, right: not _less(left, right),
    "index": _index,
    "slice": _slice,
    "len": _length,
    "print": _print,
    "println": _println,
    "printf": printf,
    "html": _html,
    "js": _js,
    "urlquery": _urlquery,
    "call": _call,
    "exists": _exists,
    "base64decode": _base64decode,
}
_COUNTS = {"not": 1, "ne": 2, "lt": 2, "le": 2, "gt": 2, "ge": 2, "len": 1, "base64decode": 1}
_AT_LEAST = {"call": 1, "eq": 1, "index": 1, "slice": 1, "printf": 1, "exists": 1}


def call(name: str, values: list[Any]) -> Any:
    """Calls a function. Raises FunctionError."""
    wanted = _COUNTS.get(name)
    if wanted is not None and len(values) != wanted:
        raise FunctionError(f"wrong number of args for {name}: want {wanted} got {len(values)}")
    if len(values) < _AT_LEAST.get(name, 0):
        raise FunctionError(f"wrong number of args for {name}: want at least {_AT_LEAST[name]} got {len(values)}")
    return FUNCTIONS[name](*values)
