"""The cgroups of a node: a folder of its own in every hierarchy, which a cgroup namespace makes the node's root.

So the `/kubepods` of each node is its own, no node can count or end another's pods, and removing one folder removes all
of them. cgroup v1, hybrid and v2 hosts; in a hybrid one the node does not see the v2 part, because crun refuses to work
when it has controllers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

MOUNT = "/sys/fs/cgroup"
ATTEMPTS = 5
LEAF = "system"
"""Where the node's own processes are: on v2 a cgroup with controllers for its children may hold none itself."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted hierarchy; `options` are those to mount it with again."""

    mount: str
    version: int
    options: str

    @property
    def controllers(self) -> list[str]:
        return self.options.split(",")


def hierarchies(mountinfo: str | None = None) -> list[Hierarchy]:
    """The hierarchies that /proc/self/mountinfo shows."""
    if mountinfo is None:
        with open("/proc/self/mountinfo") as file:
            mountinfo = file.read()
    found: dict[str, Hierarchy] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        mount = before.split(" ")[4]
        if kind == "cgroup2":
            found.setdefault(mount, Hierarchy(mount, 2, ""))
        elif kind == "cgroup":
            words = [
                word for word in options.split(",") if word not in _PLAIN and not word.startswith("release_agent=")
            ]
            named = any(word.startswith("name=") for word in words)
            found.setdefault(mount, Hierarchy(mount, 1, ",".join(["none", *words] if named else words)))
    return [each for each in found.values() if each.mount.startswith(MOUNT)]


_PLAIN = {"rw", "ro", "xattr", "clone_children", "nsdelegate", "memory_recursiveprot", "favordynmods", "seclabel"}


NEEDED = ("cpu", "memory", "pids")
"""The controllers that limits of pods need."""


def missing(found: Iterable[Hierarchy]) -> list[str]:
    """The controllers that pods need and a host with cgroup v2 cannot give them; v1 is as the host has mounted it."""
    for each in visible(found):
        if each.version == 2:
            _delegate(each.mount)
            with open(f"{each.mount}/cgroup.subtree_control") as file:
                given = file.read().split()
            return [name for name in NEEDED if name not in given]
    return []


def visible(found: Iterable[Hierarchy]) -> list[Hierarchy]:
    """The hierarchies a node shall see: v2 alone, or all of v1."""
    found = list(found)
    return [each for each in found if each.version == 1] or found


def enter(path: str, found: Iterable[Hierarchy]) -> None:
    """Moves this process into the cgroup, made anew in every hierarchy: what a power failure left there is gone."""
    found = list(found)
    remove(path, found)
    for each in found:
        for attempt in range(ATTEMPTS):
            try:
                _enter(path, each)
                break
            except OSError as error:
                # The first folder is common to all clusters, and the last node of another may take it away meanwhile.
                if error.errno not in (errno.ENOENT, errno.ENODEV) or attempt == ATTEMPTS - 1:
                    raise


def _enter(path: str, each: Hierarchy) -> None:
    folder = each.mount
    for part in path.split("/"):
        if each.version == 2:
            _delegate(folder)
        folder = f"{folder}/{part}"
        os.makedirs(folder, exist_ok=True)
        if "cpuset" in each.controllers:
            _inherit_cpuset(folder)
    _write(f"{folder}/cgroup.procs", str(os.getpid()))


def settle(path: str, found: Iterable[Hierarchy]) -> None:
    """Moves this process into the cgroup's leaf and gives all controllers to the cgroup's children."""
    for each in found:
        folder = f"{each.mount}/{path}/{LEAF}"
        os.makedirs(folder, exist_ok=True)
        if "cpuset" in each.controllers:
            _inherit_cpuset(folder)
        _write(f"{folder}/cgroup.procs", str(os.getpid()))
        if each.version == 2:
            _delegate(f"{each.mount}/{path}")


def remove(path: str, found: Iterable[Hierarchy], patience: float = 20.0) -> list[str]:
    """Removes the cgroup everywhere once its last process is gone; answers what could not be removed."""
    deadline = time.monotonic() + patience
    left = []
    for each in found:
        folder = f"{each.mount}/{path}"
        while os.path.isdir(folder):
            remove_below(folder)
            try:
                os.rmdir(folder)
            except OSError:
                if time.monotonic() > deadline:
                    left.append(folder)
                    break
                time.sleep(0.01)
        above = os.path.dirname(folder)
        while above != each.mount:
            try:  # Those of the cluster go with the last of its nodes.
                os.rmdir(above)
            except OSError:
                break
            above = os.path.dirname(above)
    return left


def remove_below(folder: str) -> None:
    """Removes all cgroups below one, as far as they are empty."""
    for current, folders, _ in os.walk(folder, topdown=False):
        for name in folders:
            with contextlib.suppress(OSError):
                os.rmdir(f"{current}/{name}")


def _delegate(folder: str) -> None:
    with open(f"{folder}/cgroup.controllers") as file:
        controllers = file.read().split()
    for controller in controllers:
        # One by one: a controller that cannot be had (real-time processes keep `cpu` back) costs only itself.
        with contextlib.suppress(OSError):
            _write(f"{folder}/cgroup.subtree_control", f"+{controller}")


def _inherit_cpuset(folder: str) -> None:
    """A new v1 cpuset is empty, and nothing can run in an empty one."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        with open(f"{folder}/{name}") as file:
            if file.read().strip():
                continue
        with open(f"{os.path.dirname(folder)}/{name}") as file:
            _write(f"{folder}/{name}", file.read().strip())


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
