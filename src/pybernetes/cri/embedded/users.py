"""Resolves the user of a container: numbers from its request, its image, and the image's /etc/passwd and /etc/group.

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

LONGEST_NUMBER = 64
NO_ID = (1 << 32) - 1


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
    name, _, group_name = str(request.get("user") or "0").partition(":")
    # A number is never looked up as a name: an image could call its root `1000`, and `runAsNonRoot` would believe it.
    uid = number(name or "0")
    entry = next((line for line in users if (line[0] == name if uid is None else number(line[2]) == uid)), None)
    if uid is None and entry is not None:
        uid = number(entry[2])
    if uid is None:
        raise UserError(f"unable to find user {name}: no matching entries in passwd file")
    gid = number(entry[3]) if entry else 0
    if group_name:
        gid = number(group_name)
        if gid is None:
            gid = next((number(line[2]) for line in groups if line[0] == group_name), None)
        if gid is None:
            raise UserError(f"unable to find group {group_name}: no matching entries in group file")
    if gid is None:
        raise UserError(f"unable to find the group of user {name}: its entry in the passwd file has none")
    if request.get("group") is not None:
        gid = int(request["group"])
    extra = [int(each) for each in request.get("groups") or ()]
    if not request.get("strict") and entry:
        member_of = (number(line[2]) for line in groups if len(line) > 3 and entry[0] in line[3].split(","))
        extra += [each for each in member_of if each is not None]
    return User(uid, gid, sorted({gid, *extra}), entry[5] if entry and entry[5] else "/")


def _lines(text: str, fields: int) -> list[list[str]]:
    split = (line.split(":") for line in text.splitlines())
    return [line for line in split if len(line) >= min(fields, 6)]


def number(text: str) -> int | None:
    """An id; None if it is none. The largest number of 32 bits means `leave it as it is` to the kernel, so: root."""
    if not text.isascii() or not text.isdigit() or len(text) > LONGEST_NUMBER:
        return None
    return int(text) if int(text) < NO_ID else None


def _read(path: str) -> str:
    """A regular file's text; anything else (a pipe would make us wait) counts as empty."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with open(descriptor, encoding="utf-8", errors="surrogateescape") as file:
        return file.read(LARGEST) if stat.S_ISREG(os.fstat(descriptor).st_mode) else ""
