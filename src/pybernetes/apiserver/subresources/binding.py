"""`binding`: a scheduler gives a pod to a node. The node's name is written once and never changed."""

from __future__ import annotations

from typing import Any

from pybernetes.api.core.binding import assign_pod
from pybernetes.api.core.v1 import Binding
from pybernetes.api.core.validation.pod import validate_pod_binding
from pybernetes.api.errors import BadRequest, Invalid

from ..http import Request, Response
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context
from ..verbs.options import write_options
from ..verbs.writing import context_for, write_object
from .body import decode_body, success


async def bind(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer 201 with a Status when the pod has its node."""
    options = write_options(request.info.query, "CreateOptions")
    binding = decode_body(request, Binding, "v1", options.field_validation)
    said, name = (binding.metadata.name if binding.metadata else None) or "", request.info.name
    if said != name:
        raise BadRequest(f"the name of the object ({said}) does not match the name on the URL ({name})")
    context = context_for(registry, request, dry_run=options.dry_run)
    context.subresource = "binding"
    await assign(store, name, binding, context)
    return success(request)


async def assign(store: ResourceStore, name: str, binding: Binding, context: Context) -> None:
    """Write the node into the pod, with the annotations of the binding and the condition PodScheduled."""
    errors = validate_pod_binding(binding)
    if errors:
        raise Invalid("", "Binding", name, errors)
    uid = binding.metadata.uid if binding.metadata else None

    async def change(pod: Any) -> Any:
        if uid and uid != pod.metadata.uid:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod.metadata.uid}"
            raise store.conflict(name, why)
        assign_pod(pod, binding, context.now)
        return pod

    await write_object(store, name, change, context)
