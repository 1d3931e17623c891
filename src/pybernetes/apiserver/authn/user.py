"""Who a request comes from, and the interface of what finds out."""

from __future__ import annotations

from typing import Protocol

import msgspec

from ..http import Request


class User(msgspec.Struct, frozen=True, gc=False):
    """Somebody: a person, a component or a service account."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}


AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))


class Authenticator(Protocol):
    """One way to prove who one is."""

    async def authenticate(self, request: Request) -> User | None:
        """The user, or None if this way does not tell."""
        ...
