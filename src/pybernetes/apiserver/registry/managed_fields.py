"""Updates the managed fields of an object after a write, in the version the client speaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pybernetes.api.managedfields import record_update, resetfields

from ..large_objects import beside_loop
from .resource_store import NeedsConversion, ResourceStore
from .strategy import Context

T = TypeVar("T")


async def converting(store: ResourceStore, work: Callable[[], T], *, large: bool = False) -> T:
    """Do work on owners that speak other versions; where a webhook converts, it is asked in between."""
    while True:
        try:
            return await beside_loop(work) if large else work()
        except NeedsConversion as need:
            await store.convert_for(need)


async def tracked(store: ResourceStore, new: Any, old: Any, context: Context) -> None:
    """`track`, for objects of any size and with owners that speak other versions."""
    if context.large or store.asks_webhook:
        await converting(store, lambda: track(store, new, old, context), large=context.large)
    else:
        track(store, new, old, context)


def track(store: ResourceStore, new: Any, old: Any | None, context: Context) -> None:
    """Write into the new object who owns its fields, after it was changed from the old one or created."""
    if store.custom is not None:
        new.metadata.managed_fields = store.custom.owners(new, old, context) or None
        return
    resource, subresource = store.resource, context.subresource
    entries = record_update(
        store.from_storage(new),
        None if old is None else store.from_storage(old),
        manager=context.field_manager,
        api_version=resource.api_version,
        now=context.now,
        subresource=subresource,
        reset_fields=resetfields.for_request(resource, subresource),
    )
    new.metadata.managed_fields = entries or None
