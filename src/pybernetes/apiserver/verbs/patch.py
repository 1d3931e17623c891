"""PATCH: a change to an object instead of a new one.

The patch is applied to the object as the client would see it, in the version of the path; the result takes the same way
as a PUT. If somebody else was faster the patch is applied anew to what they left, unless it names a resourceVersion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pybernetes.api import jsonpatch, mergepatch, scheme
from pybernetes.api.base import Struct
from pybernetes.api.errors import BadRequest
from pybernetes.store.cache import Item

from ..http import Request, Response
from ..negotiation import output_format, patch_type
from ..output import TRANSFORMS, answer
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context
from .decoding import decode_json, field_manager
from .options import WriteOptions, write_options
from .writing import context_for, update_object, write_object

Apply = Callable[[Any], Any]
"""Makes the patched document from the present one, both as plain JSON values."""


async def patch(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer 200 with the object as it was stored."""
    info = request.info
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    kind = patch_type(request.headers)
    options = write_options(info.query, "PatchOptions")
    manager = options.field_manager or field_manager(request)
    context = context_for(registry, request, dry_run=options.dry_run, field_manager=manager)
    apply = patcher(kind, request.body, store.resource.type)
    item = await patch_object(store, info.name, apply, options, context)
    return answer(request, store.resource, store.raw(item), form)


async def patch_object(store: ResourceStore, name: str, apply: Apply, options: WriteOptions, context: Context) -> Item:
    """Patch and store an object."""

    async def change(old: Any) -> Any:
        visible = store.from_storage(old)
        visible.kind, visible.api_version = store.resource.kind, store.resource.api_version
        document = msgspec.json.decode(scheme.encoder.encode(visible))
        patched = apply(document)
        if not isinstance(patched, dict):
            raise BadRequest("the patched object is not a JSON object")
        new = decode_json(store.resource, msgspec.json.encode(patched), options.field_validation, context.warnings)
        new = store.to_storage(new)
        store.strategy.default(new)
        if new.metadata is None or new.metadata.name != old.metadata.name:
            said = new.metadata.name if new.metadata else ""
            raise BadRequest(
                f"the name of the object ({said}) does not match the name on the URL ({old.metadata.name})"
            )
        return await update_object(store, new, old, context)

    return await write_object(store, name, change, context)


def patcher(kind: str, body: bytes, cls: type[Struct]) -> Apply:
    """The function that applies a patch to an object of a class. Raises BadRequest if the patch cannot be read."""
    try:
        change = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequest(f"error decoding patch: {error}") from error
    if kind == "application/json-patch+json":
        operations = jsonpatch.check(change)
        return lambda document: jsonpatch.apply(document, operations)
    fields = mergepatch.check(change)
    if kind == "application/merge-patch+json":
        return lambda document: mergepatch.apply(document, fields)
    from pybernetes.api.strategicmerge import strategic_merge

    return lambda document: strategic_merge(document, fields, cls)
