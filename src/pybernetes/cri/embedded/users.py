"""Who a container runs as: numbers from its request, its image, and the image's /etc/passwd and /etc/group.

Runs inside the container's root, so that links in the image cannot lead to the node's files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any, NamedTuple

PASSWD, GROUP = "/etc/passwd", "/etc/group"
LARGEST = 1 << 20
"""Bytes that are read of such a file: an image may have made it endless."""


class UserError(Exception):
    """There is no such user or group in the image."""


class User(NamedTuple):
    """A process's identity."""

    uid: int
    gid: int
    groups: list[int]
    home: str


def resolve(request: Mapping[str, Any], passwd: str | None = None, group: str | None = None) -> User:
    """The user that `request` (`user`, `group`, `groups`, `strict`) stands for; texts are for tests.

    `user` is a name or number, with `:group` or without, as images say it.
    """
    users = _lines(_read(PASSWD) if passwd is None else passwd, 7)
    groups = _lines(_read(GROUP) if group is None else group, 3)
    name, _, group_name = str(request.get("user") or "").partition(":")
    entry = next((line for line in users if line[0] == name), None) if name else None
    if entry is None and _number(name or "0") is not None:
        entry = next((line for line in users if _number(line[2]) == _number(name or "0")), None)
    uid = _number(entry[2]) if entry else _number(name or "0")
    if uid is None:
        raise UserError(f"unable to find user {name}: no matching entries in passwd file")
    gid = (_number(entry[3]) if entry else None) or 0
    if group_name:
        found = next((line for line in groups if line[0] == group_name), None)
        number = _number(found[2]) if found else _number(group_name)
        if number is None:
            raise UserError(f"unable to find group {group_name}: no matching entries in group file")
        gid = number
    if request.get("group") is not None:
        gid = int(request["group"])
    extra = [int(each) for each in request.get("groups") or ()]
    if not request.get("strict") and entry:
        member_of = (_number(line[2]) for line in groups if len(line) > 3 and entry[0] in line[3].split(","))
        extra += [number for number in member_of if number is not None]
    return User(uid, gid, sorted({gid, *extra}), entry[5] if entry and entry[5] else "/")


def _lines(text: str, fields: int) -> list[list[str]]:
    split = (line.split(":") for line in text.splitlines())
    return [line for line in split if len(line) >= min(fields, 6)]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and int(text) < 1 << 32 else None


def _read(path: str) -> str:
    """A regular file's text; anything else (a pipe would make us wait) counts as empty."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with open(descriptor, encoding="utf-8", errors="surrogateescape") as file:
        return file.read(LARGEST) if stat.S_ISREG(os.fstat(descriptor).st_mode) else ""
