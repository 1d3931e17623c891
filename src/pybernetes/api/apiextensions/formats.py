"""Formats that strings of custom resources can be asked to have. Others are ignored, with a warning."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final
from urllib.parse import urlsplit

from ..names import is_dns1123_label, is_dns1123_subdomain
from ..times import TimeError, parse_duration, parse_time

_CARDS = re.compile(
    "4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}"
    "|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_HEX4 = "[0-9a-f]{4}"


def _uuid(version: str = "", variant: str = "[0-9a-f]") -> re.Pattern[str]:
    third = f"{version}[0-9a-f]{{3}}" if version else _HEX4
    return re.compile(f"[0-9a-f]{{8}}-?{_HEX4}-?{third}-?{variant}[0-9a-f]{{3}}-?[0-9a-f]{{12}}", re.IGNORECASE)


def _date(text: str) -> bool:
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)) and bool(date.fromisoformat(text))


def _date_time(text: str) -> bool:
    parse_time(text)
    return True


def _duration(text: str) -> bool:
    parse_duration(text.replace(" ", ""))
    return True


def _ipv4(text: str) -> bool:
    return bool(IPv4Address(text))


def _ipv6(text: str) -> bool:
    return bool(IPv6Address(text)) or True


def _cidr(text: str) -> bool:
    return "/" in text and bool(ip_network(text, strict=False))


def _uri(text: str) -> bool:
    parts = urlsplit(text)
    return text.startswith("/") or bool(parts.scheme and (parts.netloc or parts.path))


def _email(text: str) -> bool:
    name, address = parseaddr(text)
    return bool(re.fullmatch(r"[^@\s]+@[^@\s]+", address)) and not name


def _byte(text: str) -> bool:
    b64decode(text, validate=True)
    return True


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


def _pattern(expression: str | re.Pattern[str]) -> Callable[[str], bool]:
    compiled = re.compile(expression)
    return lambda text: bool(compiled.fullmatch(text))


CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _pattern("[0-9a-fA-F]{24}"),
    "byte": _byte,
    "cidr": _cidr,
    "creditcard": _credit_card,
    "date": _date,
    "datetime": _date_time,
    "duration": _duration,
    "email": _email,
    "hexcolor": _pattern("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _pattern(
        r"(?=.{1,255}$)([A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
    ),
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "k8slongname": lambda text: not is_dns1123_subdomain(text),
    "k8sshortname": lambda text: not is_dns1123_label(text),
    "mac": _pattern(
        "(?:[0-9a-fA-F]{2}[:-]){5}(?:[0-9a-fA-F]{2}[:-]){0,2}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}[.]){2,3}[0-9a-fA-F]{4}"
    ),
    "password": lambda text: True,
    "rgbcolor": _pattern(
        r"rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*(,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*){2}\)"
    ),
    "ssn": _pattern(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
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
    except (ValueError, TimeError, binascii.Error):
        return False
