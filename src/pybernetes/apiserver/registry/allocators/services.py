"""Gives Services their cluster IPs and node ports, and takes them back.

A Service is completed before it is checked and written: addresses and ports are taken from the pools and written into
the spec. The `Allocation` that comes back knows what to do afterwards: after a failed write everything taken is given
back, after a successful one what the Service no longer needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pybernetes.api.addresses import parse_ip
from pybernetes.api.core.v1.service import Service, ServicePort, ServiceSpec
from pybernetes.api.core.validation.service import needs_health_check
from pybernetes.api.errors import InternalError, Invalid
from pybernetes.api.field import FieldError, Path, invalid

from .addresses import AddressUnavailable, ClusterIPs, RangeFull
from .families import fill_in_families, same_addresses, stays_as_preferred
from .ports import ANY, NodePorts, PortUnavailable

if TYPE_CHECKING:
    from ..registry import Registry
    from ..strategy import Context

_PORTS: Final = Path("spec", "ports")
_CLUSTER_IPS: Final = Path("spec", "clusterIPs")
_DRY_RUN_PORT: Final = 32769
"""The first number a dry run shows where a port would be drawn; not one that could be taken for real."""


class Allocation:
    """The addresses and ports taken for one write of a Service, and those it releases."""

    def __init__(self, pools: ServicePools, service: Service) -> None:
        meta = service.metadata
        self._pools = pools
        self._owner = ((meta and meta.namespace) or "", (meta and meta.name) or "")
        self.taken_ips: list[str] = []
        self.taken_ports: list[int] = []
        self.unneeded_ips: list[str] = []
        self.unneeded_ports: list[int] = []

    async def commit(self) -> None:
        """The Service is written: give back what it no longer has."""
        await self._give_back(self.unneeded_ips, self.unneeded_ports)

    async def rollback(self) -> None:
        """The Service is not written: give back what was taken for it."""
        await self._give_back(self.taken_ips, self.taken_ports)

    async def _give_back(self, ips: Iterable[str], ports: Iterable[int]) -> None:
        for ip in ips:
            await self._pools.ips.give_back(*self._owner, ip)
        await self._pools.ports.give_back(ports)


class ServicePools:
    """The pools of one API server."""

    def __init__(self, registry: Registry) -> None:
        self._services = registry.store("", "v1", "services")
        self.ips = ClusterIPs(registry)
        low, high = registry.node_ports
        self.ports = NodePorts(registry.cache.store, low, high, self._ports_in_use)

    async def allocate(self, new: Service, old: Service | None, context: Context) -> Allocation:
        """Complete a new or changed Service. Raises Invalid or InternalError, and then has taken nothing."""
        spec = new.spec = new.spec or ServiceSpec()
        before = old.spec if old else None
        if before is not None:
            keep_allocated_values(spec, before)
        synchronize_addresses(spec, before)
        errors = fill_in_families(spec, before, self.ips.families)
        if errors:
            raise self._invalid(new, errors)
        allocation = Allocation(self, new)
        try:
            if before is None:
                await self._take_addresses(new, allocation, context)
            else:
                await self._change_addresses(new, before, allocation, context)
            await self._take_ports(new, before, allocation, context)
        except BaseException:
            await allocation.rollback()
            raise
        return allocation

    def release(self, old: Service) -> Allocation:
        """The addresses and ports to release once the Service is gone."""
        spec = old.spec or ServiceSpec()
        allocation = Allocation(self, old)
        allocation.unneeded_ips = addresses_of(spec)
        allocation.unneeded_ports = sorted(ports_of(spec))
        return allocation

    # -- addresses ----------------------------------------------------------------------------------------------

    async def _take_addresses(self, service: Service, allocation: Allocation, context: Context) -> None:
        spec = service.spec or ServiceSpec()
        if spec.type == "ExternalName" or spec.cluster_ips == ["None"]:
            return
        families, wanted = spec.ip_families or [], spec.cluster_ips or []
        wanted = spec.cluster_ips = [*wanted, *[""] * (len(families) - len(wanted))]  # messages show what is missing
        ips: list[str] = []
        for family, address in zip(families, wanted, strict=False):
            ips.append(await self._take_address(service, family, address, allocation, context))
        spec.cluster_ips = [*ips, *wanted[len(ips) :]]
        spec.cluster_ip = spec.cluster_ips[0] if spec.cluster_ips else None

    async def _change_addresses(
        self, service: Service, old: ServiceSpec, allocation: Allocation, context: Context
    ) -> None:
        """A changed type, or a second family that comes or goes; everything else keeps its addresses."""
        spec = service.spec or ServiceSpec()
        if stays_as_preferred(spec, old):
            return
        if old.type == "ExternalName" and spec.type != "ExternalName":
            await self._take_addresses(service, allocation, context)
            return
        if old.cluster_ips == ["None"]:
            return
        if spec.type == "ExternalName":
            if old.type != "ExternalName":
                allocation.unneeded_ips = addresses_of(old)
            return
        before, after = old.ip_families or [], spec.ip_families or []
        ips = spec.cluster_ips or []
        if len(before) == 1 and len(after) == 2:
            second = await self._take_address(service, after[1], ips[1] if len(ips) > 1 else "", allocation, context)
            spec.cluster_ips = [*ips[:1], second]
        elif len(before) == 2 and len(after) == 1:
            allocation.unneeded_ips = (old.cluster_ips or [])[1:2]

    async def _take_address(
        self, service: Service, family: str, requested: str, allocation: Allocation, context: Context
    ) -> str:
        meta = service.metadata
        namespace, name = (meta and meta.namespace) or "", (meta and meta.name) or ""
        spec = service.spec or ServiceSpec()
        if not requested:
            try:
                if context.dry_run:
                    return self.ips.placeholder(family)
                ip = await self.ips.take_any(namespace, name, family, context.now)
            except RangeFull as error:
                raise InternalError(f'failed to allocate a serviceIP for Service "{name}": {error}') from None
            allocation.taken_ips.append(ip)
            return ip
        address = parse_ip(requested)
        if address is None:
            raise InternalError(f'failed to parse service IP "{requested}"')
        try:
            await self.ips.take(namespace, name, address, context.now, dry_run=context.dry_run)
        except AddressUnavailable as error:
            detail = f"failed to allocate IP {requested}: {error}"
            raise self._invalid(service, [invalid(_CLUSTER_IPS, spec.cluster_ips, detail)]) from None
        if not context.dry_run:
            allocation.taken_ips.append(str(address))
        return requested

    # -- ports --------------------------------------------------------------------------------------------------

    async def _take_ports(
        self, service: Service, old: ServiceSpec | None, allocation: Allocation, context: Context
    ) -> None:
        """Ports of the Service, and one for health checks, in one go."""
        spec = service.spec or ServiceSpec()
        had = ports_of(old) if old else set()
        requests: list[_PortRequest] = []
        if spec.type in ("NodePort", "LoadBalancer"):
            requests = _new_port_requests(spec, _node_ports(old)) if old else _port_requests(spec)
        checks = needs_health_check(spec) and not (old and needs_health_check(old))
        numbers = [each.number for each in requests]
        if checks:
            numbers.append(spec.health_check_node_port or ANY)
        try:
            chosen = await self._draw_for_show(numbers) if context.dry_run else await self.ports.take(numbers)
        except PortUnavailable as error:
            if error.position == len(requests):
                raise InternalError(_health_check_problem(spec, error)) from None
            request = requests[error.position]
            if request.number == ANY:
                raise InternalError(f"failed to allocate a nodePort: {error}") from None
            index = next(index for index, port in enumerate(spec.ports or ()) if port is request.ports[0])
            at = _PORTS.index(index).child("nodePort")
            raise self._invalid(service, [invalid(at, request.number, str(error))]) from None
        if not context.dry_run:
            allocation.taken_ports = chosen
        for request, number in zip(requests, chosen, strict=False):
            for port in request.ports:
                port.node_port = number
        if checks:
            spec.health_check_node_port = chosen[-1]
        if old is not None:
            # Numbers that a type without node ports keeps are dropped later, with the rest of what it cannot have.
            kept = ports_of(spec) if spec.type in ("NodePort", "LoadBalancer") else set()
            allocation.unneeded_ports = sorted(had - kept)

    async def _draw_for_show(self, requested: list[int]) -> list[int]:
        chosen: list[int] = []
        for position, number in enumerate(requested):
            if number == ANY:
                number = max(chosen) + 1 if chosen else _DRY_RUN_PORT
            elif number in chosen or await self.ports.has(number):
                raise PortUnavailable(position, "provided port is already allocated")
            chosen.append(number)
        return chosen

    def _ports_in_use(self) -> Iterable[int]:
        for _, service in self._services.decode_all(self._services.partition.items.values()):
            yield from ports_of(service.spec or ServiceSpec())

    def _invalid(self, service: Service, errors: list[FieldError]) -> Invalid:
        return Invalid("", "Service", (service.metadata and service.metadata.name) or "", errors)


class _PortRequest:
    """A node port to take, and the ports of the Service it is for."""

    def __init__(self, number: int, port: ServicePort) -> None:
        self.number = number
        self.ports = [port]


def _port_requests(spec: ServiceSpec) -> list[_PortRequest]:
    """The node ports of a new Service; ports with one number (a name server has TCP and UDP) share one."""
    requests: list[_PortRequest] = []
    shared: dict[int | None, _PortRequest] = {}
    ports = spec.ports or []
    for port in ports:
        number = port.node_port or ANY
        if number == ANY and not _draws_ports(spec):
            continue
        request = shared.get(port.port)
        if request is not None and number in (ANY, request.number):
            request.ports.append(port)
            continue
        if request is None:
            # A number that is asked for further down counts for all of them.
            number = next((each.node_port for each in ports if each.port == port.port and each.node_port), ANY)
        requests.append(_PortRequest(number, port))
        shared.setdefault(port.port, requests[-1])
    return requests


def _new_port_requests(spec: ServiceSpec, had: set[int]) -> list[_PortRequest]:
    """The node ports a changed Service needs besides those it has."""
    requests: list[_PortRequest] = []
    for port in spec.ports or ():
        number = port.node_port or ANY
        if number == ANY:
            if _draws_ports(spec):
                requests.append(_PortRequest(ANY, port))
        elif number not in had and all(each.number != number for each in requests):
            requests.append(_PortRequest(number, port))
    return requests


def _health_check_problem(spec: ServiceSpec, error: PortUnavailable) -> str:
    if spec.health_check_node_port:
        return f"failed to allocate requested HealthCheck NodePort {spec.health_check_node_port}: {error}"
    return f"failed to allocate a HealthCheck NodePort 0: {error}"


def addresses_of(spec: ServiceSpec) -> list[str]:
    """The addresses a Service holds."""
    if spec.type == "ExternalName":
        return []
    return [str(address) for address in map(parse_ip, spec.cluster_ips or ()) if address is not None]


def ports_of(spec: ServiceSpec) -> set[int]:
    """The node ports a Service holds."""
    ports = _node_ports(spec)
    if spec.health_check_node_port and needs_health_check(spec):
        ports.add(spec.health_check_node_port)
    return ports


def _node_ports(spec: ServiceSpec) -> set[int]:
    return {port.node_port for port in spec.ports or () if port.node_port}


def keep_allocated_values(spec: ServiceSpec, old: ServiceSpec) -> None:
    """A client that sends its first manifest again does not know what it was given: that stays."""
    if spec.type != "ExternalName" and old.type != "ExternalName":
        spec.cluster_ip = spec.cluster_ip or old.cluster_ip
        if not spec.cluster_ips and old.cluster_ips:
            spec.cluster_ips = list(old.cluster_ips)
    if _draws_ports(spec) and _draws_ports(old):
        present = {port.node_port for port in spec.ports or ()}
        known = {port.name: port.node_port for port in old.ports or ()}
        for port in spec.ports or ():
            number = known.get(port.name)
            if not port.node_port and number not in present:
                port.node_port = number
    if needs_health_check(spec) and needs_health_check(old):
        spec.health_check_node_port = spec.health_check_node_port or old.health_check_node_port


def _draws_ports(spec: ServiceSpec) -> bool:
    return spec.type == "NodePort" or (
        spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is not False
    )


def synchronize_addresses(spec: ServiceSpec, old: ServiceSpec | None) -> None:
    """Old clients know only `clusterIP`: what they do to it is meant for `clusterIPs` too."""
    if old is None:
        if spec.cluster_ip and not spec.cluster_ips:
            spec.cluster_ips = [spec.cluster_ip]
        return
    if (spec.cluster_ip or "") == (old.cluster_ip or ""):
        if old.cluster_ips and not spec.cluster_ips:
            spec.cluster_ips = list(old.cluster_ips)
    elif same_addresses(spec, old):
        spec.cluster_ips = [spec.cluster_ip] if spec.cluster_ip else None
