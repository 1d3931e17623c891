"""The claims that every ID token may have, read as generously as issuers write them: dates may be texts."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ..jwt import NotAToken

_GOOGLE = "accounts.google.com"  # writes its name without the scheme, too
_LATEST = 2.0**63  # seconds; what Go can count
_LEEWAY = 60.0  # seconds that an issuer's clock may be ahead; go-oidc's


class Source(msgspec.Struct):
    """Where claims are kept that are not in the token."""

    endpoint: str = ""
    access_token: str = ""


class PublicClaims(msgspec.Struct):
    """The claims that are checked, and others whose types are."""

    iss: str = ""
    sub: str | None = None
    aud: list[str | None] | str | None = None
    exp: float | str | None = None
    nbf: float | str | None = None
    iat: float | str = 0
    nonce: str | None = None
    at_hash: str | None = None
    claim_names: dict[str, str] | None = msgspec.field(name="_claim_names", default=None)
    claim_sources: dict[str, Source] | None = msgspec.field(name="_claim_sources", default=None)


_claims = msgspec.json.Decoder(PublicClaims)
_number = msgspec.json.Decoder(float)


def public_claims(payload: bytes) -> PublicClaims:
    """The claims that every token may have. Raises NotAToken."""
    try:
        return _claims.decode(payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise NotAToken(f"failed to unmarshal claims: {error}") from error


def check(claims: PublicClaims, issuer: str, audiences: Collection[str], now: float) -> None:
    """Whether a token of this issuer is for one of the audiences, and good now. Raises ValueError."""
    names, sources = claims.claim_names or {}, claims.claim_sources or {}
    if "" in names.values():
        raise ValueError("failed to obtain source from claim name")
    if not sources.keys() >= set(names.values()):
        raise ValueError("source does not exist")
    if claims.iss != issuer and (claims.iss, issuer) != (_GOOGLE, f"https://{_GOOGLE}"):
        raise ValueError(f'id token issued by a different provider, expected "{issuer}"')
    found = [claims.aud] if isinstance(claims.aud, str) else claims.aud or []
    if not set(found) & set(audiences):
        raise ValueError(f"expected audience in {sorted(audiences)} got {found}")
    expires, begins, _ = (_seconds(date) for date in (claims.exp, claims.nbf, claims.iat))
    if expires is None or expires < now:
        raise ValueError("token is expired")
    if begins is not None and now + _LEEWAY < begins:
        raise ValueError("current time is before the nbf (not before) time of the token")


def issuer_of(name: str) -> str:
    """The URL of the issuer that a token names."""
    return f"https://{_GOOGLE}" if name == _GOOGLE else name


def _seconds(date: float | str | None) -> int | None:
    if date is None:
        return None
    try:
        number = _number.decode(date) if isinstance(date, str) else date
    except msgspec.MsgspecError as error:
        raise ValueError(f"{date!r} is no date") from error
    if abs(number) >= _LATEST:
        raise ValueError(f"{date!r} is no date")
    return int(number)
