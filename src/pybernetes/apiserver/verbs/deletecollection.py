"""DELETE a collection: every object that is selected, one by one, as a delete of its own."""

from __future__ import annotations

import asyncio

from pybernetes.api.errors import NotFound
from pybernetes.net.http import Request, Response

from ..negotiation import output_format
from ..pipeline.context import context_for
from ..pipeline.options import delete_options, list_options
from ..pipeline.respond import TRANSFORMS, answer_list
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from .delete import delete_object
from .list import page_meta, read_page

_AT_ONCE = 64  # deletes under way; the store commits them together


async def deletecollection(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer with the list of what was deleted."""
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    options = delete_options(request)
    context = context_for(registry, request, dry_run=bool(options.dry_run))
    selection = list_options(store, info.query)
    request.warnings.extend(store.strategy.warnings_on_delete(options))
    selection.initialized_only = False  # what is stuck can be deleted too
    page = await read_page(store, info.namespace, selection)
    await store.ready(page.items)

    async def one(key: str) -> None:
        namespace, name = store.split(key)
        own = context_for(registry, request, dry_run=context.dry_run)
        own.namespace = namespace
        try:
            await delete_object(store, name, options, own)
        except NotFound:
            pass  # deleted meanwhile, which is as good

    keys = [item.key for item in page.items]
    for low in range(0, len(keys), _AT_ONCE):
        await asyncio.gather(*(one(key) for key in keys[low : low + _AT_ONCE]))
    meta = page_meta(store, info.namespace, selection, page)
    return answer_list(request, store.resource, [store.raw(item) for item in page.items], meta, form)
