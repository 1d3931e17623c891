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
_HEADER = re.compile(rb"([^:\n]+):([^\n]*)\n")


class Block(NamedTuple):
    """One block."""

    type: str
    headers: dict[str, str]
    data: bytes


class PEMError(ValueError):
    """What is wrong with the content of PEM, in Go's words."""


def blocks(data: bytes) -> Iterator[Block]:
    """The well-formed blocks of a text; anything else in it is skipped."""
    position = 0
    while match := _BEGIN.search(data, position):
        kind = match[1]
        rest = match.end()
        headers: dict[str, str] = {}
        while header := _HEADER.match(data, rest):
            headers[header[1].strip().decode("latin-1")] = header[2].strip().decode("latin-1")
            rest = header.end()
        end = re.compile(rb"(?:^|\n)?-----END " + re.escape(kind) + rb"-----[ \t\r]*(?:\n|$)").search(data, rest)
        position = match.end() - 1
        if end is None:
            continue
        try:
            body = binascii.a2b_base64(re.sub(rb"[ \t\r\n]", b"", data[rest : end.start()]), strict_mode=True)
        except binascii.Error:
            continue
        position = max(end.end() - 1, position)
        yield Block(kind.decode("latin-1"), headers, body)


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
