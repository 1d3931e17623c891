"""Bearer tokens from a file: `token,user,uid,"group1,group2"`, one a line. Read once, at the start."""

from __future__ import annotations

import csv
import logging
from pathlib import Path

from ..user import User, authenticated

log = logging.getLogger(__name__)


class TokenFile:
    """Knows the tokens of a file."""

    def __init__(self, path: Path) -> None:
        self._users = {token: authenticated(user) for token, user in read_users(path, "token")}

    async def user_of(self, token: str) -> User | None:
        """The user of a token."""
        return self._users.get(token)


def read_users(path: Path, secret: str) -> list[tuple[str, User]]:
    """The lines of such a file; `secret` is what the first column is called. Raises ValueError."""
    users = []
    with path.open(newline="") as file:
        for number, row in enumerate(csv.reader(file, skipinitialspace=True), 1):
            if not row:
                continue
            if len(row) < 3:
                raise ValueError(f"{path}, line {number}: at least {secret}, user name and user uid are needed")
            if not row[0]:
                log.warning("%s, line %d: an empty %s belongs to no user", path, number, secret)
                continue
            groups = tuple(group.strip() for group in row[3].split(",")) if len(row) > 3 and row[3] else ()
            users.append((row[0], User(row[1], row[2], groups)))
    return users
