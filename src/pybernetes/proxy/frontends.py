"""A Service and its slices as entries of flat maps (pure).

A frontend is an (address, protocol, port) at which a Service is reached; a node port has the address of all zeros. Keys
and values of the entries are bytes as the kernel's maps have them, except for `Route`, which stands for a chain.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

from pybernetes.api.core.defaults.service import externally_accessible
from pybernetes.api.core.v1 import Service
from pybernetes.api.core.v1.service import ServicePort, ServiceSpec
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.network.nftables import datatypes
from pybernetes.network.nftables.datatypes import IPV4, IPV6, MARK, PORT, PROTOCOL, VERDICT, DataType, concat
from pybernetes.network.nftables.objects import Set

from . import endpoints
from .endpoints import Chosen, Endpoint, NodeFacts

FRONTENDS = "frontends"
ROUTES = "routes"
AFFINITIES = 65535
"""Clients whose endpoint is remembered; those beyond get any endpoint each time."""
REFUSALS = "refusals"
"""Routes that lead to no endpoint: the kernel takes no `reject` where addresses are translated."""
ENDPOINTS = "endpoints"
INTERNAL_FRONTENDS = "internal-frontends"
INTERNAL_ROUTES = "internal-routes"
"""Taken from chains of `routes`: the kernel takes no map that leads back to itself."""
AFFINITY = "affinity"
"""Client and frontend -> the number of an endpoint."""
AFFINITY_NUMBERS = "affinity-numbers"
"""Frontend and index -> the number of an endpoint."""
AFFINITY_ENDPOINTS = "affinity-endpoints"
"""Frontend and number -> endpoint. Other Services' frontends have `endpoints` instead of these two."""
HAIRPINS = "hairpins"
NO_ENDPOINTS = "no-endpoints"
CLUSTER_IPS = "cluster-ips"
FIREWALL = "firewall"
FIREWALL_ALLOWED = "firewall-allowed"

INTERNAL_OFFSET = 1 << 16
"""Index of the first endpoint of an internal route: at the same frontend packets from inside the cluster go to other
endpoints than those from outside."""
PROTOCOLS = {"TCP": socket.IPPROTO_TCP, "UDP": socket.IPPROTO_UDP, "SCTP": socket.IPPROTO_SCTP}
PROXY_NAME_LABEL = "service.kubernetes.io/service-proxy-name"
HEADLESS_LABEL = "service.kubernetes.io/headless"
FOREIGN_LABELS = frozenset((PROXY_NAME_LABEL, HEADLESS_LABEL))
"""Services and slices with one of these are not for this proxy, whatever the label's value is."""
SOURCE_RANGES_ANNOTATION = "service.beta.kubernetes.io/load-balancer-source-ranges"
_DEFAULT_AFFINITY_SECONDS = 10800
_index = struct.Struct("=I")


class Family(NamedTuple):
    """An IP version."""

    name: str
    """As slices and Services name it."""
    table: str
    """nftables' family."""
    number: int
    length: int
    """Bytes of an address."""
    address: DataType

    def pack(self, address: str) -> bytes:
        return socket.inet_pton(self.number, address)

    def has(self, address: str) -> bool:
        return (":" in address) == (self.length == 16)

    @property
    def zero(self) -> bytes:
        return bytes(self.length)


FAMILIES = (
    Family("IPv4", "ip", socket.AF_INET, 4, IPV4),
    Family("IPv6", "ip6", socket.AF_INET6, 16, IPV6),
)


class Route(NamedTuple):
    """The chain to which a frontend leads, shared by all frontends with the same route.

    Maps have a number for it, and one small map leads from there to the chain: the kernel looks for loops in all
    elements of verdict maps whenever one of them is added, which takes 50 ms with 50,000 frontends.
    """

    kind: str
    """`cluster`: a cluster IP; `external`: other addresses; `local`: those with external traffic policy Local;
    `internal`: from inside the cluster to a `local` frontend; `reject`, `drop`."""
    size: int = 0
    """Endpoints."""
    affinity: int = 0
    """Seconds for which a client stays with its endpoint; 0 = no affinity."""
    node_port: bool = False

    @property
    def refuses(self) -> bool:
        return self.kind in ("reject", "drop")

    @property
    def map(self) -> str:
        """The map that leads to the chain."""
        return REFUSALS if self.refuses else INTERNAL_ROUTES if self.kind == "internal" else ROUTES

    @property
    def chain(self) -> str:
        name = f"{self.kind}{'-node-port' if self.node_port else ''}"
        name += f"-{self.size}" if not self.refuses else "-packet"  # nft takes no keywords for names
        return f"{name}-affinity-{self.affinity}" if self.affinity else name


REJECT, DROP = Route("reject"), Route("drop")
Value = bytes | Route
Entries = dict[str, dict[bytes, Value]]
"""Set, key, value; empty bytes in sets that are no maps. The key of an interval is its first and last key."""


def sets(family: Family) -> list[Set]:
    """The sets and maps of a table."""
    address = family.address
    frontend = (address, PROTOCOL, PORT)
    endpoint = concat(address, PORT)
    return [
        Set(ROUTES, MARK, VERDICT),
        Set(INTERNAL_ROUTES, MARK, VERDICT),
        Set(REFUSALS, MARK, VERDICT),
        Set(FRONTENDS, concat(*frontend), MARK),
        Set(ENDPOINTS, concat(*frontend, MARK), endpoint),
        Set(INTERNAL_FRONTENDS, concat(*frontend), MARK),
        Set(AFFINITY, concat(address, *frontend), MARK, dynamic=True, expires=True, size=AFFINITIES),
        Set(AFFINITY_NUMBERS, concat(*frontend, MARK), MARK),
        Set(AFFINITY_ENDPOINTS, concat(*frontend, MARK), endpoint),
        Set(HAIRPINS, concat(address, address)),
        Set(NO_ENDPOINTS, concat(*frontend), MARK),
        Set(CLUSTER_IPS, address),
        Set(FIREWALL, concat(*frontend)),
        Set(FIREWALL_ALLOWED, concat(address, *frontend), interval=True),
    ]


@dataclass(slots=True)
class Compiled:
    """A Service's elements on this node."""

    entries: Entries
    udp: dict[tuple[bytes, int], set[tuple[bytes, int]]]
    """Frontends of UDP by address and port, with their endpoints: tracked connections to others are stale."""
    health_check: tuple[int, int] | None
    """Health check node port, and how many endpoints are on this node."""
    without_local: tuple[int, int]
    """Ports with endpoints, but none on this node, though the internal / the external traffic policy is Local."""
    external: set[bytes] = field(default_factory=set)
    """Frontends at addresses that other Services may ask for too."""


NOTHING = Compiled({}, {}, None, (0, 0))


def ours(service: Service) -> bool:
    """Whether the proxy serves a Service: one with a cluster IP that is not left to another proxy."""
    spec = service.spec
    if spec is None or spec.type == "ExternalName" or _is_foreign(service):
        return False
    return bool(spec.cluster_ip) and spec.cluster_ip != "None"


def _is_foreign(obj: Service | EndpointSlice) -> bool:
    labels = (obj.metadata.labels if obj.metadata else None) or {}
    return not FOREIGN_LABELS.isdisjoint(labels)


def compile_service(
    service: Service,
    slices: Iterable[EndpointSlice],
    node: NodeFacts,
    family: Family,
    claim: Callable[[str, bytes], bool] = lambda _address, _frontend: True,
) -> Compiled:
    """The entries of a Service for one IP version. `claim`: whether it has a frontend at an external address."""
    spec = service.spec
    if spec is None or not ours(service):
        return NOTHING
    if not (spec.external_ips or spec.type == "LoadBalancer" or any(map(family.has, _cluster_ips(spec)))):
        return NOTHING  # most Services have one IP version
    made = _Compiler(service, spec, family, claim)
    slices = [each for each in slices if not _is_foreign(each)]
    for port in spec.ports or ():
        protocol = port.protocol or "TCP"
        found = endpoints.of_port(slices, port.name or "", protocol, family.name, node)
        made.add_port(port, endpoints.choose(found, node))
    return made.result


class _Compiler:
    def __init__(
        self, service: Service, spec: ServiceSpec, family: Family, claim: Callable[[str, bytes], bool]
    ) -> None:
        self._spec, self._family, self._claim = spec, family, claim
        self._cluster_ips = list(filter(family.has, _cluster_ips(spec)))
        self._external_local = spec.external_traffic_policy == "Local" and externally_accessible(spec)
        self._internal_local = spec.internal_traffic_policy == "Local"
        self._affinity = _affinity_seconds(spec)
        self._external_ips = [ip for ip in spec.external_ips or () if family.has(ip)]
        self._balancer_ips = _balancer_ips(service, family)
        self._ranges = _source_ranges(service, family) if self._balancer_ips else None
        self._numbers: dict[bytes, dict[int, bytes]] = {}
        self.result = Compiled({}, {}, None, (0, 0))
        for ip in self._cluster_ips:
            self._put(CLUSTER_IPS, family.pack(ip))

    def add_port(self, port: ServicePort, chosen: Chosen) -> None:
        protocol, number = PROTOCOLS.get(port.protocol or "TCP", 0), port.port or 0
        tail = datatypes.protocol(protocol) + datatypes.port(number)
        pack = self._family.pack
        internal = chosen.local if self._internal_local else chosen.cluster
        for ip in self._cluster_ips:
            self._internal(pack(ip) + tail, internal, chosen)
        addresses = dict.fromkeys((*self._external_ips, *self._balancer_ips))
        own = [ip for ip in addresses if self._claim(ip, pack(ip) + tail)]
        self.result.external.update(pack(ip) + tail for ip in addresses)
        outside = [(pack(ip) + tail, False) for ip in own]
        if port.node_port and self._cluster_ips:
            node_tail = datatypes.protocol(protocol) + datatypes.port(port.node_port)
            outside.append((self._family.zero + node_tail, True))
        for frontend, node_port in outside:
            self._external(frontend, chosen, node_port)
        for ip in self._balancer_ips if self._ranges is not None else ():
            if ip in own:
                self._restrict(pack(ip) + tail)
        for each in chosen.cluster + chosen.local:
            if each.local:
                address = pack(each.address)
                self._put(HAIRPINS, address + address)
        self._note(port, internal, chosen, outside)

    def _internal(self, frontend: bytes, targets: tuple[Endpoint, ...], chosen: Chosen) -> None:
        if targets:
            self._lead(FRONTENDS, frontend, Route("cluster", len(targets), self._affinity), targets)
        else:
            self._put(NO_ENDPOINTS, frontend, DROP if chosen.any else REJECT)

    def _external(self, frontend: bytes, chosen: Chosen, node_port: bool) -> None:
        if not self._external_local:
            if chosen.cluster:
                route = Route("external", len(chosen.cluster), self._affinity, node_port)
                self._lead(FRONTENDS, frontend, route, chosen.cluster)
            else:
                self._put(NO_ENDPOINTS, frontend, REJECT)
            return
        if chosen.cluster:
            route = Route("internal", len(chosen.cluster), self._affinity, node_port)
            self._lead(INTERNAL_FRONTENDS, frontend, route, chosen.cluster, INTERNAL_OFFSET)
            self._lead(FRONTENDS, frontend, Route("local", len(chosen.local), self._affinity, node_port), chosen.local)
        if not chosen.local:
            self._put(NO_ENDPOINTS, frontend, DROP if chosen.any else REJECT)

    def _lead(self, routes: str, frontend: bytes, route: Route, targets: tuple[Endpoint, ...], offset: int = 0) -> None:
        self._put(routes, frontend, route)
        for index, each in enumerate(targets, offset):
            target = self._family.pack(each.address) + datatypes.port(each.port)
            if not route.affinity:
                self._put(ENDPOINTS, frontend + _index.pack(index), target)
                continue
            number = self._number(frontend, target)
            self._put(AFFINITY_NUMBERS, frontend + _index.pack(index), number)
            self._put(AFFINITY_ENDPOINTS, frontend + number, target)

    def _number(self, frontend: bytes, target: bytes) -> bytes:
        """The number of an endpoint in a frontend's affinity set: a hash, and so the same in every process."""
        taken, number = self._numbers.setdefault(frontend, {}), crc32(target)
        while taken.setdefault(number, target) != target:
            number = (number + 1) & 0xFFFFFFFF
        return _index.pack(number)

    def _restrict(self, frontend: bytes) -> None:
        self._put(FIREWALL, frontend)
        for low, high in self._ranges or ():
            self._put(FIREWALL_ALLOWED, low + frontend + high + frontend)

    def _note(
        self, port: ServicePort, internal: tuple[Endpoint, ...], chosen: Chosen, outside: list[tuple[bytes, bool]]
    ) -> None:
        result, length = self.result, self._family.length
        if port.protocol == "UDP":
            targets = {(self._family.pack(each.address), each.port) for each in chosen.cluster + chosen.local}
            for ip in self._cluster_ips:
                result.udp[self._family.pack(ip), port.port or 0] = targets
            for frontend, node_port in outside:
                number = port.node_port if node_port else port.port
                result.udp[frontend[:length], number or 0] = targets
        lacking = [chosen.any and not internal, self._external_local and chosen.any and not chosen.local]
        result.without_local = (result.without_local[0] + lacking[0], result.without_local[1] + lacking[1])
        if self._external_local and self._spec.health_check_node_port:
            before = result.health_check[1] if result.health_check else 0
            # Endpoints that only terminate still serve, but no new connection shall come for them.
            ready = len({each.address for each in chosen.local if each.ready})
            result.health_check = self._spec.health_check_node_port, max(before, ready)

    def _put(self, where: str, key: bytes, value: Value = b"") -> None:
        self.result.entries.setdefault(where, {}).setdefault(key, value)


def _cluster_ips(spec: ServiceSpec) -> list[str]:
    return spec.cluster_ips or [spec.cluster_ip or ""]


def _affinity_seconds(spec: ServiceSpec) -> int:
    if spec.session_affinity != "ClientIP":
        return 0
    config = spec.session_affinity_config
    seconds = config.client_ip.timeout_seconds if config and config.client_ip else None
    return seconds or _DEFAULT_AFFINITY_SECONDS


def _balancer_ips(service: Service, family: Family) -> list[str]:
    """The load balancer's addresses at which packets arrive unchanged (`ipMode: Proxy` means they do not)."""
    if service.spec is None or service.spec.type != "LoadBalancer" or service.status is None:
        return []
    ingress = (service.status.load_balancer.ingress if service.status.load_balancer else None) or ()
    return [each.ip for each in ingress if each.ip and family.has(each.ip) and each.ip_mode in (None, "VIP")]


def _source_ranges(service: Service, family: Family) -> list[tuple[bytes, bytes]] | None:
    """First and last address of the allowed clients of the load balancer; None = all."""
    assert service.spec is not None
    annotations = (service.metadata.annotations if service.metadata else None) or {}
    texts = service.spec.load_balancer_source_ranges or annotations.get(SOURCE_RANGES_ANNOTATION, "").split(",")
    networks = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError:
            continue
    if not networks:
        return None
    mine = [each for each in networks if each.version == (6 if family.length == 16 else 4)]
    merged = ipaddress.collapse_addresses(mine)  # type: ignore[type-var]
    found = [(each.network_address.packed, each.broadcast_address.packed) for each in merged]
    return None if found == [(bytes(family.length), b"\xff" * family.length)] else found
