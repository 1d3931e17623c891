"""A scheduler gives a pod to a node: `pods/binding`, and POST of a Binding, the older way.

The node's name is written once and never changed.
"""

from __future__ import annotations

from typing import Any

from pybernetes.api.core.binding import assign_pod
from pybernetes.api.core.v1 import Binding
from pybernetes.api.core.validation.pod import validate_pod_binding
from pybernetes.api.errors import BadRequest, Invalid
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resources import Resource
from pybernetes.net.http import Request, Response

from ..pipeline.context import context_for
from ..pipeline.metadata import precondition_failed
from ..pipeline.options import write_options
from ..pipeline.persist import write_object
from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from ..registry.strategy import Context
from .body import admit_body, check_namespace, check_place, decode_body, success


async def bind(registry: Registry, store: ResourceStore, request: Request) -> Response:
    """Answer 201 with a Status when the pod has its node."""
    options = write_options(request.info.query, "CreateOptions")
    binding = decode_body(request, Binding, "v1", options.field_validation)
    check_place(binding.metadata, request, "Binding")
    resource = store.resource
    binding = await admit_body(registry, request, resource, binding, "v1", dry_run=options.dry_run, options=options)
    context = context_for(registry, request, dry_run=options.dry_run)
    context.subresource = "binding"
    await assign(store, request.info.name, binding, context)
    return success(request)


async def bindings(registry: Registry, resource: Resource, request: Request) -> Response:
    """Bind the pod that the body names."""
    options = write_options(request.info.query, "CreateOptions")
    binding = decode_body(request, Binding, "v1", options.field_validation)
    check_namespace(binding.metadata, request)
    name = binding.metadata.name if binding.metadata else None
    if not name:
        raise BadRequest("Name parameter required.")
    binding = await admit_body(registry, request, resource, binding, "v1", dry_run=options.dry_run, options=options)
    context = context_for(registry, request, dry_run=options.dry_run)
    context.subresource = "binding"
    await assign(registry.store("", "v1", "pods"), name, binding, context)
    return success(request)


async def assign(store: ResourceStore, name: str, binding: Binding, context: Context) -> None:
    """Write the node into the pod, with the annotations of the binding and the condition PodScheduled."""
    errors = validate_pod_binding(binding)
    if errors:
        raise Invalid("", "Binding", name, errors)
    meta = binding.metadata or ObjectMeta()

    async def change(pod: Any) -> Any:
        present = pod.metadata
        for what, wanted, found in (
            ("UID", meta.uid, present.uid),
            ("ResourceVersion", meta.resource_version, present.resource_version),
        ):
            if wanted and wanted != found:
                raise precondition_failed(store, context.namespace, name, what, wanted, found)
        assign_pod(pod, binding, context.now)
        return pod

    await write_object(store, name, change, context)
