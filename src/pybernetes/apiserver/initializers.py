"""Objects that are not created yet, though they are stored: who sees them, and how a create waits for them.

The old alpha feature of upstream (1.7 to 1.15). `metadata.initializers.pending` names who has to look at an object
before other clients; the admission plugin `Initializers` adds the names and decides who may remove them. Until
all are gone the object is not found, listed or watched, except with includeUninitialized=true. A `result` ends it.

Nothing here is called unless the plugin is on (`ResourceStore.initializes`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from pybernetes.api.errors import APIError, InternalError, Timeout, from_status
from pybernetes.api.times import parse_duration
from pybernetes.store.watchers import Change, Item

if TYPE_CHECKING:
    from .registry.resource_store import ResourceStore
    from .requestinfo import RequestInfo

TIMEOUT = 30.0  # seconds that a create waits if its client does not say otherwise; upstream's


class _Metadata(msgspec.Struct, gc=False):
    initializers: msgspec.Raw = msgspec.Raw(b"null")


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata


_decode = msgspec.json.Decoder(_Object).decode


def is_uninitialized(raw: bytes) -> bool:
    """Whether a stored object has pending initializers. Text cannot look so: a quote in it is escaped."""
    return b'"initializers":{' in raw and bytes(_decode(raw).metadata.initializers) != b"null"


def is_hidden(item: Item, info: RequestInfo) -> bool:
    """Whether an object is not there for this request."""
    return not info.flag("includeUninitialized") and is_uninitialized(item.raw)


def is_pending(obj: Any) -> bool:
    """The same of a decoded object."""
    return getattr(obj.metadata, "initializers", None) is not None


def failure(obj: Any) -> APIError | None:
    """The reason an initializer rejected the object, if one has."""
    initializers = getattr(obj.metadata, "initializers", None)
    if initializers is None or initializers.result is None:
        return None
    found: dict[str, Any] = msgspec.to_builtins(initializers.result)
    found = {key: value for key, value in found.items() if value is not None}
    found.setdefault("message", "the object was refused by an initializer")
    return from_status({"code": 500, **found})


async def wait_until_initialized(store: ResourceStore, item: Item, info: RequestInfo) -> Item:
    """The object when all initializers have let it pass. Raises what one of them has against it, or Timeout."""
    if info.flag("includeUninitialized") or not is_uninitialized(item.raw):
        return item
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Item] = loop.create_future()
    key = item.key

    def follow(change: Change | None) -> None:
        if done.done() or (change is not None and change.key != key):
            return
        present = store.partition.items.get(key)
        if change is not None and change.item is not None:
            present = change.item
        if present is None:
            last = change.previous if change is not None else None
            problem = failure(store.decode(last)) if last is not None else None
            done.set_exception(problem or InternalError("object deleted while waiting for creation"))
        elif not is_uninitialized(present.raw):
            done.set_result(present)
        elif problem := failure(store.decode(present)):
            done.set_exception(problem)

    store.partition.followers.append(follow)
    try:
        follow(None)
        async with asyncio.timeout(_patience(info)):
            return await done
    except TimeoutError:
        name = store.split(key)[1]
        raise Timeout(
            f"server has timed out waiting for the initialization of {store.resource.fullname} {name}"
        ) from None
    finally:
        store.partition.followers.remove(follow)


def _patience(info: RequestInfo) -> float:
    try:
        asked = parse_duration(info.query.get("timeout") or "0") / 1e9
    except ValueError:
        asked = 0.0
    return asked if asked > 0 else TIMEOUT
