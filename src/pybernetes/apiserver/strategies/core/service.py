"""Services: what changes with the type of a Service, and its addresses and ports from shared pools."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.addresses import warnings_for_cidr, warnings_for_ip
from pybernetes.api.core.defaults.service import externally_accessible
from pybernetes.api.core.v1.service import LoadBalancerStatus, Service, ServiceSpec, ServiceStatus
from pybernetes.api.core.validation.service import TOPOLOGY_HINTS, TOPOLOGY_MODE, needs_health_check
from pybernetes.api.field import Path
from pybernetes.apiserver.registry.allocators.services import Allocation, ServicePools
from pybernetes.apiserver.registry.strategy import Context, Reservation, Strategy

_SPEC: Final = Path("spec")


class ServiceStrategy(Strategy):
    """The pools must be asked before an object is prepared and validated: validation wants to see what was given."""

    allow_create_on_update = True
    returns_deleted = True
    reserves = True

    _pools: ServicePools | None = None

    async def reserve(self, new: Any | None, old: Any | None, context: Context) -> Reservation | None:
        pools = self.pools(context)
        if new is None:
            return _Deletion(pools.release(old), old, context) if old is not None else None
        if context.subresource == "status":
            return None
        return await pools.allocate(new, old, context)

    def pools(self, context: Context) -> ServicePools:
        """The pools of this server, made when first asked for."""
        if self._pools is None:
            self._pools = ServicePools(context.registry)
        return self._pools

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        obj.status = ServiceStatus(load_balancer=LoadBalancerStatus())
        _hide_internal_traffic_policy(obj)

    def prepare_for_update(self, new: Any, old: Any, context: Context) -> None:
        new.status = old.status
        drop_type_dependent_fields(new, old)
        _hide_internal_traffic_policy(new)

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        return service_warnings(obj)

    def warnings_on_update(self, new: Any, old: Any, context: Context) -> list[str]:
        if context.subresource == "status":
            path = Path("status", "loadBalancer", "ingress")
            balancer = new.status.load_balancer if new.status else None
            ingresses = enumerate((balancer and balancer.ingress) or ())
            return [
                text for index, each in ingresses if each.ip for text in warnings_for_ip(path.index(index), each.ip)
            ]
        return service_warnings(new)


class _Deletion:
    """Gives back what a deleted Service held, and takes its Endpoints with it.

    A new Service of the same name must not find the old one's Endpoints.
    """

    def __init__(self, allocation: Allocation, service: Service, context: Context) -> None:
        self._allocation = allocation
        self._service = service
        self._context = context

    async def commit(self) -> None:
        meta = self._service.metadata
        if meta is not None:
            endpoints = self._context.registry.store("", "v1", "endpoints")
            item = endpoints.peek(meta.namespace or "", meta.name or "")
            while item is not None and await endpoints.delete(item) is None:
                item = await endpoints.find(meta.namespace or "", meta.name or "")
        await self._allocation.commit()

    async def rollback(self) -> None:
        await self._allocation.rollback()


def _hide_internal_traffic_policy(service: Service) -> None:
    """An ExternalName has no traffic of its own; upstream once filled the policy in and does not show it since."""
    spec = service.spec
    if spec is not None and spec.type == "ExternalName" and spec.internal_traffic_policy in ("Cluster", "Local"):
        spec.internal_traffic_policy = None


def drop_type_dependent_fields(new: Service, old: Service) -> None:
    """Clear what the new type has no use for, if it was filled in for the old one and the client did not touch it."""
    spec, before = new.spec or ServiceSpec(), old.spec or ServiceSpec()
    if before.type != "ExternalName" and spec.type == "ExternalName":
        if (spec.cluster_ip or "", spec.cluster_ips or []) == (before.cluster_ip or "", before.cluster_ips or []):
            spec.cluster_ip = spec.cluster_ips = None
        if (spec.ip_families or []) == (before.ip_families or []):
            spec.ip_families = None
        if spec.ip_family_policy == before.ip_family_policy:
            spec.ip_family_policy = None
    if _has_node_ports(before) and not _has_node_ports(spec):
        numbers = {port.node_port for port in spec.ports or () if port.node_port}
        if numbers <= {port.node_port for port in before.ports or ()}:
            for port in spec.ports or ():
                port.node_port = None
    checked = needs_health_check(before) and not needs_health_check(spec)
    if checked and (spec.health_check_node_port or 0) == (before.health_check_node_port or 0):
        spec.health_check_node_port = None
    if before.type == "LoadBalancer" and spec.type != "LoadBalancer":
        if spec.allocate_load_balancer_node_ports == before.allocate_load_balancer_node_ports:
            spec.allocate_load_balancer_node_ports = None
        if spec.load_balancer_class == before.load_balancer_class:
            spec.load_balancer_class = None
    withdrawn = externally_accessible(before) and not externally_accessible(spec)
    if withdrawn and (spec.external_traffic_policy or "") == (before.external_traffic_policy or ""):
        spec.external_traffic_policy = None
    if spec.type != "LoadBalancer":
        conditions = new.status.conditions if new.status else None
        new.status = ServiceStatus(load_balancer=LoadBalancerStatus(), conditions=conditions)


def _has_node_ports(spec: ServiceSpec) -> bool:
    return spec.type in ("NodePort", "LoadBalancer")


def service_warnings(service: Service) -> list[str]:
    """Warnings about fields without effect, deprecated ones, and unusual forms."""
    warnings: list[str] = []
    spec = service.spec or ServiceSpec()
    annotations = (service.metadata and service.metadata.annotations) or {}
    if TOPOLOGY_HINTS in annotations:
        warnings.append(f"annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead")
    if spec.cluster_ip and spec.cluster_ip != "None":
        for index, ip in enumerate(spec.cluster_ips or ()):
            warnings += warnings_for_ip(_SPEC.child("clusterIPs").index(index), ip)
    headless = spec.type == "ClusterIP" and spec.cluster_ip == "None"
    if headless:
        if spec.load_balancer_ip:
            warnings.append("spec.loadBalancerIP is ignored for headless services")
        if spec.external_ips:
            warnings.append("spec.externalIPs is ignored for headless services")
        if spec.session_affinity != "None":
            warnings.append("spec.SessionAffinity is ignored for headless services")
    for index, ip in enumerate(spec.external_ips or ()):
        warnings += warnings_for_ip(_SPEC.child("externalIPs").index(index), ip)
    if spec.external_ips and not headless and spec.type != "ExternalName":
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.load_balancer_ip:
        warnings += warnings_for_ip(_SPEC.child("loadBalancerIP"), spec.load_balancer_ip)
    for index, cidr in enumerate(spec.load_balancer_source_ranges or ()):
        warnings += warnings_for_cidr(_SPEC.child("loadBalancerSourceRanges").index(index), cidr)
    if spec.type == "ExternalName" and spec.external_ips:
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec.type != "ExternalName" and spec.external_name:
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.traffic_distribution == "PreferClose":
        warnings.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return warnings


STRATEGIES: Final[dict[str, type[Strategy]]] = {"services": ServiceStrategy}
