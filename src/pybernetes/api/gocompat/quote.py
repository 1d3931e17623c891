"""How Go prints strings, floats and JSON inside messages.

Messages are part of the API: clients match on them and people search for them. Nearly all quote a name with Go's
`%q`, so that form lives here, with a fast path for the plain text nearly all names are.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

_SHORT = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_HTML = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}
_ENCODER = msgspec.json.Encoder(order="deterministic")


def quote(text: str) -> str:
    """The text between double quotes, escaped as Go's `%q` does."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escape, text)) + '"'


def number(value: float) -> str:
    """A float as Go's `%v` prints it: shortest digits, an exponent below 1e-4 and from 1e6 on."""
    if not math.isfinite(value) or 1e-4 <= abs(value) < 1e6 or value == 0:
        return json_number(value)
    shortest = repr(value).partition("e")[0].replace(".", "").strip("-0")
    return f"{value:.{len(shortest) - 1}e}"


def json_number(value: float) -> str:
    """A float as Go's JSON has it: shortest digits, an exponent below 1e-4 and from 1e21 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    digits, _, exponent = f"{value!r}".partition("e")
    if 1e-4 <= abs(value) < 1e21:
        return f"{value:.0f}" if exponent or value == int(value) else digits
    if not exponent:  # pragma: no cover - repr always uses an exponent outside 1e-4..1e16
        return digits
    sign, power = exponent[0] if exponent[0] in "+-" else "+", exponent.lstrip("+-")
    return f"{digits.removesuffix('.0')}e{sign}{power.zfill(2)}"


def json(value: Any) -> str:
    """A value as Go's `json.Marshal` writes it: keys of maps sorted, `<`, `>` and `&` escaped."""
    return _ENCODER.encode(value).decode().translate(_HTML)


def _escape(char: str) -> str:
    code = ord(char)
    if code in _SHORT:
        return _SHORT[code]
    if char.isprintable():
        return char
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
