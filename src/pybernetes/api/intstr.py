"""Values that are a number or a string: ports by number or name, amounts absolute or in percent.

A plain `int | str` is the whole type.
"""

from __future__ import annotations

import math
import re

from .gocompat.quote import quote

IntOrString = int | str

_INTEGER = re.compile("[+-]?[0-9]+", re.ASCII).fullmatch
_LARGE = 10**18
"""Percent: what texts with more digits count as."""


def parse(text: str) -> IntOrString:
    """The number a text stands for if it fits 32 bits, else the text."""
    value = _integer(text)
    return value if value is not None and -(1 << 31) <= value < 1 << 31 else text


def or_zero(value: IntOrString | None) -> IntOrString:
    """The value, 0 if there is none; the empty text is a value."""
    return 0 if value is None else value


def int_value(value: IntOrString) -> int:
    """The number; 0 for an invalid string."""
    return value if isinstance(value, int) else _integer(value) or 0


def scaled_value(value: IntOrString | None, total: int, round_up: bool) -> int:
    """A number as it is, a percentage of `total`; `ValueError` for any other string.

    The result is a 32-bit number, whatever the percentage: more than that many pods is as many as there can be.
    """
    if value is None:
        raise ValueError("nil value for IntOrString")
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    digits = value[:-1]
    percent = (
        _integer(digits) if len(digits) <= 18 or not _INTEGER(digits) else _LARGE * (-1 if digits[0] == "-" else 1)
    )
    if percent is None:
        cause = f"strconv.Atoi: parsing {quote(digits)}: invalid syntax"
        raise ValueError(f"invalid value for IntOrString: invalid value {quote(value)}: {cause}")
    share = float(percent) * float(total) / 100
    return max(-(1 << 31), min((1 << 31) - 1, math.ceil(share) if round_up else math.floor(share)))


def is_percent(value: IntOrString) -> bool:
    """Whether it is a string that ends like a percentage."""
    return isinstance(value, str) and value.endswith("%")


def _integer(text: str) -> int | None:
    if len(text) > 20 or not _INTEGER(text):
        return None
    value = int(text)
    return value if -(1 << 63) <= value < 1 << 63 else None
