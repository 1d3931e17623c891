"""The entries of all Services of one IP version, and what to change in the kernel when some change (pure).

Entries that several Services have (an endpoint's hairpin) stay until the last of them goes; the first one's value
counts. The cost of a change is that of the entries of the Services that changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from .frontends import Entries, Route, Value


@dataclass(slots=True)
class Change:
    """From what the kernel has to what it shall have."""

    deleted: dict[str, list[bytes]] = field(default_factory=dict)
    added: dict[str, list[tuple[bytes, Value]]] = field(default_factory=dict)
    new_routes: list[Route] = field(default_factory=list)
    unused_routes: list[Route] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.deleted or self.added)


class Ruleset:
    """The desired content of the kernel's maps.

    Invariant: `_values` has the value of each key that any Service has. The first Service with a key owns it; `_others`
    has those that have it too, with their values. `_before` has, for each key that was touched since `committed`, the
    value that the kernel has (None: no element). Entries are kept in a row, because dicts would take twice the memory.
    """

    def __init__(self) -> None:
        self._services: dict[str, tuple[tuple[str, bytes, Value], ...]] = {}
        self._values: dict[str, dict[bytes, Value]] = {}
        self._others: dict[tuple[str, bytes], dict[str, Value]] = {}
        self._before: dict[tuple[str, bytes], Value | None] = {}
        self._routes: Counter[Route] = Counter()
        self._chains: set[Route] = set()
        """Routes that have a chain in the kernel."""

    def __len__(self) -> int:
        return len(self._services)

    def replace(self, service: str, entries: Entries) -> None:
        """Makes these the entries of a Service; empty ones remove it."""
        old = self._services.get(service, ())
        if not old and not entries:
            return
        new = tuple((where, key, value) for where, found in entries.items() for key, value in found.items())
        had = {(where, key): value for where, key, value in old}
        has = {(where, key) for where, key, _ in new} if old else set()
        for where, key in had.keys() - has:
            self._remove(service, where, key)
        for where, key, value in new:
            known = had.get((where, key))
            if known != value:
                self._set(service, where, key, value, known is None)
        if new:
            self._services[service] = new
        else:
            self._services.pop(service, None)

    def change(self) -> Change:
        """The difference to the kernel's content."""
        change = Change()
        for (where, key), before in self._before.items():
            after = self._values.get(where, {}).get(key)
            if before == after:
                continue
            if before is not None:
                change.deleted.setdefault(where, []).append(key)
            if after is not None:
                change.added.setdefault(where, []).append((key, after))
        change.new_routes = [route for route in self._routes if route not in self._chains]
        change.unused_routes = [route for route in self._chains if route not in self._routes]
        return change

    def everything(self) -> Change:
        """All entries, for a table that is empty."""
        added = {where: list(found.items()) for where, found in self._values.items() if found}
        return Change(added=added, new_routes=list(self._routes))

    def committed(self) -> None:
        """The kernel has it all."""
        self._before.clear()
        self._chains = set(self._routes)

    def services(self) -> Iterator[str]:
        """The Services that have entries."""
        return iter(self._services)

    def routes(self) -> Iterator[Route]:
        """The routes that frontends lead to."""
        return iter(self._routes)

    def _set(self, service: str, where: str, key: bytes, value: Value, new: bool) -> None:
        values = self._values.setdefault(where, {})
        found = values.get(key)
        others = self._others.get((where, key), {}) if self._others else {}
        if service in others or (new and found is not None):
            self._others.setdefault((where, key), {})[service] = value
            return
        self._before.setdefault((where, key), found)
        self._count(found, value)
        values[key] = value

    def _remove(self, service: str, where: str, key: bytes) -> None:
        others = self._others.get((where, key), {})
        if service in others:
            del others[service]
        else:
            values = self._values[where]
            value = values.pop(key)
            self._before.setdefault((where, key), value)
            heir = next(iter(others), None)
            if heir is not None:
                values[key] = others.pop(heir)
            self._count(value, values.get(key))
        if not others:
            self._others.pop((where, key), None)

    def _count(self, old: Value | None, new: Value | None) -> None:
        if isinstance(new, Route):
            self._routes[new] += 1
        if isinstance(old, Route):
            self._routes[old] -= 1
            if not self._routes[old]:
                del self._routes[old]
