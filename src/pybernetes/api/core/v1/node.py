"""core/v1: node.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ...base import Kind, Struct
from ...types import Always, Enum, Int32, Int64, ListType, Patch, Pointer, Quantity, Required, Time
from .affinity import Taint


class Node(Kind):
    """A machine that runs pods."""

    spec: Annotated[NodeSpec | None, Always({})] = None
    status: Annotated[NodeStatus | None, Always({})] = None


class NodeSpec(Struct):
    pod_cidr: str | None = field(default=None, name="podCIDR")
    pod_cidrs: Annotated[list[str] | None, ListType("set"), Patch("merge")] = field(default=None, name="podCIDRs")
    provider_id: str | None = field(default=None, name="providerID")
    unschedulable: bool | None = None
    taints: Annotated[list[Taint] | None, ListType("atomic")] = None
    config_source: NodeConfigSource | None = None
    external_id: str | None = field(default=None, name="externalID")


class NodeStatus(Struct):
    capacity: dict[str, Quantity] | None = None
    allocatable: dict[str, Quantity] | None = None
    phase: Annotated[str | None, Enum("Pending", "Running", "Terminated")] = None
    conditions: Annotated[list[NodeCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = None
    addresses: Annotated[list[NodeAddress] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = None
    daemon_endpoints: Annotated[NodeDaemonEndpoints | None, Always({})] = None
    node_info: Annotated[NodeSystemInfo | None, Always({})] = None
    images: Annotated[list[ContainerImage] | None, ListType("atomic")] = None
    volumes_in_use: Annotated[list[str] | None, ListType("atomic")] = None
    volumes_attached: Annotated[list[AttachedVolume] | None, ListType("atomic")] = None
    config: NodeConfigStatus | None = None
    runtime_handlers: Annotated[list[NodeRuntimeHandler] | None, ListType("atomic")] = None
    features: NodeFeatures | None = None
    declared_features: Annotated[list[str] | None, ListType("atomic")] = None


class NodeCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_heartbeat_time: Annotated[Time | None, Always(None)] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None


class NodeAddress(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    address: Annotated[str | None, Required, Always("")] = None


class NodeDaemonEndpoints(Struct):
    kubelet_endpoint: Annotated[DaemonEndpoint | None, Always({})] = None


class DaemonEndpoint(Struct):
    port: Annotated[Int32 | None, Required, Always(0)] = field(default=None, name="Port")


class NodeSystemInfo(Struct):
    machine_id: Annotated[str | None, Required, Always("")] = field(default=None, name="machineID")
    system_uuid: Annotated[str | None, Required, Always("")] = field(default=None, name="systemUUID")
    boot_id: Annotated[str | None, Required, Always("")] = field(default=None, name="bootID")
    kernel_version: Annotated[str | None, Required, Always("")] = None
    os_image: Annotated[str | None, Required, Always("")] = None
    container_runtime_version: Annotated[str | None, Required, Always("")] = None
    kubelet_version: Annotated[str | None, Required, Always("")] = None
    kube_proxy_version: Annotated[str | None, Required, Always("")] = None
    operating_system: Annotated[str | None, Required, Always("")] = None
    architecture: Annotated[str | None, Required, Always("")] = None
    swap: NodeSwapStatus | None = None


class NodeSwapStatus(Struct):
    capacity: Annotated[Int64 | None, Pointer] = None


class NodeFeatures(Struct):
    supplemental_groups_policy: Annotated[bool | None, Pointer] = None


class NodeRuntimeHandler(Struct):
    name: Annotated[str | None, Always("")] = None
    features: NodeRuntimeHandlerFeatures | None = None


class NodeRuntimeHandlerFeatures(Struct):
    recursive_read_only_mounts: Annotated[bool | None, Pointer] = None
    user_namespaces: Annotated[bool | None, Pointer] = None


class AttachedVolume(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    device_path: Annotated[str | None, Required, Always("")] = None


class ContainerImage(Struct):
    names: Annotated[list[str] | None, Always(None), ListType("atomic")] = None
    size_bytes: Int64 | None = None


class NodeConfigSource(Struct):
    config_map: ConfigMapNodeConfigSource | None = None


class NodeConfigStatus(Struct):
    assigned: NodeConfigSource | None = None
    active: NodeConfigSource | None = None
    last_known_good: NodeConfigSource | None = None
    error: str | None = None


class ConfigMapNodeConfigSource(Struct):
    namespace: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None
    uid: str | None = None
    resource_version: str | None = None
    kubelet_config_key: Annotated[str | None, Required, Always("")] = None
