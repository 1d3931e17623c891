"""POST to a collection: a new object."""

from __future__ import annotations

from pybernetes.api.meta.v1 import ObjectMeta

from ..http import Request, Response
from ..negotiation import output_format
from ..output import TRANSFORMS, answer
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from .decoding import decode_object
from .managing import manager_of, track
from .options import write_options
from .writing import context_for, create_object


async def create(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer 201 with the object as it was stored."""
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    options = write_options(info.query, "CreateOptions")
    obj = decode_object(store, request, options.field_validation)
    obj = store.to_storage(obj)
    store.strategy.default(obj)
    context = context_for(registry, request, dry_run=options.dry_run, field_manager=manager_of(request, options))
    if obj.metadata is None:
        obj.metadata = ObjectMeta()
    track(store, obj, None, context)
    item = await create_object(store, obj, context)
    return answer(request, store.resource, store.raw(item), form, 201)
