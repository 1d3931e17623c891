"""Removes tracked UDP connections that lead to endpoints which are gone, or that began before there were any.

TCP ends with its endpoint. UDP clients that send again and again from one port keep their entry alive, and with it
their way to an endpoint that no longer exists, or to none: packets to a node port or to the address of a load balancer
are not translated if they began before the Service.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping

from pybernetes.net.netlink.conntrack import Conntrack, Tracked

from .frontends import Family

Targets = dict[tuple[bytes, int], set[tuple[bytes, int]]]
"""Frontends (address, port; all zeros for node ports) and their endpoints."""


def changed(old: Targets, new: Targets) -> Targets:
    """The frontends that lost an endpoint or got their first, with those they have."""
    lost = {key: new.get(key, set()) for key, targets in old.items() if targets - new.get(key, set())}
    return lost | {key: targets for key, targets in new.items() if targets and not old.get(key)}


def stale(entries: Iterable[Tracked], frontends: Mapping[tuple[bytes, int], set[tuple[bytes, int]]]) -> list[Tracked]:
    """The connections to these frontends whose endpoint is none of theirs (pure)."""
    found = []
    for each in entries:
        zero = bytes(len(each.destination))
        targets = frontends.get((each.destination, each.destination_port))
        if targets is None:
            targets = frontends.get((zero, each.destination_port))
        if targets is None or (each.reply_source, each.reply_port) in targets:
            continue
        translated = (each.reply_source, each.reply_port) != (each.destination, each.destination_port)
        if translated or targets:  # without endpoints there is nothing to be translated to
            found.append(each)
    return found


def clean(kernel: Conntrack, family: Family, frontends: Targets) -> int:
    """Deletes the stale UDP connections of these frontends; how many."""
    found = stale(kernel.list(family.number, socket.IPPROTO_UDP), frontends)
    return sum(kernel.delete(each) for each in found)
