"""GET one object: its bytes, from the cache."""

from __future__ import annotations

from pybernetes.net.http import Request, Response

from ..initializers import is_hidden
from ..negotiation import output_format
from ..pipeline.freshness import wait_until_fresh
from ..pipeline.options import parse_resource_version
from ..pipeline.respond import TRANSFORMS, answer
from ..registry.resource_store import ResourceStore


async def get(store: ResourceStore, request: Request) -> Response:
    """Answer with the object. A resourceVersion means 'at least that new'."""
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    version = info.query.get("resourceVersion", "") if info.query else ""
    if version:
        await wait_until_fresh(store, parse_resource_version(version))
        item = store.peek(info.namespace, info.name)
        if item is None:
            raise store.not_found(info.name)
        await store.ready((item,))
    else:
        item = await store.get(info.namespace, info.name)
    if store.initializes and is_hidden(item, info):
        raise store.not_found(info.name)
    return answer(request, store.resource, store.raw(item), form)
