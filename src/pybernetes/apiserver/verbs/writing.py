"""Shared by create and update: from a decoded object to a stored one.

create:  mutating admission → metadata filled in → reservation → strategy → validation → validating admission → store
update:  metadata kept → mutating admission → reservation → strategy → validation → validating admission → store
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from pybernetes.api.errors import AlreadyExists, BadRequest, Conflict, GenerateNameConflict, Invalid
from pybernetes.api.field import FieldError, invalid
from pybernetes.api.managedfields import same_but_times
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference
from pybernetes.api.meta.validation import IMMUTABLE, validate_common_create, validate_common_update
from pybernetes.api.randomness import new_uid
from pybernetes.api.times import rfc3339
from pybernetes.net.http import Request
from pybernetes.store.cache import with_revision
from pybernetes.store.watchers import Item
from pybernetes.trace import recorder

from ..admission.plugin import CREATE, UPDATE, Attributes
from ..initializers import failure, is_pending
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore, Transform
from ..registry.strategy import Context, Reservation, Strategy
from .large import SMALL, beside_loop, collecting_later, is_large

T = TypeVar("T")

_LONGEST_VERSION = 19  # digits; what has more is no revision of any store
_NAME_ATTEMPTS = 8  # upstream's maxNameGenerationCreateAttempts


def context_for(
    registry: Registry, request: Request, *, dry_run: bool, field_manager: str = "", options: Any = None
) -> Context:
    """The context of a request for strategies and admission."""
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
        group=info.group,
        options=options,
        name=info.name,
        annotations=None if request.audit is None else request.audit.annotations,
        verb=info.verb,
    )


def check_namespace(store: ResourceStore, meta: ObjectMeta, namespace: str) -> None:
    """The object belongs where the path says. Raises BadRequest."""
    if not store.resource.namespaced:
        meta.namespace = None
        return
    if meta.namespace and meta.namespace != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    meta.namespace = namespace


def check_name(meta: ObjectMeta | None, name: str) -> None:
    """The object is the one the path names. Raises BadRequest."""
    if meta is None or not meta.name:
        raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if meta.name != name:
        raise BadRequest(f"the name of the object ({meta.name}) does not match the name on the URL ({name})")


def check_uid(store: ResourceStore, meta: ObjectMeta, before: ObjectMeta) -> None:
    """A patch cannot change the UID; a PUT with another one is a different matter, it was meant for another object."""
    if meta.uid and meta.uid != before.uid:
        check(store, before.name or "", [invalid("metadata.uid", meta.uid, IMMUTABLE)])


def uid_mismatch(store: ResourceStore, namespace: str, name: str, wanted: str, found: str) -> Conflict:
    """The conflict of an update that was meant for another object of the same name."""
    return precondition_failed(store, namespace, name, "UID", wanted, found)


def precondition_failed(
    store: ResourceStore, namespace: str, name: str, what: str, wanted: str, found: str
) -> Conflict:
    """The conflict of a request that was made for an object with another UID or version."""
    key = store.key(namespace, name)
    why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    return store.conflict(
        name, f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    )


def _merge_owners(meta: ObjectMeta, context: Context) -> None:
    """Merge owners that are named twice, with a warning for the client."""
    owners = meta.owner_references or ()
    if len(owners) < 2:
        return
    kept: dict[tuple[Any, ...], OwnerReference] = {}
    repeated: list[str] = []
    for owner in owners:
        key = msgspec.structs.astuple(owner)
        if key not in kept:
            kept[key] = owner
        else:
            repeated.append(owner.uid or "")
    if repeated:
        meta.owner_references = list(kept.values())
        when = " after mutating admission happens" if context.verb == "patch" else ""
        context.warnings.append(_OWNERS_TWICE.format(when, ", ".join(repeated)))


_OWNERS_TWICE = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, "
    "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)


def _version(text: str | None) -> int:
    """A resourceVersion as a number; what is none counts as none."""
    return int(text) if text and text.isdecimal() and len(text) <= _LONGEST_VERSION else 0


def _attributes(store: ResourceStore, operation: str, new: Any, old: Any, context: Context, name: str) -> Attributes:
    return Attributes(
        operation,
        store.storage,
        context.subresource,
        context.namespace or place(store, name),
        name,
        new,
        old,
        context.user,
        context.dry_run,
        context.warnings,
        context.options,
        store.resource,
        annotations=context.annotations,
    )


def place(store: ResourceStore, name: str) -> str:
    """The namespace of admission's attributes for cluster-scoped objects: a Namespace is in itself."""
    return name if store.resource.fullname == "namespaces" else ""


def check(store: ResourceStore, name: str, errors: list[FieldError]) -> None:
    """Raise Invalid if there are errors."""
    if errors:
        raise Invalid(store.storage.group, store.storage.kind, name, errors)


async def create_object(store: ResourceStore, obj: Any, context: Context) -> Item:
    """Make a new object. Raises what admission, validation or the store have against it."""
    meta = obj.metadata
    if meta is None:
        meta = obj.metadata = ObjectMeta()
    check_namespace(store, meta, context.namespace)
    if meta.owner_references:
        _merge_owners(meta, context)
    if meta.resource_version and _version(meta.resource_version) and not context.dry_run:
        raise BadRequest("resourceVersion should not be set on objects to be created")
    recorder.mark("decoded")
    recorder.adopt(meta.annotations)
    meta.uid = meta.creation_timestamp = None
    meta.deletion_timestamp = meta.deletion_grace_period_seconds = None
    meta.self_link = meta.resource_version = None
    attributes = _attributes(store, CREATE, obj, None, context, meta.name or "")
    waiting = context.registry.admission.admitting(attributes)
    if waiting is not None:
        await waiting
    recorder.mark("mutating admission")
    meta = attributes.new.metadata
    base = meta.generate_name
    generated = not meta.name and bool(base)
    if generated:
        attributes.name = meta.name = store.strategy.generate_name(base or "")
    meta.uid = new_uid()
    meta.creation_timestamp = context.now
    if store.strategy.guards:
        await store.strategy.guard(attributes.new, None, context)
    for _ in range(_NAME_ATTEMPTS):
        try:
            if store.strategy.reserves:
                return await asyncio.shield(_make_with_reservation(store, attributes, context))
            return await _make(store, attributes, context)
        except AlreadyExists as taken:
            if attributes.undo is not None:
                await attributes.undo()
                attributes.undo = None
            if not generated:
                error = taken
                if base:  # upstream's message for generateName
                    error = GenerateNameConflict(store.resource.group, store.resource.plural, meta.name or "")
                present = store.peek(context.namespace, meta.name or "")
                if present is not None and store.decode(present).metadata.deletion_timestamp:
                    error.message = f"object is being deleted: {error.message}"
                raise error from None
            attributes.name = meta.name = store.strategy.generate_name(base or "")
    raise GenerateNameConflict(store.resource.group, store.resource.plural, meta.name or "")


async def _make_with_reservation(store: ResourceStore, attributes: Attributes, context: Context) -> Item:
    """Make an object that holds something elsewhere; goes on when the client leaves.

    Otherwise we could give back what an object that was stored after all still holds.
    """
    reservation = await store.strategy.reserve(attributes.new, None, context)
    async with _settling(reservation, context):
        return await _make(store, attributes, context)


def _make(store: ResourceStore, attributes: Attributes, context: Context) -> Awaitable[Item]:
    """Check a new object and store it. What is wrong with it is raised at once."""
    if context.large or store.strategy.costly:
        return _make_large(store, attributes, context)
    _check_new(store, attributes.new, context)
    return _admit_and_store(store, attributes, context)


async def _make_large(store: ResourceStore, attributes: Attributes, context: Context) -> Item:
    await beside_loop(lambda: _check_new(store, attributes.new, context))
    return await _admit_and_store(store, attributes, context)


def _check_new(store: ResourceStore, obj: Any, context: Context) -> None:
    """Raise Invalid if there is something wrong with a new object."""
    strategy = store.strategy
    strategy.prepare_for_create(obj, context)
    errors = strategy.validate(obj, context)
    if not errors and not strategy.checks_metadata:
        errors = validate_common_create(obj.metadata, store.resource.namespaced)
    if errors:
        check(store, obj.metadata.name or "", errors)
    context.warnings.extend(strategy.warnings_on_create(obj, context))
    recorder.mark("validated")


def _admit_and_store(store: ResourceStore, attributes: Attributes, context: Context) -> Awaitable[Item]:
    obj = attributes.new
    waiting = context.registry.admission.validating(attributes)
    if waiting is not None:
        return _store_after(waiting, store, obj, context)
    recorder.mark("validating admission")
    return store.create(obj, dry_run=context.dry_run)


async def _store_after(waiting: Awaitable[None], store: ResourceStore, obj: Any, context: Context) -> Item:
    await waiting
    recorder.mark("validating admission")
    return await store.create(obj, dry_run=context.dry_run)


class _settling:
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


async def update_object(
    store: ResourceStore, new: Any, old: Any, context: Context, *, admitted: Attributes | None = None
) -> Any:
    """Check a changed object and complete it; what is returned may be stored in place of `old`.

    `admitted` is for a subresource with a kind of its own: admission sees that kind, and has changed it already.
    """
    meta, before = new.metadata, old.metadata
    strategy = store.strategy
    check_namespace(store, meta, context.namespace)
    if meta.owner_references:
        _merge_owners(meta, context)
    if meta.uid and meta.uid != before.uid:
        raise uid_mismatch(store, context.namespace, before.name, meta.uid, before.uid)
    version = meta.resource_version
    if version and version != "0":
        if version != before.resource_version:
            raise store.conflict(before.name)
    elif not strategy.allow_unconditional_update:
        errors = [invalid("metadata.resourceVersion", 0, "must be specified for an update")]
        raise Invalid(store.resource.group, store.resource.plural, before.name, errors)
    meta.name = meta.name or before.name
    meta.uid = before.uid
    meta.creation_timestamp = before.creation_timestamp
    meta.deletion_timestamp = meta.deletion_timestamp or before.deletion_timestamp
    if meta.deletion_grace_period_seconds is None:
        meta.deletion_grace_period_seconds = before.deletion_grace_period_seconds
    meta.generation = before.generation
    meta.self_link = None
    admission = context.registry.admission
    attributes = admitted
    if attributes is None:
        attributes = _attributes(store, UPDATE, new, old, context, before.name)
        recorder.mark("decoded")
        await admission.admit(attributes)
        recorder.mark("mutating admission")
        new = attributes.new
    if strategy.guards:
        await strategy.guard(new, old, context)
    reservation = await strategy.reserve(new, old, context) if strategy.reserves else None
    try:
        prepare, validate = strategy.rules(context.subresource)
        if store.initializes and not context.subresource and is_pending(old):
            validate = _as_new(strategy)  # no client has seen it yet, so no field is immutable

        def check_change() -> None:
            prepare(new, old, context)
            common = validate_common_update(new.metadata, before, store.resource.namespaced)
            check(store, before.name, common + validate(new, old, context))
            if not context.subresource:
                context.warnings.extend(strategy.warnings_on_update(new, old, context))

        if context.large or strategy.costly:
            await beside_loop(check_change)
        else:
            check_change()
        recorder.mark("validated")
        await admission.validate(attributes)
        recorder.mark("validating admission")
    except BaseException:
        if reservation is not None:
            await reservation.rollback()
        raise
    context.reservation = reservation
    return new


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


def _as_new(strategy: Strategy) -> Callable[[Any, Any, Context], list[FieldError]]:
    return lambda new, old, context: strategy.validate(new, context)


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
        async with _settling(context.reservation, context):
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
