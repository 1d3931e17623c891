"""PUT an object, or its status: replace what is there."""

from __future__ import annotations

from typing import Any

from pybernetes.api.errors import NotFound
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.net.http import Request, Response

from ..initializers import wait_until_initialized
from ..large_objects import beside_loop, is_large
from ..negotiation import output_format
from ..pipeline.change import update_object
from ..pipeline.context import context_for
from ..pipeline.create_permission import require_create
from ..pipeline.creation import create_object
from ..pipeline.decode import decode_object
from ..pipeline.metadata import check_name, check_namespace, uid_mismatch
from ..pipeline.options import WriteOptions, manager_of, write_options
from ..pipeline.persist import write_object
from ..pipeline.respond import TRANSFORMS, answer
from ..registry.managed_fields import track, tracked
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore


async def update(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer 200 with the object as it was stored, or 201 where an update may create it."""
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    options = write_options(info.query, "UpdateOptions")
    manager = manager_of(request, options)
    context = context_for(registry, request, dry_run=options.dry_run, field_manager=manager, options=options)
    context.large = is_large(request.body)
    if context.large:
        first = await beside_loop(lambda: _decode(store, request, options))
    else:
        first = _decode(store, request, options)
    meta = first.metadata
    check_namespace(store, meta, info.namespace)
    check_name(meta, info.name)
    fresh: Any = first

    async def replace(old: Any) -> Any:
        nonlocal fresh
        new = fresh if fresh is not None else _decode(store, request, options)
        fresh = None  # a second attempt must not start from what the first one made of it
        await tracked(store, new, old, context)
        return await update_object(store, new, old, context)

    try:
        item = await write_object(store, info.name, replace, context)
        status = 200
    except NotFound:
        creates = store.strategy.allow_create_on_update and not info.subresource
        if not creates or await store.find(info.namespace, info.name):
            raise
        if meta.uid:
            raise uid_mismatch(store, info.namespace, info.name, meta.uid, "") from None
        first = _decode(store, request, options)
        first.metadata.resource_version = None
        track(store, first, None, context)
        await require_create(registry, request)
        item = await create_object(store, first, context)
        if store.initializes and not context.dry_run:
            item = await wait_until_initialized(store, item, info)
        status = 201
    return answer(request, store.resource, store.raw(item), form, status)


def _decode(store: ResourceStore, request: Request, options: WriteOptions) -> Any:
    obj = decode_object(store, request, options.field_validation)
    if obj.metadata is None:
        obj.metadata = ObjectMeta()
    obj = store.to_storage(obj)
    store.strategy.default(obj)
    return obj
