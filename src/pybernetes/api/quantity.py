"""Quantities: `100m`, `1.5Gi`, `2e3`. Fixed-point numbers with a suffix, exact down to a billionth.

A quantity is kept as mantissa x 10^exponent plus the family of suffixes it was written in, because that family decides
how it is written back: `1024Ki` becomes `1Mi`, `1000k` becomes `1M`, `1000e3` becomes `1e6`. Text that is already short
enough is kept as the user wrote it (`1.500` stays), exactly as upstream does; clients compare these strings.

The same few strings come by all the time, so parsing and canonical text are cached, bounded.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import total_ordering
from typing import Final, NoReturn

from .gocompat.quote import json_number

PATTERN: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

NANO: Final = -9
"""The finest scale; anything below is rounded up."""
MAX_INT64: Final = (1 << 63) - 1

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}

# Looser than PATTERN in what it lets be empty and stricter in the dots: it is what upstream's parser takes.
_SPLIT = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DIGITS_OF_INT64 = 18
_DIGITS_OF_FLOAT64 = 15

_CACHE_SIZE = 4096
_MAX_LENGTH = 3000  # characters; far beyond any real quantity
_MAX_ALIGN = 1000  # powers of ten; beyond, the smaller of two summands has no digit the larger can show
_MAX_DIGITS = 3100  # of a sum; with _MAX_ALIGN more it stays below the 4300 that Python converts
_MAX_BITS = int(_MAX_DIGITS / math.log10(2))


class QuantityError(ValueError):
    """Text that is no quantity; its words are upstream's."""


ERR_FORMAT: Final = f"quantities must match the regular expression '{PATTERN}'"
ERR_NUMERIC: Final = "unable to parse numeric part of quantity"
ERR_SUFFIX: Final = "unable to parse quantity's suffix"


@total_ordering
class Quantity:
    """An immutable fixed-point number: `mantissa * 10**exponent`, and the suffix family it is printed with."""

    __slots__ = ("_text", "exponent", "format", "mantissa")

    def __init__(self, mantissa: int, exponent: int = 0, format: str = DECIMAL_SI, text: str | None = None) -> None:
        self.mantissa = mantissa
        self.exponent = exponent
        self.format = format
        self._text = text

    @staticmethod
    def milli(value: int, format: str = DECIMAL_SI) -> Quantity:
        """So many thousandths."""
        return Quantity(value, -3, format)

    def __str__(self) -> str:
        text = self._text
        if text is None:
            text = self._text = _text(self)
        return text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def value(self) -> int:
        """As a whole number, rounded away from zero, within int64."""
        return self.scaled(0)

    def milli_value(self) -> int:
        """As thousandths, rounded away from zero, within int64."""
        return self.scaled(-3)

    def scaled(self, scale: int) -> int:
        """As a multiple of `10**scale`, rounded away from zero, within int64."""
        shift = self.exponent - scale
        # More than 19 powers of ten leave int64 whatever the mantissa is; do not compute them.
        result = self.mantissa * _power(min(shift, 19)) if shift >= 0 else _shift_down(self.mantissa, -shift)
        return max(-MAX_INT64 - 1, min(MAX_INT64, result))

    def decimal(self) -> Decimal:
        """As an exact decimal."""
        return Decimal(f"{self.mantissa}e{self.exponent}")

    def is_whole(self) -> bool:
        """Whether it has no fraction."""
        return self.exponent >= 0 or not self.mantissa % _power(-self.exponent)

    def is_zero(self) -> bool:
        """Whether it is zero."""
        return not self.mantissa

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.mantissa > 0) - (self.mantissa < 0)

    def round_up(self, scale: int) -> Quantity:
        """No digits below `10**scale`, rounded away from zero; the text stays if nothing changes."""
        if self.exponent >= scale:
            return self
        return Quantity(_shift_down(self.mantissa, scale - self.exponent), scale, self.format)

    def cmp(self, other: Quantity) -> int:
        """-1, 0 or 1, as this one is less than, equal to or more than the other."""
        a, b = self.mantissa, other.mantissa
        if self.exponent != other.exponent and a and b:
            if (a > 0) != (b > 0):
                return 1 if a > 0 else -1
            # Compare magnitudes first so that absurd exponents are never expanded.
            gap = (len(str(abs(a))) + self.exponent) - (len(str(abs(b))) + other.exponent)
            if gap:
                return 1 if (gap > 0) == (a > 0) else -1
            difference = self.exponent - other.exponent
            if difference > 0:
                a *= 10**difference
            else:
                b *= 10**-difference
        return (a > b) - (a < b)

    def __eq__(self, other: object) -> bool:
        return self.cmp(other) == 0 if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.cmp(other) < 0

    def __hash__(self) -> int:
        mantissa, exponent = _without_factor(self.mantissa, 10)
        return hash((mantissa, self.exponent + exponent if mantissa else 0))

    def __bool__(self) -> bool:
        return bool(self.mantissa)

    def __add__(self, other: Quantity) -> Quantity:
        if not self.mantissa:  # zero has no format of its own
            return Quantity(other.mantissa, other.exponent, other.format)
        if not other.mantissa:
            return Quantity(self.mantissa, self.exponent, self.format)
        low, high = (self, other) if self.exponent <= other.exponent else (other, self)
        gap = high.exponent - low.exponent
        if gap > _MAX_ALIGN:
            return Quantity(high.mantissa, high.exponent, self.format)
        return _bounded(low.mantissa + high.mantissa * 10**gap, low.exponent, self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.mantissa, self.exponent, self.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return self + -other

    def __mul__(self, factor: int) -> Quantity:
        return _bounded(self.mantissa * factor, self.exponent, self.format)


_CACHED_LENGTH = 64  # characters of text that is remembered: clients may send any number of digits
_parsed: dict[str, Quantity] = {}
_canonical: dict[str, str] = {}

cached = _canonical.get
"""The canonical form of text that was seen before, for callers in a hurry; None means: ask `canonicalize`."""


def parse(text: str) -> Quantity:
    """The quantity a text stands for; `QuantityError` if for none."""
    found = _parsed.get(text)
    if found is None:
        found = _parse(text)
        if len(text) <= _CACHED_LENGTH:
            if len(_parsed) >= _CACHE_SIZE:
                _parsed.clear()
            _parsed[text] = found
    return found


def canonicalize(value: object) -> str:
    """How a value from a JSON body is written back: blanks around it go, `null` is zero."""
    if type(value) is str:
        found = _canonical.get(value)
        if found is None:
            found = str(_parse(value.strip(" \t\n\v\f\r\x85\xa0")))
            if len(value) <= _CACHED_LENGTH:
                if len(_canonical) >= _CACHE_SIZE:
                    _canonical.clear()
                _canonical[value] = found
        return found
    if value is None:
        return "0"
    if type(value) is int:
        return canonicalize(str(value)) if value.bit_length() < _MAX_LENGTH else _refuse(ERR_NUMERIC)
    if type(value) is float:
        return canonicalize(json_number(value))
    return _refuse(ERR_FORMAT)


def _parse(text: str) -> Quantity:
    if len(text) > _MAX_LENGTH:
        _refuse(ERR_NUMERIC)
    match = _SPLIT.fullmatch(text)
    if match is None or not text:
        _refuse(ERR_FORMAT)
    sign, digits, fraction, suffix = match.groups(default="")
    digits = digits or "0"
    power = _DECIMAL.get(suffix)
    if power is not None:
        return _decimal(text, sign, digits, fraction, power, DECIMAL_SI)
    power = _BINARY.get(suffix)
    if power is not None:
        return _binary(text, sign, digits, fraction, power)
    if suffix[0] in "eE" and _EXPONENT.fullmatch(suffix, 1) and -MAX_INT64 - 1 <= int(suffix[1:]) <= MAX_INT64:
        power = (int(suffix[1:]) + (1 << 31)) % (1 << 32) - (1 << 31)  # upstream keeps 32 bits of it
        return _decimal(text, sign, digits, fraction, power, DECIMAL_EXPONENT)
    _refuse(ERR_SUFFIX)


def _decimal(text: str, sign: str, digits: str, fraction: str, power: int, format: str) -> Quantity:
    shifted = digits + fraction
    mantissa, exponent = int(shifted), power - len(fraction)
    if len(shifted) <= _DIGITS_OF_INT64 and exponent >= NANO:
        keep = exponent % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
        return Quantity(-mantissa if sign == "-" else mantissa, exponent, format, text if keep else None)
    if exponent < NANO:
        mantissa, exponent = _shift_down(mantissa, NANO - exponent), NANO
    return Quantity(-mantissa if sign == "-" else mantissa, exponent, format)


def _binary(text: str, sign: str, digits: str, fraction: str, power: int) -> Quantity:
    number, format = int(digits + fraction), BINARY_SI
    # Upstream's estimate of what fits a float's digits, in its arithmetic; it decides whether the text is kept.
    fits = _DIGITS_OF_FLOAT64 - len(digits) - power * 3 // 10 - 1 >= 0
    if fits and not fraction:
        mantissa = number << power
        keep = bool(number & 7)
        return Quantity(-mantissa if sign == "-" else mantissa, 0, format, text if keep else None)
    mantissa, exponent = number << power, -len(fraction)
    if exponent < NANO:
        mantissa, exponent = _shift_down(mantissa, NANO - exponent), NANO
    unit = _power(-exponent)
    if mantissa > MAX_INT64 * unit:
        mantissa, exponent = MAX_INT64, 0
    elif 0 < mantissa < unit:
        format = DECIMAL_SI  # less than one byte cannot be said in binary
    return Quantity(-mantissa if sign == "-" else mantissa, exponent, format)


def _text(quantity: Quantity) -> str:
    mantissa, exponent, format = quantity.mantissa, quantity.exponent, quantity.format
    if not mantissa:
        return "0"
    if format == BINARY_SI:
        whole = _whole(mantissa, exponent)
        if whole is not None and not -1024 < whole < 1024:
            whole, times = _without_factor(whole, 1024)
            return f"{whole}{_BINARY_SUFFIX.get(times * 10, '')}"
        format = DECIMAL_SI
    mantissa, times = _without_factor(mantissa, 10)
    exponent += times
    over = exponent % 3
    mantissa, exponent = mantissa * 10**over, exponent - over
    if format == DECIMAL_SI:
        # Beyond E there is no suffix and upstream prints none; no machine has a zettabyte to tell.
        return f"{mantissa}{_DECIMAL_SUFFIX.get(exponent, '')}"
    return f"{mantissa}e{exponent}" if exponent else str(mantissa)


def _whole(mantissa: int, exponent: int) -> int | None:
    if exponent >= 0:
        return mantissa * 10**exponent if exponent <= _MAX_ALIGN else None
    quotient, rest = divmod(mantissa, 10**-exponent)
    return None if rest else quotient


def _shift_down(mantissa: int, places: int) -> int:
    """Divide by `10**places`, rounding away from zero, without expanding absurd powers."""
    if not mantissa:
        return 0
    if places > mantissa.bit_length():  # 10**places > 2**places > mantissa
        return 1 if mantissa > 0 else -1
    quotient = -(-abs(mantissa) // _power(places))
    return quotient if mantissa > 0 else -quotient


def _power(places: int) -> int:
    return int(10**places)


def _bounded(mantissa: int, exponent: int, format: str) -> Quantity:
    """A quantity without the last of too many digits, rounded away from zero."""
    excess = mantissa.bit_length() - _MAX_BITS
    if excess > 0:
        places = math.ceil(excess * math.log10(2))
        mantissa, exponent = _shift_down(mantissa, places), exponent + places
    return Quantity(mantissa, exponent, format)


def _without_factor(value: int, factor: int) -> tuple[int, int]:
    times = 0
    while value:
        quotient, rest = divmod(value, factor)
        if rest:
            break
        value, times = quotient, times + 1
    return value, times


def _refuse(why: str) -> NoReturn:
    raise QuantityError(why)
