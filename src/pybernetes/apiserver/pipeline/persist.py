"""The last stage: a changed object replaces the stored one, or is removed with its last finalizer.

A reservation (an address, a port, a share of a quota) is kept if the write succeeds, and given back if not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from pybernetes.api.managedfields import same_but_times
from pybernetes.store.cache import with_revision
from pybernetes.store.watchers import Item

from ..initializers import failure
from ..large_objects import SMALL, beside_loop, collecting_later, is_large
from ..registry.resource_store import ResourceStore, Transform
from ..registry.strategy import Context, Reservation

T = TypeVar("T")


class settling:
    """Keeps a reservation if what is done under it succeeds, and gives it back if not."""

    def __init__(self, reservation: Reservation | None, context: Context) -> None:
        self._reservation = reservation
        self._dry_run = context.dry_run

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._reservation is not None:
            await (self._reservation.rollback() if kind or self._dry_run else self._reservation.commit())


async def _unless_reserved(store: ResourceStore, write: Coroutine[Any, Any, T]) -> T:
    """Wait for a write; where it holds reservations it goes on even when the client leaves.

    Otherwise we could give back what an object that was stored after all still holds.
    """
    return await (asyncio.shield(write) if store.strategy.reserves else write)


async def write_object(store: ResourceStore, name: str, transform: Transform, context: Context) -> Item:
    """Replace an object by what `transform` makes of it, tried again after a conflict.

    An object that was only waiting for its finalizers is removed instead when the last one is gone.
    """
    async with store.turn(context.namespace, name):
        while True:
            item = await store.get(context.namespace, name)
            written = await _unless_reserved(store, _write_once(store, item, transform, context))
            if written is not None:
                if store.initializes and not context.dry_run:
                    await _remove_refused(store, written, context)
                return written


async def _remove_refused(store: ResourceStore, item: Item, context: Context) -> None:
    """Remove an object that an initializer rejected, once the waiting request has seen why."""
    obj = store.decode(item)
    if failure(obj) is not None and store.peek(context.namespace, obj.metadata.name) is not None:
        await remove(store, item, obj, context)


async def _write_once(store: ResourceStore, item: Item, transform: Transform, context: Context) -> Item | None:
    context.reservation = None
    if not context.large and len(item.raw) > SMALL:
        context.large = is_large(item.raw)
    if not context.large:
        return await _rewrite(store, item, transform, context)
    with collecting_later:
        return await _rewrite(store, item, transform, context)


async def _rewrite(store: ResourceStore, item: Item, transform: Transform, context: Context) -> Item | None:
    old = store.decode(item)
    new = await transform(old)
    same = new is not old and bool(new.metadata.managed_fields)
    if same:
        same = await beside_loop(lambda: _same(store, new, old)) if context.large else _same(store, new, old)
    if same and not store.stale(item):
        if context.reservation is not None:
            await context.reservation.rollback()
        return item
    if finished(store, new):
        async with settling(context.reservation, context):
            removed = item if context.dry_run else await remove(store, item, store.decode(item), context)
        # As it was when it went: a watch from this version on sees the removal.
        return removed and Item(item.key, with_revision(store.encode(new), item.revision), item.revision)
    try:
        written = await store.replace(item, new, dry_run=context.dry_run)
    except BaseException:
        if context.reservation is not None:
            await context.reservation.rollback()
        raise
    if context.reservation is not None:
        kept = written is not None and not context.dry_run
        await (context.reservation.commit() if kept else context.reservation.rollback())
    return written


def _same(store: ResourceStore, new: Any, old: Any) -> bool:
    """Whether nothing changed but the times at which managers last wrote; such a write is not worth a revision."""
    new.metadata.resource_version = old.metadata.resource_version
    if store.custom is not None:
        same: bool = store.custom.same(new, old)
        return same
    new.kind, new.api_version = old.kind, old.api_version
    return same_but_times(new, old)


def finished(store: ResourceStore, obj: Any) -> bool:
    """Whether nothing holds an object back any more that is to be deleted."""
    meta = obj.metadata
    return bool(meta.deletion_timestamp) and not meta.deletion_grace_period_seconds and not store.strategy.held(obj)


async def remove(store: ResourceStore, item: Item, obj: Any, context: Context) -> Item | None:
    """Take an object out of the store, and give back what it held; None if it has changed meanwhile."""
    if not store.strategy.reserves:
        return await store.delete(item)
    return await asyncio.shield(_remove_reserved(store, item, obj, context))


async def _remove_reserved(store: ResourceStore, item: Item, obj: Any, context: Context) -> Item | None:
    reservation = await store.strategy.reserve(None, obj, context)
    removed = await store.delete(item)
    if reservation is not None:
        await (reservation.rollback() if removed is None else reservation.commit())
    return removed
