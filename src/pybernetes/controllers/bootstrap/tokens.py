"""Parses the Secret of a bootstrap token. Pure."""

from __future__ import annotations

import base64
import re
from typing import Final, NamedTuple

from pybernetes.api.core.v1 import Secret
from pybernetes.api.times import TimeError, parse_time

from ..common.meta import name_of

SECRET_TYPE: Final = "bootstrap.kubernetes.io/token"
_NAME: Final = re.compile(r"bootstrap-token-([a-z0-9]{6})", re.ASCII)


class Token(NamedTuple):
    """The public and the secret half."""

    id: str
    secret: str


def signing_token(secret: Secret, now: float) -> Token | None:
    """The token, if it is well formed, has not expired and may sign."""
    match = _NAME.fullmatch(name_of(secret))
    name, value = _data(secret, "token-id"), _data(secret, "token-secret")
    if match is None or match[1] != name or not value:
        return None
    ends = expiration(secret)
    if (ends is not None and ends <= now) or _data(secret, "usage-bootstrap-signing") != "true":
        return None
    return Token(name, value)


def expiration(secret: Secret) -> float | None:
    """When a token expires; None if never, and long ago if the time is malformed."""
    text = _data(secret, "expiration")
    if not text:
        return None
    try:
        return parse_time(text)
    except TimeError:
        return 0.0


def _data(secret: Secret, key: str) -> str:
    return base64.b64decode((secret.data or {}).get(key, "")).decode(errors="replace")
