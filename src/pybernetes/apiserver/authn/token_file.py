"""Bearer tokens from a file: `token,user,uid,"group1,group2"`, one a line. Read once, at the start."""

from __future__ import annotations

import csv
from pathlib import Path

from ..http import Request
from .user import AUTHENTICATED, User


class TokenFile:
    """Knows the tokens of a file."""

    def __init__(self, path: Path) -> None:
        self._users = dict(_read(path))

    async def authenticate(self, request: Request) -> User | None:
        header = request.headers.get("authorization")
        if not header:
            return None
        scheme, _, token = header.partition(" ")
        return self._users.get(token.strip()) if scheme.lower() == "bearer" else None


def _read(path: Path) -> list[tuple[str, User]]:
    users = []
    with path.open(newline="") as file:
        for number, row in enumerate(csv.reader(file, skipinitialspace=True), 1):
            if not row:
                continue
            if len(row) < 3:
                raise ValueError(f"{path}, line {number}: a token file needs at least token, user name and user uid")
            groups = tuple(group.strip() for group in row[3].split(",")) if len(row) > 3 and row[3] else ()
            users.append((row[0], User(row[1], row[2], (*groups, AUTHENTICATED))))
    return users
