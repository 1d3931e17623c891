"""A user namespace in which we are root: our own user is 0 there, and those that /etc/subuid gives us are 1, 2, ...

Ranges need newuidmap and newgidmap (Debian: uidmap), because only root may map what is not one's own. Without them
there is one user and one group; setgroups(2) is then forbidden, or a group could be left that denies access.
"""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from pybernetes.cluster.node import syscalls
from pybernetes.cluster.node.programs import find

ENOUGH = 65536
"""Users that images have at most, but for odd ones."""


class Ranges(NamedTuple):
    """The ranges that newuidmap and newgidmap may map for us: first id and number, of users and of groups."""

    users: tuple[int, int]
    groups: tuple[int, int]


def ranges(user: int, *, subuid: str = "/etc/subuid", subgid: str = "/etc/subgid") -> Ranges | None:
    """The ranges of a user, None if there are none to use."""
    if find("newuidmap") is None or find("newgidmap") is None:
        return None
    users, groups = _range(subuid, user), _range(subgid, user)
    return Ranges(users, groups) if users and groups else None


def users() -> int:
    """How many users there are in a user namespace of ours."""
    found = ranges(os.geteuid())
    return 1 + min(found.users[1], ENOUGH) if found else 1


def _range(path: str, user: int) -> tuple[int, int] | None:
    names = {str(user)}
    try:
        names.add(pwd.getpwuid(user).pw_name)
    except KeyError:
        pass
    try:
        with open(path) as file:
            lines = [line.strip().split(":") for line in file]
    except OSError:
        return None
    found = [(int(line[1]), int(line[2])) for line in lines if len(line) == 3 and line[0] in names]
    return max(found, key=lambda each: each[1], default=None)


def as_root(work: Callable[[], None]) -> None:
    """Does something in a child that is root of a user namespace as nodes have it: over all that theirs have made.

    Raises OSError.
    """
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        said = b""
        try:
            ours.close()
            syscalls.unshare(syscalls.NEWUSER)
            theirs.send(b"!")
            if theirs.recv(1):
                work()
        except BaseException as error:
            said = (str(error) or repr(error)).encode()
        finally:
            theirs.send(said)
            os._exit(0)
    theirs.close()
    try:
        said = ours.recv(4096) or b"the child that was to become root has ended"
        if said == b"!":
            map_child(child, ranges(os.geteuid()))
            ours.send(b"!")
            said = ours.recv(4096)
        if said:
            raise OSError(said.decode())
    finally:
        ours.close()
        os.waitpid(child, 0)


def map_self(user: int, group: int) -> None:
    """Makes us root of the user namespace we have just made; `user` and `group` are ours outside of it."""
    _map_one("self", user, group)


def _map_one(process: str, user: int, group: int) -> None:
    """Makes a process root, and all there is in its user namespace."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/{process}/{name}", "w") as file:
            file.write(text)


def map_child(pid: int, found: Ranges | None) -> None:
    """Makes a child of ours root of the user namespace it has just made. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    if found is None:
        _map_one(str(pid), user, group)
        return
    for program, own, (first, number) in (("newuidmap", user, found.users), ("newgidmap", group, found.groups)):
        words = [find(program) or program, str(pid), "0", str(own), "1", "1", str(first), str(min(number, ENOUGH))]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise OSError(1, f"{program} refuses: {done.stderr.strip() or done.returncode}")
