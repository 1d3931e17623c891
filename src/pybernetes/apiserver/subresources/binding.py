"""`binding`: a scheduler gives a pod to a node. The node's name is written once and never changed."""

from __future__ import annotations

from typing import Any

from pybernetes.api.core.v1 import Binding, PodCondition, PodStatus
from pybernetes.api.errors import Invalid
from pybernetes.api.field import FieldError, invalid, not_supported, required

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
    name = request.info.name or (binding.metadata.name if binding.metadata else "") or ""
    context = context_for(registry, request, dry_run=options.dry_run)
    context.subresource = "binding"
    await assign(store, name, binding, context)
    return success(request)


async def assign(store: ResourceStore, name: str, binding: Binding, context: Context) -> None:
    """Write the node into the pod, with the annotations of the binding and the condition PodScheduled."""
    errors = validate(binding)
    if errors:
        raise Invalid("", "Binding", name, errors)
    assert binding.target is not None
    node = binding.target.name or ""
    meta = binding.metadata

    async def change(pod: Any) -> Any:
        if meta and meta.uid and meta.uid != pod.metadata.uid:
            why = f"Precondition failed: UID in precondition: {meta.uid}, UID in object meta: {pod.metadata.uid}"
            raise store.conflict(name, why)
        if pod.metadata.deletion_timestamp:
            raise store.conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
        if pod.spec.node_name:
            raise store.conflict(name, f'pod {name} is already assigned to node "{pod.spec.node_name}"')
        if pod.spec.scheduling_gates:
            raise store.conflict(name, f"pod {name} has non-empty .spec.schedulingGates")
        pod.spec.node_name = node
        if meta and meta.annotations:
            pod.metadata.annotations = {**(pod.metadata.annotations or {}), **meta.annotations}
        if meta and meta.labels:
            pod.metadata.labels = {**(pod.metadata.labels or {}), **meta.labels}
        pod.status = pod.status or PodStatus()
        kept = [each for each in pod.status.conditions or () if each.type != "PodScheduled"]
        now = PodCondition(type="PodScheduled", status="True", last_transition_time=context.now)
        now.observed_generation = pod.metadata.generation
        pod.status.conditions = [*kept, now]
        return pod

    await write_object(store, name, change, context)


def validate(binding: Binding) -> list[FieldError]:
    """What is wrong with a binding."""
    target = binding.target
    errors: list[FieldError] = []
    if target is None or not target.name:
        errors.append(required("target.name"))
    if target is not None and target.kind and target.kind != "Node":
        errors.append(not_supported("target.kind", target.kind, ("Node", "<empty>")))
    if target is not None and target.name and "/" in target.name:
        errors.append(invalid("target.name", target.name, "may not contain '/'"))
    return errors
