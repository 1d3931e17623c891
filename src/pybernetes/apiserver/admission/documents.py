"""A request's objects as JSON, in the version of a webhook or policy, and back."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api import strict
from pybernetes.api.errors import APIError, InternalError
from pybernetes.api.gocompat import goencoder
from pybernetes.api.resources import Resource

from ..bodies import decode_json
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from .plugin import Attributes

Document = dict[str, Any]


def kind_of(attributes: Attributes, target: Resource) -> tuple[str, str]:
    """apiVersion and kind of the objects of a request when the resource is seen in this version."""
    return attributes.body or (target.api_version, target.kind)


async def document(registry: Registry, attributes: Attributes, obj: Any, target: Resource) -> Document | None:
    """One of the request's objects as JSON; None if there is none."""
    if obj is None:
        return None
    if attributes.body is not None:
        obj.api_version, obj.kind = attributes.body
        return _plain(goencoder.encode(obj))
    if not target.stored:
        obj.api_version, obj.kind = target.api_version, target.kind
        return _plain(goencoder.encode(obj))
    store = registry.store(target.group, target.version, target.plural)
    if store.custom is not None:
        return await _custom(store, obj, target)
    visible = store.from_storage(obj)
    visible.api_version, visible.kind = target.api_version, target.kind
    return _plain(goencoder.encode(visible))


async def _custom(store: ResourceStore, obj: Any, target: Resource) -> Document:
    found: Document = store.custom.document(obj)
    if found.get("apiVersion") != target.api_version:
        [found] = await store._converter.convert([found], target.api_version)  # type: ignore[attr-defined]
    return found


async def restore(registry: Registry, attributes: Attributes, found: Document, target: Resource) -> Any:
    """The object of a changed document, with defaults, as the request goes on with it. Raises InternalError."""
    try:
        return await _restored(registry, attributes, found, target)
    except InternalError:
        raise
    except (APIError, ValueError, RecursionError) as error:
        raise InternalError(str(error)) from None


async def _restored(registry: Registry, attributes: Attributes, found: Document, target: Resource) -> Any:
    if attributes.body is not None or not target.stored:
        cls = type(attributes.new)
        decoder = msgspec.json.Decoder(cls)
        version = attributes.body[0] if attributes.body is not None else target.api_version
        return strict.decode(cls, decoder, msgspec.json.encode(found), version, strict.IGNORE, [])[0]
    requested = attributes.requested
    store = registry.store(target.group, target.version, target.plural)
    if store.custom is not None:
        if target.api_version != requested.api_version:
            [found] = await store._converter.convert([found], requested.api_version)  # type: ignore[attr-defined]
            store = registry.store(requested.group, requested.version, requested.plural)
        return store.custom.read(msgspec.json.encode(found), strict.IGNORE, [])
    obj = decode_json(target, msgspec.json.encode(found), strict.IGNORE, [])
    obj = store.to_storage(obj)
    store.strategy.default(obj)
    return obj


def _plain(encoded: bytes) -> Document:
    found: Document = msgspec.json.decode(encoded)
    return found
