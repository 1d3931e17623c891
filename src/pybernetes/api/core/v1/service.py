"""core/v1: service.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from ...base import Kind, Struct
from ...meta.v1.objectmeta import Condition
from ...types import Always, Default, Enum, Int32, IntOrString, ListType, MapType, Patch, Pointer, Required
from .reference import ObjectReference


class Service(Kind):
    """A stable name and address for a changing set of pods."""

    spec: Annotated[ServiceSpec | None, Always({})] = None
    status: Annotated[ServiceStatus | None, Always({})] = None


class ServiceSpec(Struct):
    ports: Annotated[list[ServicePort] | None, ListType("map", keys=("port", "protocol")), Patch("merge", "port")] = (
        None
    )
    selector: Annotated[dict[str, str] | None, MapType("atomic")] = None
    cluster_ip: str | None = field(default=None, name="clusterIP")
    cluster_ips: Annotated[list[str] | None, ListType("atomic")] = field(default=None, name="clusterIPs")
    type: Annotated[str | None, Enum("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")] = None
    external_ips: Annotated[list[str] | None, ListType("atomic")] = field(default=None, name="externalIPs")
    session_affinity: Annotated[str | None, Enum("ClientIP", "None")] = None
    load_balancer_ip: str | None = field(default=None, name="loadBalancerIP")
    load_balancer_source_ranges: Annotated[list[str] | None, ListType("atomic")] = None
    external_name: str | None = None
    external_traffic_policy: Annotated[str | None, Enum("Cluster", "Local")] = None
    health_check_node_port: Int32 | None = None
    publish_not_ready_addresses: bool | None = None
    session_affinity_config: SessionAffinityConfig | None = None
    ip_families: Annotated[list[str] | None, Enum("", "IPv4", "IPv6"), ListType("atomic")] = None
    ip_family_policy: Annotated[str | None, Pointer, Enum("PreferDualStack", "RequireDualStack", "SingleStack")] = None
    allocate_load_balancer_node_ports: Annotated[bool | None, Pointer] = None
    load_balancer_class: Annotated[str | None, Pointer] = None
    internal_traffic_policy: Annotated[str | None, Pointer, Enum("Cluster", "Local")] = None
    traffic_distribution: Annotated[str | None, Pointer] = None


class ServiceStatus(Struct):
    load_balancer: Annotated[LoadBalancerStatus | None, Always({})] = None
    conditions: Annotated[list[Condition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = None


class ServicePort(Struct):
    name: str | None = None
    protocol: Annotated[str | None, Default("TCP"), Enum("SCTP", "TCP", "UDP")] = None
    app_protocol: Annotated[str | None, Pointer] = None
    port: Annotated[Int32 | None, Required, Always(0)] = None
    target_port: Annotated[IntOrString | None, Always(0)] = None
    node_port: Int32 | None = None


class SessionAffinityConfig(Struct):
    client_ip: ClientIPConfig | None = field(default=None, name="clientIP")


class ClientIPConfig(Struct):
    timeout_seconds: Annotated[Int32 | None, Pointer] = None


class LoadBalancerStatus(Struct):
    ingress: Annotated[list[LoadBalancerIngress] | None, ListType("atomic")] = None


class LoadBalancerIngress(Struct):
    ip: str | None = None
    hostname: str | None = None
    ip_mode: Annotated[str | None, Pointer] = None
    ports: Annotated[list[PortStatus] | None, ListType("atomic")] = None


class PortStatus(Struct):
    port: Annotated[Int32 | None, Required, Always(0)] = None
    protocol: Annotated[str | None, Required, Always(""), Enum("SCTP", "TCP", "UDP")] = None
    error: Annotated[str | None, Pointer] = None


class Endpoints(Kind):
    """Where a service is reachable; EndpointSlice took its place."""

    subsets: Annotated[list[EndpointSubset] | None, ListType("atomic")] = None


class EndpointSubset(Struct):
    addresses: Annotated[list[EndpointAddress] | None, ListType("atomic")] = None
    not_ready_addresses: Annotated[list[EndpointAddress] | None, ListType("atomic")] = None
    ports: Annotated[list[EndpointPort] | None, ListType("atomic")] = None


class EndpointAddress(Struct):
    map_type: ClassVar = MapType("atomic")

    ip: Annotated[str | None, Required, Always("")] = None
    hostname: str | None = None
    node_name: Annotated[str | None, Pointer] = None
    target_ref: ObjectReference | None = None


class EndpointPort(Struct):
    map_type: ClassVar = MapType("atomic")

    name: str | None = None
    port: Annotated[Int32 | None, Required, Always(0)] = None
    protocol: Annotated[str | None, Enum("SCTP", "TCP", "UDP")] = None
    app_protocol: Annotated[str | None, Pointer] = None
