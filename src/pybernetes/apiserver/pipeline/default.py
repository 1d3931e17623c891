"""From the body of a create to an object with its defaults and managed fields: worked out once for each body.

Controllers send the same body again and again: the pods of a ReplicaSet, of a Job, of a DaemonSet. What is made of a
body before admission (decoding, finding unknown fields, canonical forms, defaults, who owns what) depends on the
body, the kind and the manager alone, all but the time in the one entry of managed fields. So a body that comes a second
time is kept together with the encoded object it became, and decoding that is all that the third one costs.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import msgspec

from pybernetes.api.meta.v1 import ManagedFieldsEntry, ObjectMeta
from pybernetes.net.http import Request

from ..bodies import as_json, decode_json
from ..registry.managed_fields import track
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context

MOST = 128  # bodies that are kept; the oldest goes first
LONGEST = 16 << 10  # bytes of a body worth keeping

_encode = msgspec.json.Encoder().encode


class Prepared(msgspec.Struct, frozen=True, gc=False):
    """A prepared body: the object without its managed fields, and their single entry."""

    encoded: bytes
    entry: ManagedFieldsEntry
    warnings: list[str]


def prepared(store: ResourceStore, request: Request, validation: str, context: Context) -> Any:
    """The object of a create's body, in the version it is stored as. Raises BadRequest.

    What may be tolerated becomes a warning.
    """
    json, repeated = as_json(request, store.resource.kind, store.resource.api_version)
    if store.custom is not None:
        obj = store.custom.read(json, validation, context.warnings, repeated)
        obj.metadata.deletion_timestamp = obj.metadata.deletion_grace_period_seconds = None
        track(store, obj, None, context)
        return obj
    key = (validation, context.field_manager, json)
    known = store.prepared.get(key)
    if known is not None:
        obj = store.decode_bytes(known.encoded)
        obj.metadata.managed_fields = [msgspec.structs.replace(known.entry, time=context.now)]
        context.warnings.extend(known.warnings)
        return obj
    before = len(context.warnings)
    obj = decode_json(store.resource, json, validation, context.warnings, repeated)
    obj = store.to_storage(obj)
    store.strategy.default(obj)
    if obj.metadata is None:
        obj.metadata = ObjectMeta()
    obj.metadata.deletion_timestamp = obj.metadata.deletion_grace_period_seconds = (
        None  # dropped fields have no manager
    )
    track(store, obj, None, context)
    if len(json) <= LONGEST and not repeated:
        _remember(store, key, obj, context.warnings[before:])
    return obj


def _remember(store: ResourceStore, key: tuple[str, str, bytes], obj: Any, warnings: list[str]) -> None:
    known = store.prepared
    if key not in known:
        if len(known) >= MOST:
            del known[next(iter(known))]
        known[key] = None  # it came once; most never come again
        return
    entries = obj.metadata.managed_fields
    if entries is None or len(entries) != 1:
        return
    obj.metadata.managed_fields = None
    encoded = _encode(obj)
    if store.decode_bytes(encoded) == obj:
        known[key] = Prepared(encoded, copy(entries[0]), warnings)
    obj.metadata.managed_fields = entries
