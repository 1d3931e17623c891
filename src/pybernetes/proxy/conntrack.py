"""Removes tracked UDP connections that lead to endpoints which are gone.

TCP ends with its endpoint. UDP clients that send again and again from one port keep their entry alive, and with it
their way to an endpoint that no longer exists.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping

from pybernetes.net.netlink.conntrack import Conntrack, Tracked

from .frontends import Family

Targets = dict[tuple[bytes, int], set[tuple[bytes, int]]]
"""Frontends (address, port; all zeros for node ports) and their endpoints."""


def changed(old: Targets, new: Targets) -> Targets:
    """The frontends that lost an endpoint, with those they still have."""
    return {key: new.get(key, set()) for key, targets in old.items() if targets - new.get(key, set())}


def stale(entries: Iterable[Tracked], frontends: Mapping[tuple[bytes, int], set[tuple[bytes, int]]]) -> list[Tracked]:
    """The connections to these frontends whose endpoint is none of theirs (pure)."""
    found = []
    for each in entries:
        if (each.reply_source, each.reply_port) == (each.destination, each.destination_port):
            continue  # nothing was translated
        zero = bytes(len(each.destination))
        targets = frontends.get((each.destination, each.destination_port))
        if targets is None:
            targets = frontends.get((zero, each.destination_port))
        if targets is not None and (each.reply_source, each.reply_port) not in targets:
            found.append(each)
    return found


def clean(kernel: Conntrack, family: Family, frontends: Targets) -> int:
    """Deletes the stale UDP connections of these frontends; how many."""
    found = stale(kernel.list(family.number, socket.IPPROTO_UDP), frontends)
    return sum(kernel.delete(each) for each in found)
