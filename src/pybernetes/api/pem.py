"""PEM as Go reads it: blocks in the midst of other text, certificates and certificate requests in them.

The words of errors are Go's where a user sees them. `cryptography` is imported when the first block is looked into.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import NamedTuple

CERTIFICATE = "CERTIFICATE"
CERTIFICATE_REQUEST = "CERTIFICATE REQUEST"

_BEGIN = re.compile(rb"(?:^|\n)-----BEGIN ([^\n]*?)-----[ \t\r]*\n")
_HEADER = re.compile(rb"(?!-----)([^:\n]+):([^\n]*)\n")
_END = b"-----END "


class Block(NamedTuple):
    """One block."""

    type: str
    headers: dict[str, str]
    data: bytes


class PEMError(ValueError):
    """An error in PEM data, with Go's wording."""


def blocks(data: bytes) -> Iterator[Block]:
    """The well-formed blocks of a text; anything else in it is skipped.

    Takes time in proportion to the text, whatever it holds: a block that has no end is not searched to the end of the
    text again for the next one.
    """
    position = end = 0
    while match := _BEGIN.search(data, position):
        rest = match.end()
        position = rest - 1
        headers: dict[str, str] = {}
        while header := _HEADER.match(data, rest):
            headers[header[1].strip().decode("latin-1")] = header[2].strip().decode("latin-1")
            rest = header.end()
        if end < rest:
            end = data.find(_END, rest)
            if end < 0:
                return
        if data.find(b"-", rest, end) >= 0:
            continue
        after = _end_line(data, end, match[1])
        if after is None:
            continue
        try:
            body = binascii.a2b_base64(re.sub(rb"[ \t\r\n]", b"", data[rest:end]), strict_mode=True)
        except binascii.Error:
            continue
        position = max(after - 1, position)
        yield Block(match[1].decode("latin-1"), headers, body)


def _end_line(data: bytes, start: int, kind: bytes) -> int | None:
    """Where the line that ends a block of this kind is over; None if it is another line."""
    end = start + len(_END) + len(kind) + 5
    if data[start + len(_END) : end] != kind + b"-----":
        return None
    line = data.find(b"\n", end)
    over = len(data) if line < 0 else line + 1
    return over if not data[end:over].strip(b" \t\r\n") else None


def check_certificate(data: bytes) -> None:
    """Raise PEMError unless the bytes are a certificate."""
    from cryptography import x509

    try:
        x509.load_der_x509_certificate(data)
    except ValueError:
        raise PEMError("x509: malformed certificate") from None


def decoded(text: str | None) -> bytes:
    """The bytes of a base64 field, which decoding has made canonical."""
    return base64.b64decode(text) if text else b""
