"""The user of a request: name, groups, and what authenticators know beside these."""

from __future__ import annotations

import msgspec


class User(msgspec.Struct, frozen=True, gc=False):
    """Somebody: a person, a component or a service account."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}


AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
"""The key of a user's `extra` that says which credential of theirs it was: a certificate's hash, a token's id."""


def authenticated(user: User) -> User:
    """The user with the group system:authenticated, unless it is the anonymous user."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups or user.name == ANONYMOUS.name:
        return user
    return msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED))
