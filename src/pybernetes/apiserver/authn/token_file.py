"""Bearer tokens from a file: `token,user,uid,"group1,group2"`, one a line. Read once, at the start."""

from __future__ import annotations

import csv
from pathlib import Path

from .user import User, authenticated


class TokenFile:
    """Knows the tokens of a file."""

    def __init__(self, path: Path) -> None:
        self._users = {token: authenticated(user) for token, user in _read(path)}

    async def user_of(self, token: str) -> User | None:
        """Whose token it is."""
        return self._users.get(token)


def _read(path: Path) -> list[tuple[str, User]]:
    users = []
    with path.open(newline="") as file:
        for number, row in enumerate(csv.reader(file, skipinitialspace=True), 1):
            if not row:
                continue
            if len(row) < 3:
                raise ValueError(f"{path}, line {number}: a token file needs at least token, user name and user uid")
            if not row[0]:
                raise ValueError(f"{path}, line {number}: an empty token")
            groups = tuple(group.strip() for group in row[3].split(",")) if len(row) > 3 and row[3] else ()
            users.append((row[0], User(row[1], row[2], groups)))
    return users
