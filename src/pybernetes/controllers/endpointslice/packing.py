"""How endpoints are spread over slices: with as few writes as possible, not with as few slices.

Endpoints stay in the slice they are in. New ones first go to slices that must be written anyway; if they then fit into
one that is not, into the fullest such; else into new slices. Holes are not closed: a write costs every watcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pybernetes.api.discovery.v1 import Endpoint, EndpointSlice
from pybernetes.client.keys import copy

from ..common.meta import name_of
from .endpoints import EndpointKey, endpoint_key, same_endpoint


@dataclass
class Changes:
    """Slices to write; those in `create` and `update` are ours to change, those in `delete` are shared."""

    create: list[EndpointSlice] = field(default_factory=list)
    update: list[EndpointSlice] = field(default_factory=list)
    delete: list[EndpointSlice] = field(default_factory=list)

    def extend(self, more: Changes) -> None:
        """Take over others."""
        self.create += more.create
        self.update += more.update
        self.delete += more.delete

    def unchanged(self, existing: Iterable[EndpointSlice]) -> list[EndpointSlice]:
        """Those of the existing slices that are not written."""
        changed = {name_of(each) for each in (*self.update, *self.delete)}
        return [each for each in existing if name_of(each) not in changed]

    def reuse(self, may: Callable[[EndpointSlice, EndpointSlice], bool]) -> None:
        """Turn a deletion and a creation into one update where that is allowed."""
        kept = []
        for doomed in self.delete:
            if self.create and may(doomed, self.create[-1]):
                new = self.create.pop()
                assert new.metadata is not None
                new.metadata.name = name_of(doomed)
                self.update.append(new)
            else:
                kept.append(doomed)
        self.delete = kept


def pack(
    existing: Iterable[EndpointSlice],
    desired: dict[EndpointKey, Endpoint],
    *,
    fresh: Callable[[], EndpointSlice],
    refresh: Callable[[EndpointSlice], EndpointSlice | None],
    maximum: int,
) -> Changes:
    """The writes that make slices of one family and set of ports hold exactly the desired endpoints.

    `refresh` answers with a copy whose metadata is up to date, or None if it is so already.
    """
    missing = dict(desired)
    changes = Changes()
    unchanged: list[EndpointSlice] = []
    for current in existing:
        endpoints, differs = [], False
        for each in current.endpoints or ():
            wanted = missing.pop(endpoint_key(each), None)
            if wanted is None:
                differs = True
                continue
            differs = differs or not same_endpoint(wanted, each)
            endpoints.append(wanted)
        if differs and not endpoints:
            changes.delete.append(current)
        elif differs:
            updated = refresh(current) or copy(current)
            updated.endpoints = endpoints
            changes.update.append(updated)
        else:
            refreshed = refresh(current)
            if refreshed is None:
                unchanged.append(current)
            else:
                changes.update.append(refreshed)
    _fill(changes, unchanged, list(missing.values()), fresh, maximum)
    return changes


def _fill(
    changes: Changes,
    unchanged: list[EndpointSlice],
    endpoints: list[Endpoint],
    fresh: Callable[[], EndpointSlice],
    maximum: int,
) -> None:
    for each in sorted(changes.update, key=lambda each: -len(each.endpoints or ())):
        endpoints = _take(each, endpoints, maximum)
    while endpoints:
        fitting = [each for each in unchanged if len(each.endpoints or ()) + len(endpoints) <= maximum]
        if fitting and len(endpoints) < maximum:
            found = max(fitting, key=lambda each: len(each.endpoints or ()))
            unchanged.remove(found)
            target = copy(found)
            changes.update.append(target)
        else:
            target = fresh()
            changes.create.append(target)
        endpoints = _take(target, endpoints, maximum)


def _take(into: EndpointSlice, endpoints: list[Endpoint], maximum: int) -> list[Endpoint]:
    current = into.endpoints or []
    room = maximum - len(current)
    into.endpoints = [*current, *endpoints[:room]]
    return endpoints[room:]
