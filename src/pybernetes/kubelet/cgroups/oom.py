"""Computes `oom_score_adj`, by which the kernel chooses the process to kill when memory runs out.

BestEffort first, Guaranteed and node-critical pods last; between them a container that asked for much of the machine's
memory is killed later than one that asked for little.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.podrequests import has_pod_level_resources
from pybernetes.api.core.podresources import aggregate_container_requests, is_sidecar, parsed, qos_class
from pybernetes.api.core.v1 import Container, EphemeralContainer, Pod, PodSpec

from ..pod.critical import is_node_critical

GUARANTEED: Final = -997
BEST_EFFORT: Final = 1000


def oom_score_adj(pod: Pod, container: Container | EphemeralContainer, memory_capacity: int) -> int:
    """The adjustment for all processes of a container, from what the pod has been allocated."""
    spec = pod.spec or PodSpec()
    if is_node_critical(pod):
        return GUARANTEED
    qos = qos_class(spec)
    if qos == "Guaranteed":
        return GUARANTEED
    if qos == "BestEffort" or not memory_capacity:
        return BEST_EFFORT
    share = _pod_memory_for_each(spec)
    score = 1000 - 1000 * (_memory(container) + share) // memory_capacity
    if isinstance(container, Container) and is_sidecar(container) and _is_init(spec, container):
        # A sidecar must not be killed before those whom it serves.
        least = min((_memory(each) for each in spec.containers or ()), default=0)
        score = min(score, 1000 - 1000 * (least + share) // memory_capacity)
    return max(1000 + GUARANTEED, min(BEST_EFFORT - 1, score))


def _memory(container: Container | EphemeralContainer) -> int:
    requests = parsed(container.resources.requests if container.resources else None)
    return requests["memory"].value() if "memory" in requests else 0


def _is_init(spec: PodSpec, container: Container) -> bool:
    return any(each.name == container.name for each in spec.init_containers or ())


def _pod_memory_for_each(spec: PodSpec) -> int:
    """The memory that the pod requests beyond its containers, divided among them."""
    if not has_pod_level_resources(spec) or spec.resources is None:
        return 0
    asked = parsed(spec.resources.requests).get("memory")
    if not asked:
        return 0
    containers = aggregate_container_requests(spec).get("memory")
    rest = asked.value() - (containers.value() if containers else 0)
    return rest // (len(spec.containers or ()) + len(spec.init_containers or ()))
