"""Reads the server's own objects: typed, from the cache, decoded once.

Authorizers, admission plugins and authenticators ask on every request; so a lookup is a dict access, and code that
compiles something from a kind's objects compares `changed` with its last value, instead of handling each change.
`subscribe` is for those who must follow every single change.

An object that cannot be decoded (the store was edited) is logged and left out: it must not keep the server from
deciding by all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from pybernetes.store.watchers import Change, Item

from .registry import Registry

T = TypeVar("T")
_KEPT = 4096  # decoded objects kept by `get`; a busy cluster asks for few


class Lister(Generic[T]):
    """The objects of one resource, in the version they are stored as. What it returns must not be changed."""

    def __init__(self, registry: Registry, group: str, version: str, plural: str) -> None:
        self._store = registry.store(group, version, plural)
        self.partition = self._store.partition
        self._decoded: dict[str, tuple[Item, T]] = {}
        self._lists: dict[str, list[T]] = {}
        self._listed = -1

    @property
    def changed(self) -> int:
        """Grows with every change of any object of the resource."""
        return self.partition.changed

    def get(self, namespace: str, name: str) -> T | None:
        """The object in the cache, which may lag behind other servers."""
        item = self.partition.items.get(self._store.key(namespace, name))
        return None if item is None else self._decode(item)

    async def find(self, namespace: str, name: str) -> T | None:
        """The object as of now: asks the store before it says that something is not there."""
        item = self._store.peek(namespace, name) or await self._store.find(namespace, name)
        return None if item is None else self._decode(item)

    def list(self, namespace: str = "") -> list[T]:
        """All objects, or those of a namespace, by name."""
        partition = self.partition
        if self._listed != partition.changed:
            self._lists.clear()
            self._listed = partition.changed
        found = self._lists.get(namespace)
        if found is None:
            keys = partition.scan(self._store.scope(namespace))
            decoded = (self._decode(partition.items[key]) for key in keys)
            found = self._lists[namespace] = [each for each in decoded if each is not None]
        return found

    def subscribe(self, follow: Callable[[T | None, T | None], None]) -> None:
        """Call `follow(new, old)` for every object there is, and then for every change; None = no object.

        When the history was lost (the store was away), all present objects are delivered again, without deletions.
        """
        partition = self.partition

        def told(change: Change | None) -> None:
            if change is None:
                for item in partition.items.values():
                    if (present := self._fresh(item)) is not None:
                        follow(present, None)
                return
            new, old = change.item, change.previous
            follow(self._fresh(new) if new else None, self._fresh(old) if old else None)

        partition.followers.append(told)
        told(None)

    def _decode(self, item: Item) -> T | None:
        kept = self._decoded.get(item.key)
        if kept is not None and kept[0] is item:
            return kept[1]
        if len(self._decoded) >= _KEPT:
            self._decoded.clear()
        obj = self._fresh(item)
        if obj is not None:
            self._decoded[item.key] = (item, obj)
        return obj

    def _fresh(self, item: Item) -> T | None:
        return next((cast(T, obj) for _, obj in self._store.decode_all((item,))), None)


def lister(registry: Registry, group: str, version: str, plural: str) -> Lister[Any]:
    """The one lister of a resource in this server."""
    found = registry.listers.get((group, version, plural))
    if found is None:
        found = registry.listers[group, version, plural] = Lister[Any](registry, group, version, plural)
    return found
