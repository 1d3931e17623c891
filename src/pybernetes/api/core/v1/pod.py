"""core/v1: pod.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ...base import Kind, Struct
from ...meta.v1.objectmeta import ObjectMeta
from ...types import (
    Always,
    Enum,
    Int32,
    Int64,
    ListType,
    MapType,
    Patch,
    Pointer,
    Quantity,
    Required,
    Time,
    Union,
)
from .affinity import Affinity, Toleration, TopologySpreadConstraint
from .compute import ResourceRequirements
from .container import Container, ContainerStatus, EphemeralContainer
from .reference import LocalObjectReference, ObjectReference
from .security import PodSecurityContext
from .volume import Volume


class Pod(Kind):
    """Containers that live and die together on one node."""

    spec: Annotated[PodSpec | None, Always({})] = None
    status: Annotated[PodStatus | None, Always({})] = None


class PodSpec(Struct):
    volumes: Annotated[list[Volume] | None, ListType("map", keys=("name",)), Patch("merge,retainKeys", "name")] = None
    init_containers: Annotated[list[Container] | None, ListType("map", keys=("name",)), Patch("merge", "name")] = None
    containers: Annotated[
        list[Container] | None, Required, Always(None), ListType("map", keys=("name",)), Patch("merge", "name")
    ] = None
    ephemeral_containers: Annotated[
        list[EphemeralContainer] | None, ListType("map", keys=("name",)), Patch("merge", "name")
    ] = None
    restart_policy: Annotated[str | None, Enum("Always", "Never", "OnFailure")] = None
    termination_grace_period_seconds: Annotated[Int64 | None, Pointer] = None
    active_deadline_seconds: Annotated[Int64 | None, Pointer] = None
    dns_policy: Annotated[str | None, Enum("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")] = None
    node_selector: Annotated[dict[str, str] | None, MapType("atomic")] = None
    service_account_name: str | None = None
    service_account: str | None = None
    automount_service_account_token: Annotated[bool | None, Pointer] = None
    node_name: str | None = None
    host_network: bool | None = None
    host_pid: bool | None = field(default=None, name="hostPID")
    host_ipc: bool | None = field(default=None, name="hostIPC")
    share_process_namespace: Annotated[bool | None, Pointer] = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: Annotated[
        list[LocalObjectReference] | None, ListType("map", keys=("name",)), Patch("merge", "name")
    ] = None
    hostname: str | None = None
    subdomain: str | None = None
    affinity: Affinity | None = None
    scheduler_name: str | None = None
    tolerations: Annotated[list[Toleration] | None, ListType("atomic")] = None
    host_aliases: Annotated[list[HostAlias] | None, ListType("map", keys=("ip",)), Patch("merge", "ip")] = None
    priority_class_name: str | None = None
    priority: Annotated[Int32 | None, Pointer] = None
    dns_config: PodDNSConfig | None = None
    readiness_gates: Annotated[list[PodReadinessGate] | None, ListType("atomic")] = None
    runtime_class_name: Annotated[str | None, Pointer] = None
    enable_service_links: Annotated[bool | None, Pointer] = None
    preemption_policy: Annotated[str | None, Pointer, Enum("Never", "PreemptLowerPriority")] = None
    overhead: dict[str, Quantity] | None = None
    topology_spread_constraints: Annotated[
        list[TopologySpreadConstraint] | None,
        ListType("map", keys=("topologyKey", "whenUnsatisfiable")),
        Patch("merge", "topologyKey"),
    ] = None
    set_hostname_as_fqdn: Annotated[bool | None, Pointer] = field(default=None, name="setHostnameAsFQDN")
    os: PodOS | None = None
    host_users: Annotated[bool | None, Pointer] = None
    scheduling_gates: Annotated[
        list[PodSchedulingGate] | None, ListType("map", keys=("name",)), Patch("merge", "name")
    ] = None
    resource_claims: Annotated[
        list[PodResourceClaim] | None, ListType("map", keys=("name",)), Patch("merge,retainKeys", "name")
    ] = None
    resources: ResourceRequirements | None = None
    hostname_override: Annotated[str | None, Pointer] = None
    scheduling_group: PodSchedulingGroup | None = None


class PodStatus(Struct):
    observed_generation: Int64 | None = None
    phase: Annotated[str | None, Enum("Failed", "Pending", "Running", "Succeeded", "Unknown")] = None
    conditions: Annotated[list[PodCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = None
    message: str | None = None
    reason: str | None = None
    nominated_node_name: str | None = None
    host_ip: str | None = field(default=None, name="hostIP")
    host_ips: Annotated[list[HostIP] | None, ListType("atomic"), Patch("merge", "ip")] = field(
        default=None, name="hostIPs"
    )
    pod_ip: str | None = field(default=None, name="podIP")
    pod_ips: Annotated[list[PodIP] | None, ListType("map", keys=("ip",)), Patch("merge", "ip")] = field(
        default=None, name="podIPs"
    )
    start_time: Time | None = None
    init_container_statuses: Annotated[list[ContainerStatus] | None, ListType("atomic")] = None
    container_statuses: Annotated[list[ContainerStatus] | None, ListType("atomic")] = None
    qos_class: Annotated[str | None, Enum("BestEffort", "Burstable", "Guaranteed")] = None
    ephemeral_container_statuses: Annotated[list[ContainerStatus] | None, ListType("atomic")] = None
    resize: str | None = None
    resource_claim_statuses: Annotated[
        list[PodResourceClaimStatus] | None, ListType("map", keys=("name",)), Patch("merge,retainKeys", "name")
    ] = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: dict[str, Quantity] | None = None
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: Annotated[
        list[NodeAllocatableResourceClaimStatus] | None, ListType("atomic")
    ] = None


class PodCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    observed_generation: Int64 | None = None
    status: Annotated[str | None, Required, Always("")] = None
    last_probe_time: Annotated[Time | None, Always(None)] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None


class PodIP(Struct):
    ip: Annotated[str | None, Required, Always("")] = None


class HostIP(Struct):
    ip: Annotated[str | None, Required, Always("")] = None


class HostAlias(Struct):
    ip: Annotated[str | None, Required, Always("")] = None
    hostnames: Annotated[list[str] | None, ListType("atomic")] = None


class PodDNSConfig(Struct):
    nameservers: Annotated[list[str] | None, ListType("atomic")] = None
    searches: Annotated[list[str] | None, ListType("atomic")] = None
    options: Annotated[list[PodDNSConfigOption] | None, ListType("atomic")] = None


class PodDNSConfigOption(Struct):
    name: str | None = None
    value: Annotated[str | None, Pointer] = None


class PodOS(Struct):
    name: Annotated[str | None, Required, Always("")] = None


class PodReadinessGate(Struct):
    condition_type: Annotated[str | None, Required, Always("")] = None


class PodSchedulingGate(Struct):
    name: Annotated[str | None, Required, Always("")] = None


class PodSchedulingGroup(Struct):
    union: ClassVar = Union(None, {"podGroupName": "PodGroupName"})

    pod_group_name: Annotated[str | None, Pointer] = None


class PodResourceClaim(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    resource_claim_name: Annotated[str | None, Pointer] = None
    resource_claim_template_name: Annotated[str | None, Pointer] = None


class PodResourceClaimStatus(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    resource_claim_name: Annotated[str | None, Pointer] = None


class PodExtendedResourceClaimStatus(Struct):
    request_mappings: Annotated[
        list[ContainerExtendedResourceRequest] | None, Required, Always(None), ListType("atomic")
    ] = None
    resource_claim_name: Annotated[str | None, Required, Always("")] = None


class ContainerExtendedResourceRequest(Struct):
    container_name: Annotated[str | None, Required, Always("")] = None
    resource_name: Annotated[str | None, Required, Always("")] = None
    request_name: Annotated[str | None, Required, Always("")] = None


class NodeAllocatableResourceClaimStatus(Struct):
    resource_claim_name: Annotated[str | None, Required, Always("")] = None
    containers: Annotated[list[str] | None, ListType("set")] = None
    resources: Annotated[dict[str, Quantity] | None, Required, Always(None)] = None


class PodTemplate(Kind):
    """A pod to be made, kept as an object."""

    template: Annotated[PodTemplateSpec | None, Always({})] = None


class PodTemplateSpec(Struct):
    metadata: Annotated[ObjectMeta | None, Always({})] = None
    spec: Annotated[PodSpec | None, Always({})] = None


class Binding(Kind):
    """The scheduler's verdict: this pod goes to that node."""

    target: Annotated[ObjectReference | None, Required, Always({})] = None
