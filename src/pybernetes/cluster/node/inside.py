"""Looks into a running node from the host: its processes, and its files by way of /proc."""

from __future__ import annotations

from collections.abc import Iterator

from pybernetes.cluster import pidfile
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node.machine import RUN

PROGRAMS = ("containerd", "runtime", "kubelet", "node-network")


def init_process(layout: Layout, name: str, *, plain: bool = False) -> int | None:
    """The init process of a node as the host counts; None if the node does not run (yet).

    That of a `plain` node, without namespaces, is the one that the supervisor has started.
    """
    holder = pidfile.read(str(layout.pid_file(name)))
    if holder is None or not holder.alive:
        return None
    if plain:
        return holder.pid
    for pid in children(holder.pid):
        if _inner_pid(pid) == 1:
            return pid
    return None


def path(init: int, inner: str) -> str:
    """Where the host finds a file of the node."""
    return f"/proc/{init}/root{inner}"


def programs(init: int, run: str = RUN) -> dict[str, pidfile.Process]:
    """The programs that the node keeps running, with pids of the host."""
    outer = {_inner_pid(pid): pid for pid in children(init)}
    found = {}
    for name in PROGRAMS:
        process = pidfile.read(path(init, f"{run}/{name}.pid"))
        if process is not None and process.pid in outer:
            found[name] = pidfile.Process(outer[process.pid], process.start_time, process.restarts)
    return found


def restarts(init: int, program: str, run: str = RUN) -> int:
    """How often a program of the node has ended since the node's start."""
    try:
        with open(path(init, f"{run}/{program}.restarts")) as file:
            return int(file.read() or 0)
    except OSError:
        return 0


def children(pid: int) -> list[int]:
    """The children of a process."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def descendants(pid: int) -> Iterator[int]:
    """A process and all that came from it."""
    yield pid
    for child in children(pid):
        yield from descendants(child)


def _inner_pid(pid: int) -> int | None:
    """The pid of a process in its own PID namespace."""
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith("NSpid:"):
                    return int(line.split()[-1])
    except OSError:
        pass
    return None
