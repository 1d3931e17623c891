"""Defaults for the kinds of networking.k8s.io."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ..meta.v1.labelselector import LabelSelector
from .v1 import (
    Ingress,
    IngressBackend,
    IngressClass,
    IngressClassSpec,
    IngressLoadBalancerStatus,
    IngressSpec,
    IngressStatus,
    IPAddress,
    IPAddressSpec,
    NetworkPolicy,
    NetworkPolicyPort,
    NetworkPolicySpec,
    ServiceBackendPort,
    ServiceCIDR,
    ServiceCIDRSpec,
    ServiceCIDRStatus,
)


def default_network_policy(obj: NetworkPolicy) -> None:
    """A policy is about what comes in, and about what goes out if it says something about it."""
    if obj.spec is None:
        obj.spec = NetworkPolicySpec()
    spec = obj.spec
    if spec.pod_selector is None:
        spec.pod_selector = LabelSelector()
    if not spec.policy_types:
        spec.policy_types = ["Ingress", "Egress"] if spec.egress else ["Ingress"]
    for ingress in spec.ingress or ():
        _default_ports(ingress.ports or ())
    for egress in spec.egress or ():
        _default_ports(egress.ports or ())


def _default_ports(ports: Iterable[NetworkPolicyPort]) -> None:
    for port in ports:
        if port.protocol is None:
            port.protocol = "TCP"


def default_ingress(obj: Ingress) -> None:
    """Nothing has a default; these parts are shown even if they are empty."""
    if obj.spec is None:
        obj.spec = IngressSpec()
    if obj.spec.default_backend is not None:
        _default_backend(obj.spec.default_backend)
    for rule in obj.spec.rules or ():
        for path in (rule.http.paths if rule.http else None) or ():
            if path.backend is None:
                path.backend = IngressBackend()
            _default_backend(path.backend)
    if obj.status is None:
        obj.status = IngressStatus()
    if obj.status.load_balancer is None:
        obj.status.load_balancer = IngressLoadBalancerStatus()


def _default_backend(backend: IngressBackend) -> None:
    if backend.service is not None:
        if backend.service.name is None:
            backend.service.name = ""
        if backend.service.port is None:
            backend.service.port = ServiceBackendPort()


def default_ingress_class(obj: IngressClass) -> None:
    """Parameters are cluster-wide."""
    if obj.spec is None:
        obj.spec = IngressClassSpec()
    if obj.spec.parameters is not None and obj.spec.parameters.scope is None:
        obj.spec.parameters.scope = "Cluster"


def default_ip_address(obj: IPAddress) -> None:
    """The spec is shown even if it is empty."""
    if obj.spec is None:
        obj.spec = IPAddressSpec()


def default_service_cidr(obj: ServiceCIDR) -> None:
    """Spec and status are shown even if they are empty."""
    if obj.spec is None:
        obj.spec = ServiceCIDRSpec()
    if obj.status is None:
        obj.status = ServiceCIDRStatus()


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {
    "Ingress": default_ingress,
    "IngressClass": default_ingress_class,
    "IPAddress": default_ip_address,
    "NetworkPolicy": default_network_policy,
    "ServiceCIDR": default_service_cidr,
}
