"""Objects as they will be once our updates have been made: what one pod was promised, the next must not get.

An assumed object stands in for the one in the informer's cache until a newer one arrives there, or it is taken back.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pybernetes.api.base import Kind
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key, key_of

K = TypeVar("K", bound=Kind)


class Assumed(Generic[K]):
    """A view of an informer with assumed objects in it."""

    def __init__(self, informer: Informer[K]) -> None:
        self.informer = informer
        self._assumed: dict[Key, K] = {}
        informer.add_handler(on_update=self._updated, on_delete=self._gone)

    def get(self, key: Key) -> K | None:
        """The object as it is assumed to be; None if there is none."""
        found = self._assumed.get(key)
        return self.informer.get(key) if found is None else found

    def named(self, name: str, namespace: str = "") -> K | None:
        """The same, by name."""
        return self.get(Key(namespace, name))

    def by_index(self, index: str, value: str) -> list[K]:
        """Objects by an index of the informer. (What is assumed must not move them in it.)"""
        found = self.informer.by_index(index, value)
        if not self._assumed:
            return found
        return [self._assumed.get(key_of(each), each) for each in found]

    def assume(self, obj: K) -> None:
        """Believe this, a changed copy of the newest object, from now on."""
        self._assumed[key_of(obj)] = obj

    def restore(self, obj: K) -> None:
        """Believe the informer again."""
        self._assumed.pop(key_of(obj), None)

    def _updated(self, old: K, new: K) -> None:
        if self._assumed:
            assumed = self._assumed.get(key_of(new))
            if assumed is not None and _version(assumed) != _version(new):
                del self._assumed[key_of(new)]

    def _gone(self, obj: K) -> None:
        self._assumed.pop(key_of(obj), None)


def _version(obj: Kind) -> str | None:
    return obj.metadata.resource_version if obj.metadata else None
