"""POST to a collection: a new object."""

from __future__ import annotations

import msgspec

from pybernetes.net.http import Request, Response

from ..initializers import wait_until_initialized
from ..large_objects import SMALL, beside_loop, is_large
from ..negotiation import Format, output_format
from ..pipeline.context import context_for
from ..pipeline.creation import create_object
from ..pipeline.default import prepared
from ..pipeline.options import WriteOptions, manager_of, write_options
from ..pipeline.respond import TRANSFORMS, answer
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore

_METADATA = b'"metadata":{'


async def create(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer 201 with the object as it was stored."""
    info = request.info
    form, options, manager = (request.head and request.head.cached_options) or _options(request)
    context = context_for(registry, request, dry_run=options.dry_run, field_manager=manager, options=options)
    if len(request.body) > SMALL and is_large(request.body):
        context.large = True
        obj = await beside_loop(lambda: prepared(store, request, options.field_validation, context))
    else:
        obj = prepared(store, request, options.field_validation, context)
    given = obj.metadata.resource_version if context.dry_run else None
    item = await create_object(store, obj, context)
    if store.initializes and not context.dry_run:
        item = await wait_until_initialized(store, item, info)
    raw = store.raw(item)
    if given:  # what is not stored keeps the resourceVersion that it came with, for upstream as well
        raw = raw.replace(_METADATA, b'%b"resourceVersion":%b,' % (_METADATA, msgspec.json.encode(given)), 1)
    return answer(request, store.resource, raw, form, 201)


def _options(request: Request) -> tuple[Format, WriteOptions, str]:
    """The form of the answer, the options, who manages the fields: found out once for requests that begin alike."""
    query = request.info.query
    form = output_format(request.headers, query, transforms=TRANSFORMS)
    options = write_options(query, "CreateOptions")
    found = (form, options, manager_of(request, options))
    if request.head is not None:
        request.head.cached_options = found
    return found
