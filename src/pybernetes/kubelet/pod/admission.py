"""Whether the node can take a pod that was given to it. The scheduler has looked, but at another moment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pybernetes.api.core.nodeaffinity import required_affinity_matches
from pybernetes.api.core.podrequests import pod_requests
from pybernetes.api.core.podresources import Quantities, parsed
from pybernetes.api.core.resourcenames import is_extended
from pybernetes.api.core.tolerations import untolerated_taint
from pybernetes.api.core.v1 import Node, NodeSpec, NodeStatus, Pod, PodSpec
from pybernetes.api.quantity import Quantity

from .critical import is_static
from .refusal import PodRefused

OUT_OF: Final = "OutOf"
_PORTS: Final = "node(s) didn't have free ports for the requested pod ports"
_AFFINITY: Final = "node(s) didn't match Pod's node affinity/selector"
_TAINTS: Final = "node(s) had taints that the pod didn't tolerate"
_NAME: Final = "node(s) didn't match the requested node name"


def admit(pod: Pod, others: Iterable[Pod], node: Node) -> None:
    """Raises `PodRefused` if the pod cannot run here beside the others."""
    spec, metadata = pod.spec or PodSpec(), pod.metadata
    labels = (metadata.labels if metadata else None) or {}
    if labels.get("kubernetes.io/os", "linux") != "linux":
        message = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
        raise PodRefused("PodOSSelectorNodeLabelDoesNotMatch", message)
    if spec.os is not None and spec.os.name != "linux":
        raise PodRefused("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    features = node.status.features if node.status else None
    policy = spec.security_context.supplemental_groups_policy if spec.security_context else None
    if policy == "Strict" and not (features and features.supplemental_groups_policy):
        message = "SupplementalGroupsPolicy=Strict is not supported in this node"
        raise PodRefused("SupplementalGroupsPolicyNotSupported", message)
    neighbours = list(others)
    fits(pod, neighbours, node)
    if not required_affinity_matches(spec, node):
        raise _failed("NodeAffinity", _AFFINITY)
    if spec.node_name and node.metadata and spec.node_name != node.metadata.name:
        raise _failed("NodeName", _NAME)
    wanted = set(host_ports(spec))
    for other in neighbours:
        if any(_collide(mine, theirs) for mine in wanted for theirs in host_ports(other.spec or PodSpec())):
            raise _failed("NodePorts", _PORTS)
    taints = (node.spec or NodeSpec()).taints or ()
    if not is_static(pod) and untolerated_taint(taints, spec.tolerations or (), ("NoExecute",)) is not None:
        raise _failed("TaintToleration", _TAINTS)


def fits(pod: Pod, others: Iterable[Pod], node: Node) -> None:
    """Raises `PodRefused` if the node has not what the pod requests, beside what the others do."""
    allocatable = parsed((node.status or NodeStatus()).allocatable)
    requested = pod_requests(pod, use_status=False)
    used: Quantities = {}
    count = 0
    for other in others:
        count += 1
        for name, value in pod_requests(other, use_status=False).items():
            used[name] = used[name] + value if name in used else value
    pods = allocatable.get("pods")
    if pods is not None and count + 1 > pods.value():
        raise _out_of("pods", 1, count, pods.value())
    for name, value in requested.items():
        capacity = allocatable.get(name)
        if not value or (capacity is None and is_extended(name)):
            continue  # what no plugin serves (yet) is the device manager's matter
        total = value + used[name] if name in used else value
        if capacity is None or total > capacity:
            raise _out_of(name, *(_number(name, each) for each in (value, used.get(name), capacity)))


def host_ports(spec: PodSpec) -> Iterator[tuple[str, str, int]]:
    """The ports of the node that a pod wants: address, protocol, port."""
    for container in [*(spec.containers or ()), *(spec.init_containers or ())]:
        for port in container.ports or ():
            if port.host_port:
                yield port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port


def _collide(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or "0.0.0.0" in (one[0], other[0]))


def _number(name: str, quantity: Quantity | None) -> int:
    if quantity is None:
        return 0
    return quantity.milli_value() if name == "cpu" else quantity.value()


def _failed(name: str, why: str) -> PodRefused:
    return PodRefused(name, f"Predicate {name} failed: {why}")


def _out_of(name: str, requested: int, used: int, capacity: int) -> PodRefused:
    message = f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
    return PodRefused(OUT_OF + name, message)
