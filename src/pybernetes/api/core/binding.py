"""A scheduler gives a pod to a node: the name of the node is written once and never changed."""

from __future__ import annotations

from ..errors import Conflict
from ..meta.v1.objectmeta import ObjectMeta
from .podconditions import POD_SCHEDULED, update_pod_condition
from .v1.pod import Binding, Pod, PodCondition, PodSpec, PodStatus


def assign_pod(pod: Pod, binding: Binding, now: str) -> None:
    """Write the node into the pod, with the labels and annotations of the binding. Raises Conflict."""
    meta = pod.metadata = pod.metadata or ObjectMeta()
    spec = pod.spec = pod.spec or PodSpec()
    status = pod.status = pod.status or PodStatus()
    name = meta.name or ""
    why = ""
    if meta.deletion_timestamp:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.node_name:
        why = f'pod {name} is already assigned to node "{spec.node_name}"'
    elif spec.scheduling_gates:
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise Conflict("", "pods/binding", name, why)
    spec.node_name = binding.target.name if binding.target is not None else None
    status.nominated_node_name = None
    extra = binding.metadata
    if extra is not None and extra.annotations:
        meta.annotations = {**(meta.annotations or {}), **extra.annotations}
    if extra is not None and extra.labels:
        meta.labels = {**(meta.labels or {}), **extra.labels}
    update_pod_condition(status, PodCondition(type=POD_SCHEDULED, status="True"), now)
