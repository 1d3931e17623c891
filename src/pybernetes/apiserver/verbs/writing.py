"""What creates and updates have in common: from a decoded object to a stored one.

create:  metadata filled in → mutating admission → strategy → validation → validating admission → store
update:  old object → metadata kept → strategy → mutating admission → validation → validating admission → store
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import Any, TypeVar

from pybernetes.api.errors import AlreadyExists, BadRequest, Conflict, GenerateNameConflict, Invalid
from pybernetes.api.field import FieldError, required
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.names import generate_name
from pybernetes.api.times import rfc3339
from pybernetes.store.cache import Item

from ..admission.plugin import CREATE, UPDATE, Attributes
from ..http import Request
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore, Transform
from ..registry.strategy import Context, Reservation

T = TypeVar("T")

_NAME_ATTEMPTS = 8  # upstream's maxNameGenerationCreateAttempts


def new_uid() -> str:
    """A random UUID (version 4); faster than the standard library's."""
    text = bytearray(os.urandom(16))
    text[6] = text[6] & 0x0F | 0x40
    text[8] = text[8] & 0x3F | 0x80
    digits = text.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def context_for(registry: Registry, request: Request, *, dry_run: bool, field_manager: str = "") -> Context:
    """What strategies know about a request."""
    info = request.info
    return Context(
        registry,
        request.user,
        rfc3339(registry.clock.now()),
        info.namespace,
        dry_run,
        field_manager,
        request.warnings,
        info.subresource,
    )


def check_namespace(store: ResourceStore, meta: ObjectMeta, namespace: str) -> None:
    """The object belongs where the path says. Raises BadRequest."""
    wanted = namespace if store.resource.namespaced else ""
    if meta.namespace and meta.namespace != wanted:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    meta.namespace = wanted or None


def _attributes(store: ResourceStore, operation: str, new: Any, old: Any, context: Context, name: str) -> Attributes:
    return Attributes(
        operation,
        store.storage,
        context.subresource,
        context.namespace,
        name,
        new,
        old,
        context.user,
        context.dry_run,
        context.warnings,
    )


def check(store: ResourceStore, name: str, errors: list[FieldError]) -> None:
    """Raise Invalid if there are errors."""
    if errors:
        raise Invalid(store.resource.group, store.resource.kind, name, errors)


async def create_object(store: ResourceStore, obj: Any, context: Context) -> Item:
    """Make a new object. Raises what admission, validation or the store have against it."""
    meta = obj.metadata
    if meta is None:
        meta = obj.metadata = ObjectMeta()
    check_namespace(store, meta, context.namespace)
    if meta.resource_version:
        raise BadRequest("resourceVersion should not be set on objects to be created")
    base = meta.generate_name
    generated = not meta.name and bool(base)
    for attempt in range(_NAME_ATTEMPTS if generated else 1):
        if generated:
            meta.name = generate_name(base or "")
        if attempt == 0:
            await _prepare(store, obj, context)
        try:
            return await _store_new(store, obj, context)
        except AlreadyExists:
            if not generated:
                raise
    raise GenerateNameConflict(store.resource.group, store.resource.plural, meta.name or "")


async def _prepare(store: ResourceStore, obj: Any, context: Context) -> None:
    """Fill in, admit and validate a new object."""
    meta = obj.metadata
    strategy = store.strategy
    meta.uid = new_uid()
    meta.creation_timestamp = context.now
    meta.deletion_timestamp = meta.deletion_grace_period_seconds = None
    meta.self_link = None
    meta.generation = None
    admission = context.registry.admission
    attributes = _attributes(store, CREATE, obj, None, context, meta.name or "")
    await admission.admit(attributes)
    obj = attributes.new
    strategy.prepare_for_create(obj, context)
    if not meta.name:
        check(store, "", [required("metadata.name", "name or generateName is required")])
    check(store, meta.name, strategy.validate(obj, context))
    context.warnings.extend(strategy.warnings_on_create(obj, context))
    await admission.validate(attributes)


async def _store_new(store: ResourceStore, obj: Any, context: Context) -> Item:
    reservation = await store.strategy.reserve(obj, None, context) if store.strategy.reserves else None
    if reservation is None:
        return await store.create(obj, dry_run=context.dry_run)
    # Shielded: a client that leaves must not make us give back what a stored object holds.
    return await asyncio.shield(_with_reservation(reservation, store.create(obj, dry_run=context.dry_run), context))


async def _with_reservation(reservation: Reservation, write: Awaitable[T], context: Context) -> T:
    try:
        written = await write
    except BaseException:
        await reservation.rollback()
        raise
    await (reservation.rollback() if context.dry_run or written is None else reservation.commit())
    return written


async def update_object(store: ResourceStore, new: Any, old: Any, context: Context) -> Any:
    """Check a changed object and complete it; what is returned may be stored in place of `old`."""
    meta, before = new.metadata, old.metadata
    strategy = store.strategy
    check_namespace(store, meta, context.namespace)
    if meta.resource_version and meta.resource_version != before.resource_version:
        raise store.conflict(before.name)
    if meta.uid and meta.uid != before.uid:
        raise _precondition(store, before.name, f"UID in precondition: {meta.uid}, UID in object meta: {before.uid}")
    if not meta.resource_version and not strategy.allow_unconditional_update:
        error = FieldError("FieldValueInvalid", "metadata.resourceVersion", 0, "must be specified for an update")
        check(store, before.name, [error])
    meta.name = meta.name or before.name
    meta.uid = before.uid
    meta.creation_timestamp = before.creation_timestamp
    meta.deletion_timestamp = before.deletion_timestamp
    meta.deletion_grace_period_seconds = before.deletion_grace_period_seconds
    meta.generation = before.generation
    meta.generate_name = meta.generate_name or before.generate_name
    meta.self_link = None
    prepare, validate = strategy.rules(context.subresource)
    prepare(new, old, context)
    admission = context.registry.admission
    attributes = _attributes(store, UPDATE, new, old, context, before.name)
    await admission.admit(attributes)
    new = attributes.new
    check(store, before.name, validate(new, old, context))
    if not context.subresource:
        context.warnings.extend(strategy.warnings_on_update(new, old, context))
    await admission.validate(attributes)
    return new


async def write_object(
    store: ResourceStore, name: str, transform: Transform, context: Context, *, current: Item | None = None
) -> Item:
    """Replace an object by what `transform` makes of it, tried again when somebody was faster.

    An object that was only waiting for its finalizers is removed instead when the last one is gone.
    """
    item = current or await store.get(context.namespace, name)
    while True:
        new = await transform(store.decode(item))
        if finished(store, new):
            written = (
                Item(item.key, item.raw, item.revision)
                if context.dry_run
                else await remove(store, item, store.decode(item), context)
            )
        else:
            written = await _replace(store, item, new, context)
        if written is not None:
            return written
        item = await store.get(context.namespace, name)


def finished(store: ResourceStore, obj: Any) -> bool:
    """Whether nothing holds an object back any more that is to be deleted."""
    meta = obj.metadata
    return bool(meta.deletion_timestamp) and not meta.deletion_grace_period_seconds and not store.strategy.held(obj)


async def _replace(store: ResourceStore, item: Item, new: Any, context: Context) -> Item | None:
    reservation = await store.strategy.reserve(new, store.decode(item), context) if store.strategy.reserves else None
    write = store.replace(item, new, dry_run=context.dry_run)
    if reservation is None:
        return await write
    return await asyncio.shield(_with_reservation(reservation, write, context))


async def remove(store: ResourceStore, item: Item, obj: Any, context: Context) -> Item | None:
    """Take an object out of the store, and give back what it held; None if it has changed meanwhile."""
    reservation = await store.strategy.reserve(None, obj, context) if store.strategy.reserves else None
    if reservation is None:
        return await store.delete(item)
    return await asyncio.shield(_with_reservation(reservation, store.delete(item), context))


def _precondition(store: ResourceStore, name: str, why: str) -> Conflict:
    return store.conflict(name, f"Precondition failed: {why}")
