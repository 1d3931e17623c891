"""Puts the rulesets of the proxy into the kernel's tables, and notices changes by other programs.

The tables have the name that kube-proxy uses, so that either program replaces what the other left. A new table takes
the place of the old one in one batch: no packet sees a table without rules, connections live on in the kernel's
connection tracking, and clients stay with their endpoints.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable

from pybernetes.net.netlink.conntrack import Conntrack
from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.objects import Table, element, value_elements

from . import conntrack, frontends
from .chains import Rules, TableFacts
from .frontends import Family, Route
from .ruleset import Change, Ruleset

NAME = "kube-proxy"
MOST_NUMBERS = 1000
"""With more numbers than this, those of routes that are gone are forgotten."""


def table(family: Family) -> Table:
    """The proxy's table of an IP version."""
    return Table(family.table, NAME)


class Kernel:
    """The proxy's tables."""

    def __init__(self, nftables: Nftables, tracked: Conntrack, families: Iterable[Family]) -> None:
        self._nft, self._tracked = nftables, tracked
        self.families = tuple(families)
        self._numbers: dict[Route, bytes] = {}
        """The number of a route in maps; both IP versions use the same."""
        self._last_number = 0

    def watch(self) -> int:
        """A descriptor that is readable when another program may have changed something."""
        return self._nft.watch()

    def disturbed(self) -> bool:
        """Whether another program changed one of the tables since the last call, as far as the kernel can say."""
        changes = self._nft.changes()
        return changes is None or any(table(family) in changes for family in self.families)

    def replace(self, rulesets: dict[str, Ruleset], facts: TableFacts) -> int:
        """Makes all tables anew in one batch; how many elements they have."""
        batch = Batch()
        count = 0
        self._numbers.clear()
        for family in self.families:
            ruleset = rulesets[family.name]
            kept = self._affinities(family)
            batch.replace_table(table(family))
            for each in frontends.sets(family):
                batch.add_set(table(family), each)
            rules = Rules(table(family), family, facts)
            rules.add_base(batch)
            count += self._add(batch, family, rules, ruleset.everything())
            batch.add_elements(table(family), frontends.AFFINITY, kept)
        self._nft.commit_in_parts(batch)
        for family in self.families:
            rulesets[family.name].committed()
        return count

    def update(self, rulesets: dict[str, Ruleset], facts: TableFacts) -> int:
        """Makes the changes of the rulesets; how many elements were changed."""
        batch = Batch()
        count = 0
        for family in self.families:
            change = rulesets[family.name].change()
            if change or change.new_routes or change.unused_routes:
                count += self._add(batch, family, Rules(table(family), family, facts), change)
        self._nft.commit(batch)
        for family in self.families:
            rulesets[family.name].committed()
        if len(self._numbers) > MOST_NUMBERS:
            used = {route for each in rulesets.values() for route in each.routes()}
            self._numbers = {route: number for route, number in self._numbers.items() if route in used}
        return count

    def forget_udp(self, family: Family, targets: conntrack.Targets) -> int:
        """Deletes the tracked connections to these frontends whose endpoint is gone; how many."""
        return conntrack.clean(self._tracked, family, targets)

    def remove(self) -> None:
        """Removes the tables."""
        batch = Batch()
        for family in self.families:
            batch.add_table(table(family))
            batch.delete_table(table(family))
        self._nft.commit(batch)

    def _add(self, batch: Batch, family: Family, rules: Rules, change: Change) -> int:
        where = table(family)
        for route in change.new_routes:
            rules.add_route(batch, route, self._number(route))
        for name, keys in change.deleted.items():
            batch.delete_elements(where, name, _elements(name, [(key, b"") for key in keys]))
        for name, entries in change.added.items():
            numbers = self._number
            pairs = [(key, numbers(value) if isinstance(value, Route) else value) for key, value in entries]
            batch.add_elements(where, name, _elements(name, pairs))
        for route in change.unused_routes:
            rules.delete_route(batch, route, self._number(route))
        return sum(map(len, change.deleted.values())) + sum(map(len, change.added.values()))

    def _number(self, route: Route) -> bytes:
        number = self._numbers.get(route)
        if number is None:
            self._last_number += 1
            number = self._numbers[route] = struct.pack("=I", self._last_number & 0xFFFFFFFF)
        return number

    def _affinities(self, family: Family) -> list[bytes]:
        """Which client uses which endpoint, to be taken over into a new table."""
        with contextlib.suppress(OSError):  # there was no table, or a foreign one
            return [
                element(each.key, e.value(each.data), timeout_ms=each.timeout_ms, expires_ms=max(each.expires_ms, 1))
                for each in self._nft.elements(table(family), frontends.AFFINITY)
                if len(each.data) == 4
            ]
        return []


def _elements(name: str, pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
    if name != frontends.FIREWALL_ALLOWED:
        return value_elements(pairs)
    return [element(key[: len(key) // 2], key_end=key[len(key) // 2 :]) for key, _ in pairs]
