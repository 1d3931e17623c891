"""Has the cache seen what we wrote? A controller that plans on an older state than it has made itself plans nonsense.

Expectations (`client/expectations.py`) count pods; this looks at revisions, for everything else that a controller
writes and reads back: its own status, ReplicaSets, revisions, claims.
"""

from __future__ import annotations

from typing import Any

from pybernetes.api.base import Kind
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key

CHECK_AGAIN = 1.0
"""Seconds until a key whose caches lag is looked at again. Nearly always the missing event wakes it long before."""


class Consistency:
    """For each key the newest revision written, by cache."""

    def __init__(self) -> None:
        self._written: dict[Key, dict[Informer[Any], int]] = {}

    def wrote(self, key: Key, informer: Informer[Any], obj: Kind) -> None:
        """The server has answered a write with this object."""
        revision = _number(obj.metadata.resource_version if obj.metadata else None)
        written = self._written.setdefault(key, {})
        written[informer] = max(written.get(informer, 0), revision)

    def ready(self, key: Key) -> bool:
        """Whether the caches have come to all that was written for the key."""
        written = self._written.get(key)
        if not written:
            return True
        if all(_number(informer.resource_version) >= revision for informer, revision in written.items()):
            del self._written[key]
            return True
        return False

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._written.pop(key, None)


def _number(resource_version: str | None) -> int:
    return int(resource_version) if resource_version and resource_version.isdigit() else 0
