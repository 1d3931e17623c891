"""The entries of all Services of one IP version, and what to change in the kernel when some change (pure).

Entries that several Services have (an endpoint's hairpin, an external IP by mistake) stay until the last of them goes;
the first one's value counts. The cost of a change is that of the entries of the Services that changed.
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
    """What the kernel shall have.

    Invariant: `_values` has an entry for each key that any Service has; `_others` has those of further Services.
    `_before` has, for each key that was touched since `committed`, the value that the kernel has (None: no element).
    """

    def __init__(self) -> None:
        self._services: dict[str, Entries] = {}
        self._values: dict[str, dict[bytes, tuple[str, Value]]] = {}
        self._others: dict[tuple[str, bytes], dict[str, Value]] = {}
        self._before: dict[tuple[str, bytes], Value | None] = {}
        self._routes: Counter[Route] = Counter()
        self._chains: set[Route] = set()
        """Routes that have a chain in the kernel."""

    def __len__(self) -> int:
        return len(self._services)

    def replace(self, service: str, entries: Entries) -> None:
        """Makes these the entries of a Service; empty ones remove it."""
        old = self._services.get(service, {})
        if not old and not entries:
            return
        for where in {**old, **entries}:
            had, has = old.get(where, {}), entries.get(where, {})
            for key in had.keys() - has.keys():
                self._remove(service, where, key)
            for key, value in has.items():
                if key not in had or had[key] != value:
                    self._set(service, where, key, value)
        if entries:
            self._services[service] = entries
        else:
            self._services.pop(service, None)

    def change(self) -> Change:
        """What differs from what the kernel has."""
        change = Change()
        for (where, key), before in self._before.items():
            found = self._values.get(where, {}).get(key)
            after = found[1] if found else None
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
        added = {
            where: [(key, value) for key, (_, value) in found.items()] for where, found in self._values.items() if found
        }
        return Change(added=added, new_routes=list(self._routes))

    def committed(self) -> None:
        """The kernel has it all."""
        self._before.clear()
        self._chains = set(self._routes)

    def services(self) -> Iterator[str]:
        """The Services that have entries."""
        return iter(self._services)

    def _set(self, service: str, where: str, key: bytes, value: Value) -> None:
        values = self._values.setdefault(where, {})
        found = values.get(key)
        if found is not None and found[0] != service:
            self._others.setdefault((where, key), {})[service] = value
            return
        self._before.setdefault((where, key), found[1] if found else None)
        self._count(found[1] if found else None, value)
        values[key] = service, value

    def _remove(self, service: str, where: str, key: bytes) -> None:
        values = self._values[where]
        owner, value = values[key]
        others = self._others.get((where, key))
        if owner != service:
            assert others is not None
            del others[service]
        else:
            self._before.setdefault((where, key), value)
            if others:
                heir = next(iter(others))
                values[key] = heir, others.pop(heir)
                self._count(value, values[key][1])
            else:
                del values[key]
                self._count(value, None)
        if others is not None and not others:
            del self._others[where, key]

    def _count(self, old: Value | None, new: Value | None) -> None:
        if isinstance(new, Route):
            self._routes[new] += 1
        if isinstance(old, Route):
            self._routes[old] -= 1
            if not self._routes[old]:
                del self._routes[old]
