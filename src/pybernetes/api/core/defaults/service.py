"""Defaults for Services; addresses and ports come later, from the allocators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..v1.service import (
    ClientIPConfig,
    Service,
    ServicePort,
    ServiceSpec,
    SessionAffinityConfig,
)

AFFINITY_SECONDS: Final = 10_800
"""How long a client sticks to its endpoint unless it says otherwise: three hours."""

_ROUTED: Final = ("ClusterIP", "NodePort", "LoadBalancer")


def default_service(obj: Service) -> None:
    """Type, affinity, policies and the parts of each port."""
    spec = obj.spec
    if spec is None:
        spec = obj.spec = ServiceSpec()
    if not spec.session_affinity:
        spec.session_affinity = "None"
    if spec.session_affinity == "None":
        spec.session_affinity_config = None
    elif spec.session_affinity == "ClientIP":
        config = spec.session_affinity_config
        if config is None or config.client_ip is None or config.client_ip.timeout_seconds is None:
            config = SessionAffinityConfig(client_ip=ClientIPConfig(timeout_seconds=AFFINITY_SECONDS))
            spec.session_affinity_config = config
    if not spec.type:
        spec.type = "ClusterIP"
    for port in spec.ports or ():
        _default_port(port)
    if not spec.external_traffic_policy and externally_accessible(spec):
        spec.external_traffic_policy = "Cluster"
    if spec.internal_traffic_policy is None and spec.type in _ROUTED:
        spec.internal_traffic_policy = "Cluster"
    if spec.type == "LoadBalancer":
        if spec.allocate_load_balancer_node_ports is None:
            spec.allocate_load_balancer_node_ports = True
        balancer = obj.status.load_balancer if obj.status else None
        for ingress in (balancer and balancer.ingress) or ():
            if ingress.ip and ingress.ip_mode is None:
                ingress.ip_mode = "VIP"


def _default_port(port: ServicePort) -> None:
    if not port.protocol:
        port.protocol = "TCP"
    if not port.target_port:
        port.target_port = port.port


def externally_accessible(spec: ServiceSpec) -> bool:
    """Whether clients outside the cluster can reach it."""
    return spec.type in ("LoadBalancer", "NodePort") or (spec.type == "ClusterIP" and bool(spec.external_ips))


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"Service": default_service}
