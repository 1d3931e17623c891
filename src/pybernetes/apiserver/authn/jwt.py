"""JSON web tokens in their compact form, taken apart without believing a word.

What needs no cryptography is here, so that a server that never sees a token need not load it. The decoder is strict:
one token has one spelling, characters outside base64url are refused and not skipped, and nothing is said twice.
"""

from __future__ import annotations

import binascii
import json
import re
from typing import Any

import msgspec

LEEWAY = 60.0  # seconds that two clocks may differ; upstream's

_LATEST = 2.0**63  # seconds; what Go can count
_PART = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_STANDARD = str.maketrans("-_", "+/")


class NotAToken(ValueError):
    """The text is no JSON web token."""


class Header(msgspec.Struct):
    """How a token is signed."""

    alg: str = ""
    kid: str = ""
    crit: list[str] | None = None
    b64: Any = True
    jwk: Any = None
    """A key in the token's own header, which must never be used."""


class Signed(msgspec.Struct):
    """A token in its parts; nothing of it is known to be true."""

    header: Header
    payload: bytes
    text: bytes
    """The signed bytes."""
    signature: bytes


class Claims(msgspec.Struct):
    """The registered claims of a token; dates are seconds since 1970."""

    iss: str = ""
    sub: str = ""
    aud: list[str] | str = []
    exp: float | None = None
    nbf: float | None = None
    iat: float | None = None
    jti: str = ""

    @property
    def audiences(self) -> tuple[str, ...]:
        """`aud` in one form."""
        return (self.aud,) if isinstance(self.aud, str) else tuple(self.aud)


class _Issued(msgspec.Struct):
    iss: str = ""


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        raise NotAToken("a name comes twice")


_once = json.JSONDecoder(object_pairs_hook=_unique)
_header = msgspec.json.Decoder(Header)
_claims = msgspec.json.Decoder(Claims)
_issuer = msgspec.json.Decoder(_Issued)
_any = msgspec.json.Decoder(dict[str, Any])


def parse(token: str) -> Signed:
    """Take a token apart. Raises NotAToken."""
    parts = token.split(".")
    if len(parts) != 3:
        raise NotAToken("not three parts")
    try:
        raw = decode(parts[0])
        header = _header.decode(raw)
        payload, signature = decode(parts[1]), decode(parts[2])
        for each in (raw, payload):
            _once.decode(each.decode())
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise NotAToken(str(error)) from error
    if header.jwk is not None:
        raise NotAToken("the header has a key")
    if header.crit is not None:
        raise NotAToken("the header has critical extensions, of which none is known")
    if header.b64 is not True:
        raise NotAToken("the payload is said to be no base64")
    return Signed(header, payload, token[: token.rindex(".")].encode(), signature)


def claims(payload: bytes) -> Claims:
    """The claims that every token has. Raises NotAToken."""
    found: Claims = _read(_claims, payload)
    if any(date is not None and abs(date) >= _LATEST for date in (found.exp, found.nbf, found.iat)):
        raise NotAToken("a date that is none")
    return found


def all_claims(payload: bytes) -> dict[str, Any]:
    """Every claim as it is. Raises NotAToken."""
    found: dict[str, Any] = _read(_any, payload)
    return found


def unverified_issuer(token: str) -> str | None:
    """The unverified issuer of a token, to select its authenticator; None if it is no token."""
    try:
        issued: _Issued = _read(_issuer, parse(token).payload)
    except NotAToken:
        return None
    return issued.iss


def check_dates(claims: Claims, now: float, leeway: float = LEEWAY) -> str:
    """The error in a token's dates now, with upstream's wording; empty if there is none."""
    if claims.nbf is not None and now + leeway < claims.nbf:
        return "token is not valid yet"
    if claims.exp is not None and now - leeway > claims.exp:
        return "token has expired"
    if claims.iat is not None and now + leeway < claims.iat:
        return "token is issued in the future"
    return ""


def _read(decoder: msgspec.json.Decoder[Any], payload: bytes) -> Any:
    try:
        return decoder.decode(payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise NotAToken(str(error)) from error


def decode(part: str) -> bytes:
    """Unpadded base64url. Raises NotAToken."""
    if not _PART.fullmatch(part):
        raise NotAToken("not base64url")
    try:
        data = binascii.a2b_base64(part.translate(_STANDARD) + "=" * (-len(part) % 4), strict_mode=True)
    except binascii.Error as error:
        raise NotAToken(str(error)) from error
    if len(part) % 4 and binascii.b2a_base64(data, newline=False).rstrip(b"=").decode() != part.translate(_STANDARD):
        raise NotAToken("base64url with bits left over")
    return data
