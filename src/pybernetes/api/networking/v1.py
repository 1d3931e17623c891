"""The kinds of networking/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ..base import Kind, Struct
from ..core.v1.reference import TypedLocalObjectReference
from ..meta.v1.labelselector import LabelSelector
from ..meta.v1.objectmeta import Condition
from ..types import Always, Enum, Int32, IntOrString, ListType, MapType, Patch, Pointer, Required


class IPAddress(Kind):
    """An address that a service has taken."""

    spec: Annotated[IPAddressSpec | None, Required, Always({})] = None


class IPAddressSpec(Struct):
    parent_ref: Annotated[ParentReference | None, Required] = None


class ParentReference(Struct):
    group: str | None = None
    resource: Annotated[str | None, Required] = None
    namespace: str | None = None
    name: Annotated[str | None, Required] = None


class Ingress(Kind):
    """HTTP routes from outside to services."""

    spec: Annotated[IngressSpec | None, Always({})] = None
    status: Annotated[IngressStatus | None, Always({})] = None


class IngressSpec(Struct):
    ingress_class_name: Annotated[str | None, Pointer] = None
    default_backend: IngressBackend | None = None
    tls: Annotated[list[IngressTLS] | None, ListType("atomic")] = None
    rules: Annotated[list[IngressRule] | None, ListType("atomic")] = None


class IngressBackend(Struct):
    service: IngressServiceBackend | None = None
    resource: TypedLocalObjectReference | None = None


class IngressServiceBackend(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    port: Annotated[ServiceBackendPort | None, Always({})] = None


class ServiceBackendPort(Struct):
    map_type: ClassVar = MapType("atomic")

    name: str | None = None
    number: Int32 | None = None


class IngressTLS(Struct):
    hosts: Annotated[list[str] | None, ListType("atomic")] = None
    secret_name: str | None = None


class IngressRule(Struct):
    host: str | None = None
    http: HTTPIngressRuleValue | None = None


class HTTPIngressRuleValue(Struct):
    paths: Annotated[list[HTTPIngressPath] | None, Required, Always(None), ListType("atomic")] = None


class HTTPIngressPath(Struct):
    path: str | None = None
    path_type: Annotated[str | None, Required, Always(None), Enum("Exact", "ImplementationSpecific", "Prefix")] = None
    backend: Annotated[IngressBackend | None, Required, Always({})] = None


class IngressStatus(Struct):
    load_balancer: Annotated[IngressLoadBalancerStatus | None, Always({})] = None


class IngressLoadBalancerStatus(Struct):
    ingress: Annotated[list[IngressLoadBalancerIngress] | None, ListType("atomic")] = None


class IngressLoadBalancerIngress(Struct):
    ip: str | None = None
    hostname: str | None = None
    ports: Annotated[list[IngressPortStatus] | None, ListType("atomic")] = None


class IngressPortStatus(Struct):
    port: Annotated[Int32 | None, Required, Always(0)] = None
    protocol: Annotated[str | None, Required, Always(""), Enum("SCTP", "TCP", "UDP")] = None
    error: Annotated[str | None, Pointer] = None


class IngressClass(Kind):
    """Which controller implements an Ingress."""

    spec: Annotated[IngressClassSpec | None, Always({})] = None


class IngressClassSpec(Struct):
    controller: str | None = None
    parameters: IngressClassParametersReference | None = None


class IngressClassParametersReference(Struct):
    api_group: Annotated[str | None, Pointer] = None
    kind: Annotated[str | None, Required, Always("")] = None
    name: Annotated[str | None, Required, Always("")] = None
    scope: Annotated[str | None, Always(None)] = None
    namespace: Annotated[str | None, Pointer] = None


class NetworkPolicy(Kind):
    """Who may talk to the pods it selects."""

    spec: Annotated[NetworkPolicySpec | None, Always({})] = None


class NetworkPolicySpec(Struct):
    pod_selector: Annotated[LabelSelector | None, Always({})] = None
    ingress: Annotated[list[NetworkPolicyIngressRule] | None, ListType("atomic")] = None
    egress: Annotated[list[NetworkPolicyEgressRule] | None, ListType("atomic")] = None
    policy_types: Annotated[list[str] | None, Enum("Egress", "Ingress"), ListType("atomic")] = None


class NetworkPolicyIngressRule(Struct):
    ports: Annotated[list[NetworkPolicyPort] | None, ListType("atomic")] = None
    from_: Annotated[list[NetworkPolicyPeer] | None, ListType("atomic")] = None


class NetworkPolicyPort(Struct):
    protocol: Annotated[str | None, Pointer, Enum("SCTP", "TCP", "UDP")] = None
    port: IntOrString | None = None
    end_port: Annotated[Int32 | None, Pointer] = None


class NetworkPolicyPeer(Struct):
    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    ip_block: IPBlock | None = None


class IPBlock(Struct):
    cidr: Annotated[str | None, Required, Always("")] = None
    except_: Annotated[list[str] | None, ListType("atomic")] = None


class NetworkPolicyEgressRule(Struct):
    ports: Annotated[list[NetworkPolicyPort] | None, ListType("atomic")] = None
    to: Annotated[list[NetworkPolicyPeer] | None, ListType("atomic")] = None


class ServiceCIDR(Kind):
    """A range that services get their addresses from."""

    spec: Annotated[ServiceCIDRSpec | None, Always({})] = None
    status: Annotated[ServiceCIDRStatus | None, Always({})] = None


class ServiceCIDRSpec(Struct):
    cidrs: Annotated[list[str] | None, ListType("atomic")] = None


class ServiceCIDRStatus(Struct):
    conditions: Annotated[list[Condition] | None, ListType("map", keys=("type",)), Patch("merge", "type")] = None
