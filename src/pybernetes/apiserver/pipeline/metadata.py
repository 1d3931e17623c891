"""Metadata stages: an object belongs to the path, owners count once, an update keeps what the server sets."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.errors import BadRequest, Conflict, Invalid
from pybernetes.api.field import invalid
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference
from pybernetes.api.meta.validation import IMMUTABLE

from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context
from .validation import check


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


def merge_owners(meta: ObjectMeta, context: Context) -> None:
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


def keep_metadata(store: ResourceStore, new: Any, old: Any, context: Context) -> None:
    """Give a changed object the metadata that only the server sets. Raises BadRequest, Conflict, Invalid."""
    meta, before = new.metadata, old.metadata
    check_namespace(store, meta, context.namespace)
    if meta.owner_references:
        merge_owners(meta, context)
    if meta.uid and meta.uid != before.uid:
        raise uid_mismatch(store, context.namespace, before.name, meta.uid, before.uid)
    version = meta.resource_version
    if version and version != "0":
        if version != before.resource_version:
            raise store.conflict(before.name)
    elif not store.strategy.allow_unconditional_update:
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
