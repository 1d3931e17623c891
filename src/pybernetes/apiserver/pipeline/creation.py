"""The stages of a new object, from the decoded and defaulted one to the stored one.

mutating admission → metadata filled in → reservation → validation → validating admission → persist
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from pybernetes.api.errors import AlreadyExists, BadRequest, GenerateNameConflict
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.randomness import new_uid
from pybernetes.store.watchers import Item
from pybernetes.trace import recorder

from ..admission.plugin import CREATE, Attributes
from ..large_objects import beside_loop
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context
from .admission import attributes_of
from .metadata import check_namespace, merge_owners
from .persist import settling
from .validation import check_new

_LONGEST_VERSION = 19  # digits; what has more is no revision of any store
_NAME_ATTEMPTS = 8  # upstream's maxNameGenerationCreateAttempts


async def create_object(store: ResourceStore, obj: Any, context: Context) -> Item:
    """Make a new object. Raises what admission, validation or the store have against it."""
    meta = obj.metadata
    if meta is None:
        meta = obj.metadata = ObjectMeta()
    check_namespace(store, meta, context.namespace)
    if meta.owner_references:
        merge_owners(meta, context)
    if meta.resource_version and _version(meta.resource_version) and not context.dry_run:
        raise BadRequest("resourceVersion should not be set on objects to be created")
    recorder.mark("decoded")
    recorder.adopt(meta.annotations)
    meta.uid = meta.creation_timestamp = None
    meta.deletion_timestamp = meta.deletion_grace_period_seconds = None
    meta.self_link = meta.resource_version = None
    attributes = attributes_of(store, CREATE, obj, None, context, meta.name or "")
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
    async with settling(reservation, context):
        return await _make(store, attributes, context)


def _make(store: ResourceStore, attributes: Attributes, context: Context) -> Awaitable[Item]:
    """Check a new object and store it. What is wrong with it is raised at once."""
    if context.large or store.strategy.costly:
        return _make_large(store, attributes, context)
    check_new(store, attributes.new, context)
    return _admit_and_store(store, attributes, context)


async def _make_large(store: ResourceStore, attributes: Attributes, context: Context) -> Item:
    await beside_loop(lambda: check_new(store, attributes.new, context))
    return await _admit_and_store(store, attributes, context)


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


def _version(text: str | None) -> int:
    """A resourceVersion as a number; what is none counts as none."""
    return int(text) if text and text.isdecimal() and len(text) <= _LONGEST_VERSION else 0
