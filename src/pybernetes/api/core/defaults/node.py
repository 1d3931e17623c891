"""What Nodes are filled in with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..v1.node import DaemonEndpoint, Node, NodeDaemonEndpoints, NodeSpec, NodeStatus, NodeSystemInfo
from .resources import default_resource_list

_SYSTEM_INFO: Final = (
    "machine_id",
    "system_uuid",
    "boot_id",
    "kernel_version",
    "os_image",
    "container_runtime_version",
    "kubelet_version",
    "kube_proxy_version",
    "operating_system",
    "architecture",
)


def default_node(obj: Node) -> None:
    """What is not reserved can be allocated; what the kubelet did not report is empty."""
    if obj.spec is None:
        obj.spec = NodeSpec()
    spec = obj.spec
    # Old clients know one block only; what they say counts.
    if spec.pod_cidr:
        if not spec.pod_cidrs or spec.pod_cidrs[0] != spec.pod_cidr:
            spec.pod_cidrs = [spec.pod_cidr]
    elif spec.pod_cidrs:
        spec.pod_cidr = spec.pod_cidrs[0]
    if obj.status is None:
        obj.status = NodeStatus()
    status = obj.status
    if status.allocatable is None and status.capacity is not None:
        status.allocatable = dict(status.capacity)
    default_resource_list(status.capacity)
    default_resource_list(status.allocatable)
    if status.daemon_endpoints is None:
        status.daemon_endpoints = NodeDaemonEndpoints()
    if status.daemon_endpoints.kubelet_endpoint is None:
        status.daemon_endpoints.kubelet_endpoint = DaemonEndpoint()
    if status.daemon_endpoints.kubelet_endpoint.port is None:
        status.daemon_endpoints.kubelet_endpoint.port = 0
    if status.node_info is None:
        status.node_info = NodeSystemInfo()
    for name in _SYSTEM_INFO:
        if getattr(status.node_info, name) is None:
            setattr(status.node_info, name, "")


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"Node": default_node}
