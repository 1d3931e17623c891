"""PUT an object, or its status: replace what is there."""

from __future__ import annotations

from typing import Any

from pybernetes.api.errors import BadRequest, NotFound
from pybernetes.api.meta.v1 import ObjectMeta

from ..http import Request, Response
from ..negotiation import output_format
from ..output import TRANSFORMS, answer
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from .decoding import decode_object, field_manager
from .options import WriteOptions, write_options
from .writing import check_namespace, context_for, create_object, update_object, write_object


async def update(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer 200 with the object as it was stored, or 201 where an update may create it."""
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    options = write_options(info.query, "UpdateOptions")
    manager = options.field_manager or field_manager(request)
    context = context_for(registry, request, dry_run=options.dry_run, field_manager=manager)
    first = _decode(store, request, options)
    meta = first.metadata
    check_namespace(store, meta, info.namespace)
    if not meta.name:
        raise BadRequest("name must be provided")
    if meta.name != info.name:
        raise BadRequest(f"the name of the object ({meta.name}) does not match the name on the URL ({info.name})")
    fresh: Any = first

    async def replace(old: Any) -> Any:
        nonlocal fresh
        new = fresh if fresh is not None else _decode(store, request, options)
        fresh = None  # a second attempt must not start from what the first one made of it
        return await update_object(store, new, old, context)

    try:
        item = await write_object(store, info.name, replace, context)
        status = 200
    except NotFound:
        creates = store.strategy.allow_create_on_update and not info.subresource
        if not creates or await store.find(info.namespace, info.name):
            raise
        first.metadata.uid = None
        item = await create_object(store, first, context)
        status = 201
    return answer(request, store.resource, store.raw(item), form, status)


def _decode(store: ResourceStore, request: Request, options: WriteOptions) -> Any:
    obj = decode_object(store, request, request.body, options.field_validation)
    if obj.metadata is None:
        obj.metadata = ObjectMeta()
    obj = store.to_storage(obj)
    store.strategy.default(obj)
    return obj
