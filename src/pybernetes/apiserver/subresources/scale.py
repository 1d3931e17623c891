"""`scale`: how many replicas, the same question for every kind that has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pybernetes.api import labels
from pybernetes.api.autoscaling.v1 import Scale, ScaleSpec, ScaleStatus
from pybernetes.api.autoscaling.validation import validate_scale
from pybernetes.api.errors import BadRequest, Conflict, InternalError, Invalid
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.managedfields import apply as merge
from pybernetes.api.managedfields import node_of, record_update
from pybernetes.api.managedfields.resetfields import exclude
from pybernetes.api.managedfields.scale import Mappings, to_parent, to_scale
from pybernetes.api.meta.v1 import ManagedFieldsEntry, ObjectMeta
from pybernetes.api.scheme import encoder
from pybernetes.net.http import Request, Response

from ..admission.plugin import UPDATE, Attributes
from ..negotiation import patch_type
from ..pipeline.change import update_object
from ..pipeline.context import context_for
from ..pipeline.metadata import check_name, uid_mismatch
from ..pipeline.options import WriteOptions, manager_of, write_options
from ..pipeline.persist import write_object
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context
from ..verbs.apply import apply_config, check_repeated
from ..verbs.patch import APPLY, decode_patched, patch_options, patcher
from .body import answer_object, decode_body

API_VERSION = "autoscaling/v1"


async def scale(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Read, replace or patch the scale of an object."""
    info = request.info
    if info.verb == "get":
        item = await store.get(info.namespace, info.name)
        return answer_object(request, _read(store, store.decode(item)), API_VERSION, of=store.resource)
    patching = info.verb == "patch"
    kind = patch_type(request.headers, store.custom is not None) if patching else ""
    options = patch_options(info.query, kind) if patching else write_options(info.query, "UpdateOptions")
    context = context_for(registry, request, dry_run=options.dry_run, field_manager=manager_of(request, options))
    applies = kind == APPLY
    apply = _patcher(kind, request, options, context) if patching else None

    async def change(obj: Any) -> Any:
        before = _before(store, obj)
        places: Mappings = {store.resource.api_version: ("f:spec", "f:replicas")}
        if store.custom is not None:
            places = store.custom.scale_places
        owners = to_scale(obj.metadata.managed_fields, places)
        assert before.metadata is not None
        before.metadata.managed_fields = msgspec.convert(owners, list[ManagedFieldsEntry]) or None
        before.kind, before.api_version = "Scale", API_VERSION
        body = msgspec.json.encode(apply(before)) if apply is not None else None
        wanted = decode_body(request, Scale, API_VERSION, options.field_validation, body)
        _check(wanted, obj, info.name, store, patching=patching)
        if wanted.metadata is None or not applies:
            wanted.metadata = wanted.metadata or ObjectMeta()
            wanted.metadata.managed_fields = record_update(
                wanted,
                before,
                manager=context.field_manager,
                api_version=API_VERSION,
                now=context.now,
                subresource="scale",
                reset_fields=exclude("status"),
            )
        attributes = Attributes(
            UPDATE,
            store.storage,
            "scale",
            info.namespace,
            info.name,
            wanted,
            before,
            request.user,
            options.dry_run,
            request.warnings,
            options,
            store.resource,
            (API_VERSION, "Scale"),
        )
        await registry.admission.admit(attributes)
        wanted = attributes.new
        old = store.decode(await store.get(info.namespace, info.name))
        _write(store, obj, (wanted.spec.replicas if wanted.spec else None) or 0)
        obj.metadata.managed_fields = (
            to_parent(
                obj.metadata.managed_fields,
                wanted.metadata.managed_fields,
                places,
                store.resource.api_version,
                plain=False,
            )
            or None
        )
        context.subresource = ""  # to the object it is an ordinary update of its spec
        return await update_object(store, obj, old, context, admitted=attributes)

    item = await write_object(store, info.name, change, context)
    return answer_object(request, _before(store, store.decode(item)), API_VERSION, of=store.resource)


def _read(store: ResourceStore, obj: Any) -> Scale:
    """The scale of any object. Raises InternalError if it does not say how many replicas it wants."""
    made, found = _scale(store, obj)
    if not found:
        raise InternalError(f"the spec replicas field {quote(store.custom.scale.spec_replicas_path)} does not exist")
    return made


def _before(store: ResourceStore, obj: Any) -> Scale:
    """The scale as it is before or after a change, whatever is missing of it."""
    made, found = _scale(store, obj)
    if not found and made.spec is not None:
        from ..extensions.scale import UNSET_REPLICAS

        made.spec.replicas = UNSET_REPLICAS
    return made


def _scale(store: ResourceStore, obj: Any) -> tuple[Scale, bool]:
    """The scale of any object, and whether the object says how many replicas it wants."""
    if store.custom is None:
        return scale_of(obj), True
    from ..extensions import scale as custom

    try:
        return custom.scale_of(obj, store.custom.scale)
    except custom.WrongType as error:
        raise InternalError(str(error)) from None


def _write(store: ResourceStore, obj: Any, replicas: int) -> None:
    if store.custom is None:
        obj.spec.replicas = replicas
        return
    from ..extensions import scale as custom

    path = store.custom.scale.spec_replicas_path
    if replicas == custom.UNSET_REPLICAS:
        raise BadRequest(f"the spec replicas field {quote(path)} cannot be empty")
    try:
        custom.put_replicas(obj, store.custom.scale, replicas)
        store.custom.accept(obj.content)  # where there was nothing around the replicas, its defaults come with it
    except custom.WrongType as error:
        raise InternalError(str(error)) from None


def _patcher(kind: str, request: Request, options: WriteOptions, context: Context) -> Callable[[Scale], Any]:
    """From the present scale to the patched one, as a plain JSON value."""
    if kind == APPLY:
        config, repeated = apply_config(request)

        def merged(before: Scale) -> Any:
            after = merge(
                before,
                config,
                node=node_of(Scale),
                manager=context.field_manager,
                api_version=API_VERSION,
                kind="Scale",
                now=context.now,
                force=bool(options.force),
                subresource="scale",
                reset_fields=exclude("status"),
            )
            check_repeated(repeated, options, context.warnings)
            return after

        return merged
    change = patcher(kind, request.body, Scale)

    def patched(before: Scale) -> Any:
        outcome = change.apply(msgspec.json.decode(encoder.encode(before)))
        return decode_patched(outcome, change, Scale, API_VERSION, options, request.warnings)

    return patched


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


def _check(wanted: Scale, obj: Any, name: str, store: ResourceStore, *, patching: bool) -> None:
    meta, present = wanted.metadata or ObjectMeta(), obj.metadata
    if meta.namespace and meta.namespace != present.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    check_name(wanted.metadata, name)
    if meta.uid and meta.uid != present.uid:
        if not patching:
            raise uid_mismatch(store, present.namespace, name, meta.uid, present.uid)
        if store.custom is None:
            why = f"Precondition failed: UID in precondition: {meta.uid}, UID in object meta: {present.uid}"
            raise Conflict(store.resource.group, f"{store.resource.plural}/scale", name, why)
    if meta.resource_version and meta.resource_version != present.resource_version:
        raise store.conflict(name)
    meta.namespace = present.namespace
    if store.custom is not None:
        return  # its own schema has the say
    errors = validate_scale(wanted)
    if errors:
        raise Invalid("autoscaling", "Scale", name, errors)
