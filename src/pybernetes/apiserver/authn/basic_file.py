"""User names and passwords from a file: `password,user,uid,"group1,group2"`, one a line. Read once, at the start.

Upstream had it until v1.18. A password in a file is the weakest of all credentials; what speaks for it is that any
client has it.
"""

from __future__ import annotations

import base64
import hmac
from pathlib import Path

from pybernetes.net.http import Request

from ..user import User, authenticated
from .authenticator import BadCredential
from .token_file import read_users


class BasicFile:
    """Knows the passwords of a file."""

    def __init__(self, path: Path) -> None:
        self._users: dict[str, tuple[bytes, User]] = {}
        for password, user in read_users(path, "password"):
            if user.name in self._users:
                raise ValueError(f'{path}: the user "{user.name}" is there twice')
            self._users[user.name] = (password.encode(), authenticated(user))

    def authenticate(self, request: Request) -> User | None:
        header = request.first("authorization")
        if not header:
            return None
        scheme, _, encoded = header.strip().partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except ValueError as error:  # not base64, not ASCII, not UTF-8
            raise BadCredential("malformed basic authentication") from error
        known, user = self._users.get(name, (b"", None))
        # Compared even for a user who is not there, so that it takes as long.
        same = hmac.compare_digest(known, password.encode())
        if not colon or user is None or not same:
            raise BadCredential("invalid username/password combination")
        return user
