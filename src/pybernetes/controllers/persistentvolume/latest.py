"""A cache together with what we wrote and the cache has not shown yet.

Binding a volume to a claim is four writes to two objects, and the next claim must not be given the volume that the
last one has just got. Writes go ahead of the cache here until it has caught up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from pybernetes.api.base import Kind
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key, key_of

K = TypeVar("K", bound=Kind)


class Latest(Generic[K]):
    """Objects of one kind, the newest we know of. They are shared: copy before changing."""

    def __init__(self, informer: Informer[K]) -> None:
        self.informer = informer
        self._written: dict[Key, K] = {}
        """Only objects that the cache has, in an older revision."""
        informer.add_handler(self._seen, lambda _, new: self._seen(new), self._gone)

    def get(self, key: Key) -> K | None:
        """The object, None if there is none."""
        return self._written.get(key) or self.informer.get(key)

    def of(self, objects: Iterable[K]) -> Iterator[K]:
        """The newest of each of these objects from the cache."""
        if not self._written:
            yield from objects
            return
        for obj in objects:
            yield self._written.get(key_of(obj), obj)

    def wrote(self, obj: K) -> K:
        """The server has answered a write with this object; the object."""
        cached = self.informer.get(key_of(obj))
        # Not in the cache: it is gone already, and no event would ever remove it again.
        if cached is not None and _revision(cached) < _revision(obj):
            self._written[key_of(obj)] = obj
        return obj

    def _seen(self, obj: K) -> None:
        written = self._written.get(key_of(obj))
        if written is not None and _revision(written) <= _revision(obj):
            del self._written[key_of(obj)]

    def _gone(self, obj: K) -> None:
        self._written.pop(key_of(obj), None)


def _revision(obj: Kind) -> int:
    version = (obj.metadata.resource_version if obj.metadata else None) or "0"
    return int(version) if version.isdigit() else 0
