"""The interfaces of authenticators, which find out which user a request comes from.

An authenticator has three answers: a user; None, when there is no credential of its kind; and `BadCredential`, when
there is one that is not good. The last is not the same as none: who presents a bad credential is not anonymous.

It answers at once where it can: every request asks, hardly any credential takes waiting, and to start a coroutine costs
more than most of the answers do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from urllib.parse import unquote

import msgspec

from pybernetes.api.gocompat.quote import quote
from pybernetes.net.http import Request

from ..user import User


class BadCredential(Exception):
    """A credential was presented and is not good; the text says why, for the log and for no caller."""

    def __init__(self, text: str, annotations: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(text)
        self.annotations = annotations
        """Annotations for the audit log."""


class Authenticator(Protocol):
    """One way to prove who one is."""

    def authenticate(self, request: Request) -> User | Awaitable[User | None] | None:
        """The user, or None if this way does not tell; or what to await for that. Raises BadCredential."""
        ...


class TokenUser(msgspec.Struct, frozen=True):
    """The user of a token."""

    user: User
    audiences: tuple[str, ...] = ()
    """Those of the audiences asked for that the token is meant for."""
    warnings: tuple[str, ...] = ()
    """Warnings for the response."""
    annotations: tuple[tuple[str, str], ...] = ()
    """Annotations for the audit log each time the token is used."""
    holds: Callable[[], bool] | None = None
    """Whether what the answer was made from is still what it was; quick, asked whenever the answer is used again."""
    lifetime: float = math.inf
    """Seconds that the answer can be used again at most; 0 = ask anew."""


class TokenAuthenticator(Protocol):
    """One kind of bearer tokens."""

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> TokenUser | None:
        """The user of a token, or None if it is of another kind. Raises BadCredential.

        `audiences` are the requested ones; tokens of a kind without audiences are valid for all.
        """
        ...


def meant_for(token: Sequence[str], asked: Sequence[str]) -> tuple[str, ...]:
    """Those of the audiences asked for that a token names, as asked. Raises BadCredential if it is none of them."""
    common = tuple(each for each in asked if each in token)
    if not common:
        raise BadCredential(
            f"token audiences {_quoted(token)} is invalid for the target audiences {_quoted(asked)}",
        )
    return common


def _quoted(texts: Sequence[str]) -> str:
    return f"[{' '.join(map(quote, texts))}]"


_BAD_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")


def extra_key(text: str) -> str:
    """The key of an extra value in the name of a header, in which % escapes what headers cannot hold."""
    return text if _BAD_ESCAPE.search(text) else unquote(text)
