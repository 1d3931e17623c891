"""Bytes in the fields of ConfigMaps and Secrets.

Our kinds keep them as the base64 text they are on the wire. What a client sends is looked at once, where defaults are
filled in: text that Go could not decode is refused in its words, the rest is kept the way Go would encode it.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from typing import Final

from ..errors import BadRequest

_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_PAD: Final = ord("=")
_is_base64 = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII).fullmatch


def canonical_base64(values: dict[str, str] | None, kind: str) -> None:
    """Refuse text that is no base64; without line breaks and stray bits, as a decoder and encoder would leave it."""
    if not values:
        return
    for key, value in values.items():
        if not _is_base64(value):
            _check(value, kind)
            value = values[key] = value.replace("\n", "").replace("\r", "")
        if value.endswith("="):
            last = b64encode(b64decode(value[-4:])).decode()
            if not value.endswith(last):
                values[key] = value[:-4] + last


def decoded_size(text: str) -> int:
    """How many bytes a base64 text stands for."""
    return len(text) // 4 * 3 - (2 if text.endswith("==") else text.endswith("="))


def _check(value: str, kind: str) -> None:
    """Find the byte Go's decoder stops at; line breaks are allowed anywhere."""
    taken = padding = 0
    data = value.encode("utf-8", "surrogatepass")
    for position, char in enumerate(data):
        if char in b"\r\n":
            continue
        if padding or char == _PAD:
            # Padding fills the last group of four, of which at least two are characters.
            if padding == 1 and taken % 4 == 2 and char != _PAD:
                raise _illegal(kind, position - 1)
            if char != _PAD or taken % 4 < 2 or taken % 4 + padding == 4:
                raise _illegal(kind, position)
            padding += 1
        elif char in _ALPHABET:
            taken += 1
        else:
            raise _illegal(kind, position)
    if (taken + padding) % 4:
        # An unfinished group is reported at its end if padding is missing, else where it would begin without breaks.
        raise _illegal(kind, len(data) if padding else len(data) - taken % 4)


def _illegal(kind: str, position: int) -> BadRequest:
    why = f"illegal base64 data at input byte {position}"
    return BadRequest(f'{kind} in version "v1" cannot be handled as a {kind}: {why}')
