"""Writes of the server itself to objects that it looks after: the status of a definition, an APIService of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..registry.managed_fields import track
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context
from .persist import write_object


async def change_object(store: ResourceStore, name: str, change: Callable[[Any], None], context: Context) -> None:
    """Let `change` have its way with an object without a namespace, and write it. Raises NotFound, Conflict."""

    async def transform(old: Any) -> Any:
        new = store.decode(await store.get("", name))
        if new.metadata.resource_version != old.metadata.resource_version:
            return old  # it has changed just now; the next attempt looks at that
        change(new)
        track(store, new, old, context)
        return new

    await write_object(store, name, transform, context)
