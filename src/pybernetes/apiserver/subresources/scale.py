"""`scale`: how many replicas, the same question for every kind that has them."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api import labels
from pybernetes.api.autoscaling.v1 import Scale, ScaleSpec, ScaleStatus
from pybernetes.api.autoscaling.validation import validate_scale
from pybernetes.api.errors import BadRequest, Invalid
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.scheme import encoder

from ..http import Request, Response
from ..negotiation import patch_type
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..verbs.decoding import field_manager
from ..verbs.options import write_options
from ..verbs.patch import patcher
from ..verbs.writing import context_for, update_object, write_object
from .body import answer_object, decode_body

API_VERSION = "autoscaling/v1"


async def scale(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Read, replace or patch the scale of an object."""
    info = request.info
    if info.verb == "get":
        item = await store.get(info.namespace, info.name)
        return answer_object(request, scale_of(store.decode(item)), API_VERSION)
    patching = info.verb == "patch"
    options = write_options(info.query, "PatchOptions" if patching else "UpdateOptions")
    manager = options.field_manager or field_manager(request)
    context = context_for(registry, request, dry_run=options.dry_run, field_manager=manager)
    apply = patcher(patch_type(request.headers), request.body, Scale) if patching else None

    async def change(obj: Any) -> Any:
        before = scale_of(obj)
        body = None
        if apply is not None:
            before.kind, before.api_version = "Scale", API_VERSION
            body = msgspec.json.encode(apply(msgspec.json.decode(encoder.encode(before))))
        wanted = decode_body(request, Scale, API_VERSION, options.field_validation, body)
        _check(wanted, obj, info.name, store)
        old = store.decode(await store.get(info.namespace, info.name))
        obj.spec.replicas = (wanted.spec.replicas if wanted.spec else None) or 0
        context.subresource = ""  # to the object it is an ordinary update of its spec
        return await update_object(store, obj, old, context)

    item = await write_object(store, info.name, change, context)
    return answer_object(request, scale_of(store.decode(item)), API_VERSION)


def scale_of(obj: Any) -> Scale:
    """The scale of a Deployment, ReplicaSet, StatefulSet or ReplicationController."""
    meta = obj.metadata
    selector = obj.spec.selector
    if isinstance(selector, dict):  # a ReplicationController's
        text = str(labels.from_set(selector))
    else:
        text = str(labels.from_label_selector(selector)) if selector is not None else ""
    return Scale(
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=meta.creation_timestamp,
        ),
        spec=ScaleSpec(replicas=obj.spec.replicas or None),
        status=ScaleStatus(replicas=(obj.status.replicas if obj.status else None) or 0, selector=text or None),
    )


def _check(wanted: Scale, obj: Any, name: str, store: ResourceStore) -> None:
    meta = wanted.metadata
    if meta is not None:
        if meta.name and meta.name != name:
            raise BadRequest(f"the name of the object ({meta.name}) does not match the name on the URL ({name})")
        if meta.namespace and meta.namespace != obj.metadata.namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        if meta.uid and meta.uid != obj.metadata.uid:
            why = f"Precondition failed: UID in precondition: {meta.uid}, UID in object meta: {obj.metadata.uid}"
            raise store.conflict(name, why)
        if meta.resource_version and meta.resource_version != obj.metadata.resource_version:
            raise store.conflict(name)
    meta = wanted.metadata = meta or ObjectMeta()
    meta.name, meta.namespace = name, obj.metadata.namespace
    errors = validate_scale(wanted)
    if errors:
        raise Invalid("autoscaling", "Scale", name, errors)
