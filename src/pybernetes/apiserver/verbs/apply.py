"""Server-side apply: a client says what it wants of an object, and owns exactly that.

The configuration is merged into the live object by the rules of `api/managedfields`; from there the result takes
the way of an update, or of a create where there was no object.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.errors import BadRequest, Conflict
from pybernetes.api.gocompat import gojson
from pybernetes.api.managedfields import apply as merge
from pybernetes.api.managedfields import node_of, resetfields
from pybernetes.net.http import Request
from pybernetes.store.watchers import Item

from ..bodies import decode_json, yaml_as_json
from ..large_objects import beside_loop, is_large
from ..pipeline.change import update_object
from ..pipeline.create_permission import require_create
from ..pipeline.creation import create_object
from ..pipeline.metadata import check_name, check_uid
from ..pipeline.options import WriteOptions
from ..pipeline.persist import write_object
from ..registry.managed_fields import converting
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context


async def apply_object(
    store: ResourceStore, request: Request, options: WriteOptions, context: Context
) -> tuple[Item, bool]:
    """Apply the body to the object that the path names; tells whether it was created."""
    info, resource = request.info, store.resource
    context.large = is_large(request.body)
    config, repeated = await beside_loop(lambda: apply_config(request)) if context.large else apply_config(request)

    def merged(live: Any | None) -> Any:
        obj = _merged(live) if store.custom is None else store.custom.apply(live, config, context, bool(options.force))
        check_repeated(repeated, options, context.warnings)
        check_name(obj.metadata, info.name)
        return obj

    def _merged(live: Any | None) -> Any:
        document = merge(
            None if live is None else store.from_storage(live),
            config,
            node=node_of(resource.type),
            manager=context.field_manager,
            api_version=resource.api_version,
            kind=resource.kind,
            now=context.now,
            force=bool(options.force),
            subresource=context.subresource,
            reset_fields=resetfields.for_request(resource, context.subresource),
        )
        obj = decode_json(resource, msgspec.json.encode(document), options.field_validation, context.warnings)
        obj = store.to_storage(obj)
        store.strategy.default(obj)
        return obj

    async def change(old: Any) -> Any:
        new = await converting(store, lambda: merged(old), large=context.large)
        check_uid(store, new.metadata, old.metadata)
        return await update_object(store, new, old, context)

    if not info.subresource and await store.find(info.namespace, info.name) is None:
        new = await beside_loop(lambda: merged(None)) if context.large else merged(None)
        if new.metadata.uid:
            why = (
                f"uid mismatch: the provided object specified uid {new.metadata.uid}, and no existing object was found"
            )
            raise Conflict(resource.group, resource.plural, info.name, why)
        new.metadata.resource_version = None
        await require_create(context.registry, request)
        return await create_object(store, new, context), True
    return await write_object(store, info.name, change, context), False


def apply_config(request: Request) -> tuple[dict[str, Any], list[str]]:
    """The configuration in the body, YAML or JSON, and what it says twice. Raises BadRequest."""
    from pybernetes.api.yaml import YAMLProblem

    try:
        json, repeated = yaml_as_json(request)
    except YAMLProblem as problem:
        raise BadRequest(f"error decoding YAML: error converting YAML to JSON: {problem}") from problem
    config = msgspec.json.decode(json)
    if config is None:
        raise BadRequest("invalid object type: /, Kind=")
    if not isinstance(config, dict):
        target = f"{gojson.word(config)} into Go value of type map[string]interface {{}}"
        raise BadRequest(
            f"error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {target}"
        )
    return config, repeated


def check_repeated(repeated: list[str], options: WriteOptions, warnings: list[str]) -> None:
    """Refuse a configuration that says something twice, or warn of it; after all else that may be wrong with it."""
    if not repeated or options.field_validation == "Ignore":
        return
    if options.field_validation == "Strict":
        lines = "\n  ".join(("yaml: unmarshal errors:", *repeated))
        raise BadRequest(f"error strict decoding YAML: error converting YAML to JSON: {lines}")
    if repeated[0] not in warnings:  # added already if this is the retry after a conflict
        warnings.extend(repeated)
