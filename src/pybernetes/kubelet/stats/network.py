"""Bytes and errors on the interfaces of a network namespace, from /proc/PID/net/dev of a process in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_IGNORED: Final = ("lo", "veth", "docker", "nerdctl")
"""Interfaces that belong to others, by how their names begin. (The other ends of pods' cables are counted in pods.)"""


@dataclass(frozen=True, slots=True)
class Interface:
    """Counters since the interface was made."""

    name: str
    rx_bytes: int
    rx_packets: int
    rx_errors: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_errors: int
    tx_dropped: int


def parse_net_dev(text: str) -> list[Interface]:
    """The interfaces that a net/dev file tells of."""
    found = []
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        name, values = name.strip(), [int(each) for each in rest.split()]
        if name.startswith(_IGNORED) or len(values) < 12:
            continue
        found.append(Interface(name, *values[0:4], *values[8:12]))
    return found


def interfaces_of(pid: int | str, proc: Path = Path("/proc")) -> list[Interface]:
    """The interfaces in a process's network namespace; none if the process is gone."""
    try:
        return parse_net_dev((proc / str(pid) / "net" / "dev").read_text())
    except OSError:
        return []


def default_interface(proc: Path = Path("/proc")) -> str:
    """The node's interface to the world: that of the default route."""
    try:
        lines = (proc / "self" / "net" / "route").read_text().splitlines()[1:]
    except OSError:
        return ""
    return next((fields[0] for fields in map(str.split, lines) if fields[1] == "00000000"), "")
