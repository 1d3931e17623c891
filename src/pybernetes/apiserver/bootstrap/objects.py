"""Writes objects on the API server's own behalf, with the field managers that clients see."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api import scheme
from pybernetes.api.errors import AlreadyExists

from ..pipeline.change import update_object
from ..pipeline.creation import create_object
from ..registry.managed_fields import track
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..registry.server_context import own_context
from ..registry.strategy import Context


async def ensure(registry: Registry, group: str, version: str, plural: str, obj: Any) -> None:
    """Create an object unless there is one of that name."""
    store = registry.store(group, version, plural)
    if store.peek(obj.metadata.namespace or "", obj.metadata.name) is None:
        await create(registry, store, obj)


async def create(registry: Registry, store: ResourceStore, obj: Any) -> None:
    """Create an object; that another server on the same store was faster is as good."""
    context = own_context(registry, obj.metadata.namespace or "")
    store.strategy.default(obj)
    track(store, obj, None, context)
    try:
        await create_object(store, obj, context)
    except AlreadyExists:
        pass


async def update(store: ResourceStore, new: Any, old: Any, context: Context) -> Any:
    """The new object as it is to be stored in place of the old one; for the change given to `write_object`."""
    track(store, new, old, context)
    return await update_object(store, new, old, context)


async def apply_status(store: ResourceStore, old: Any, status: Any, context: Context) -> Any:
    """The old object with this status applied by the context's manager, as others may have conditions of their own."""
    from pybernetes.api.managedfields import apply, node_of, resetfields

    resource = store.resource
    document = apply(
        old,
        {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": old.metadata.name},
            "status": msgspec.to_builtins(status),
        },
        node=node_of(resource.type),
        manager=context.field_manager,
        api_version=resource.api_version,
        kind=resource.kind,
        now=context.now,
        force=True,
        subresource="status",
        reset_fields=resetfields.for_request(resource, "status"),
    )
    new = scheme.decoder(resource).decode(msgspec.json.encode(document))
    store.strategy.default(new)
    return await update_object(store, new, old, context)
