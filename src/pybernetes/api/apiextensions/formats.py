"""Formats that strings of custom resources can be asked to have. Others are ignored, with a warning."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from ipaddress import IPv6Address
from typing import Final
from unicodedata import category

from ..addresses import parse_cidr, parse_ip
from ..names import is_dns1123_label, is_dns1123_subdomain
from ..times import TimeError, parse_duration

_CARDS = re.compile(
    "4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}"
    "|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_HEX4 = "[0-9a-f]{4}"
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_AMOUNT = re.compile(r"[0-9]+\s*([A-Za-zµ]+)")
_UNITS = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_BEGINNINGS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_HOSTNAME = re.compile(r"[ls](-?[ls]{0,62})?|([ls]([ls-]{0,61}[ls])?\.)+l{2,63}")  # l a letter, s a digit or symbol
_ATOMS = r"[^\x00-\x20\x7f()<>\[\]:;@\\,.\"]+(?:\.[^\x00-\x20\x7f()<>\[\]:;@\\,.\"]+)*"
_QUOTED = r'"(?:[^"\\\r\n]|\\.)*"'
_ADDRESS = rf"(?:{_ATOMS}|{_QUOTED})@(?:{_ATOMS}|\[[^\[\]\\]*\])"
_NAME = rf"(?:{_QUOTED}|[^\x00-\x1f()<>\[\]:;@\\,\"])*+"
_EMAIL = rf"(?:{_ADDRESS}|{_NAME}<{_ADDRESS}>)"
_BYTE = "[0-9a-fA-F]{2}"
_MAC = "|".join(  # with colons, dashes, dots, or nothing between 6, 8 or 20 bytes
    [f"{_BYTE}(?:{between}{_BYTE}){{{more}}}" for between in ":-" for more in (5, 7, 19)]
    + [rf"(?:{_BYTE}){{2}}(?:\.(?:{_BYTE}){{2}}){{{more}}}" for more in (2, 3, 9)]
    + [f"(?:{_BYTE}){{{number}}}" for number in (6, 8, 20)]
)


def _uuid(version: str = "", variant: str = "[0-9a-f]") -> re.Pattern[str]:
    third = f"{version}[0-9a-f]{{3}}" if version else _HEX4
    return re.compile(f"[0-9a-f]{{8}}-?{_HEX4}-?{third}-?{variant}[0-9a-f]{{3}}-?[0-9a-f]{{12}}", re.IGNORECASE)


def _date(text: str) -> bool:
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    return bool(date.fromisoformat("0004" + text[4:] if text[:4] == "0000" else text))  # Python has no year 0


def _date_time(text: str) -> bool:
    day, _, rest = text.lower().partition("t")
    found = _TIME.fullmatch(rest.partition("t")[0])
    return _date(day) and found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _duration(text: str) -> bool:
    """As Go writes durations, else with anything in the text that looks like a number of some unit of time."""
    try:
        parse_duration(text)
    except TimeError:
        units = [found[1].lower() for found in _AMOUNT.finditer(text)]
        return any(unit in _UNITS or unit.startswith(_BEGINNINGS) for unit in units)
    return True


def _ipv4(text: str) -> bool:
    return "." in text and parse_ip(text) is not None


def _ipv6(text: str) -> bool:
    return ":" in text and "%" not in text and IPv6Address(text) is not None


def _cidr(text: str) -> bool:
    return parse_cidr(text) is not None


def _hostname(text: str) -> bool:
    if len(text.encode()) > 255 or any(len(part.encode()) > 63 for part in text.split(".")):
        return False
    return _HOSTNAME.fullmatch("".join(map(_kind, text))) is not None


def _kind(char: str) -> str:
    if char in "-.":
        return char
    if char.isascii() and char.isdigit():
        return "s"
    return {"L": "l", "S": "s"}.get(category(char)[0], "?")


def _uri(text: str) -> bool:
    from ..cel.libraries.urls import uri_problem

    return uri_problem(text) is None


def _isbn10(text: str) -> bool:
    digits = re.sub("[ -]", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    return sum((10 - at) * (10 if char == "X" else int(char)) for at, char in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub("[ -]", "", text)
    return (
        bool(re.fullmatch("[0-9]{13}", digits)) and not sum(int(c) * (1, 3)[i % 2] for i, c in enumerate(digits)) % 10
    )


def _credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]", "", text)
    if not _CARDS.fullmatch(digits):
        return False
    doubled = [int(char) * (1 + at % 2) for at, char in enumerate(reversed(digits))]
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


def _email(text: str) -> bool:
    """An address of RFC 5322, which may have a name before it and a comment behind."""
    text = text.strip(" \t")
    if text.endswith(")"):
        text = text[: text.rfind("(")].rstrip(" \t")
    return re.fullmatch(_EMAIL, text) is not None


def _pattern(expression: str | re.Pattern[str]) -> Callable[[str], bool]:
    compiled = re.compile(expression)
    return lambda text: bool(compiled.fullmatch(text))


CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _pattern("[0-9a-fA-F]{24}"),
    "byte": _pattern("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _cidr,
    "creditcard": _credit_card,
    "date": _date,
    "datetime": _date_time,
    "duration": _duration,
    "email": _email,
    "hexcolor": _pattern("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "k8slongname": lambda text: not is_dns1123_subdomain(text),
    "k8sshortname": lambda text: not is_dns1123_label(text),
    "mac": _pattern(_MAC),
    "password": lambda text: True,
    "rgbcolor": _pattern(
        r"rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*(,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*){2}\)"
    ),
    "ssn": _pattern(r"(?=.{11}$)[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}"),
    "uri": _uri,
    "uuid": _pattern(_uuid()),
    "uuid3": _pattern(_uuid("3")),
    "uuid4": _pattern(_uuid("4", "[89ab]")),
    "uuid5": _pattern(_uuid("5", "[89ab]")),
}
_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def recognized(format: str, type_: str) -> bool:
    """Whether a format means something for a type."""
    if type_ in ("", "string"):
        return format.replace("-", "") in CHECKS
    return format in _NUMBERS.get(type_, ())


def has_format(text: str, format: str) -> bool:
    """Whether a text has a format; every text has an unknown one."""
    check = CHECKS.get(format.replace("-", ""))
    if check is None:
        return True
    try:
        return check(text)
    except (ValueError, TimeError):
        return False
