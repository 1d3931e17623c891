"""Which zone, or node, an endpoint is meant for.

Two ways, never both: `spec.trafficDistribution` says "near" and every ready endpoint is for its own zone (and node);
the annotation `service.kubernetes.io/topology-mode: Auto` shares endpoints out in proportion to the CPUs of the zones,
and gives up with an event where that would overload one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pybernetes.api.core.v1 import Node, Service
from pybernetes.api.discovery.v1 import Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone
from pybernetes.api.quantity import Quantity, parse
from pybernetes.client.keys import copy

from ..common.conditions import find_condition
from ..common.meta import annotations_of, labels_of
from .endpoints import ZONE_LABEL
from .packing import Changes

OVERLOAD_THRESHOLD: Final = 0.2
"""How much more than its share an endpoint may get."""

_NEAR: Final = frozenset({"PreferClose", "PreferSameZone", "PreferSameNode"})
_ANNOTATIONS: Final = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")
_EXCLUDED: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


class HintEvent(NamedTuple):
    """An event about the hints of a service."""

    type: str
    reason: str
    message: str


def wants_topology(service: Service) -> bool:
    """Whether a service asks for endpoints in proportion to its zones."""
    annotations = annotations_of(service)
    for name in _ANNOTATIONS:
        if name in annotations:
            return annotations[name] in ("Auto", "auto")
    return False


def near(service: Service) -> str | None:
    """The `trafficDistribution` of a service, if it is valid and in force."""
    value = service.spec.traffic_distribution if service.spec else None
    return value if value in _NEAR and not wants_topology(service) else None


def hint_near(distribution: str, changes: Changes, unchanged: Iterable[EndpointSlice]) -> None:
    """Every ready endpoint is for its own zone, and for its own node if that was asked for."""
    nodes = distribution == "PreferSameNode"
    for each in unchanged:
        if any(is_ready(endpoint) and endpoint.hints != _own(endpoint, nodes) for endpoint in each.endpoints or ()):
            changes.update.append(copy(each))
    for each in (*changes.create, *changes.update):
        for endpoint in each.endpoints or ():
            if is_ready(endpoint):
                endpoint.hints = _own(endpoint, nodes)


def hint_nothing(changes: Changes, unchanged: Iterable[EndpointSlice]) -> None:
    """Remove all hints."""
    for each in unchanged:
        if any(endpoint.hints is not None for endpoint in each.endpoints or ()):
            changes.update.append(copy(each))
    for each in (*changes.create, *changes.update):
        for endpoint in each.endpoints or ():
            endpoint.hints = None


def is_ready(endpoint: Endpoint) -> bool:
    """Whether an endpoint gets traffic."""
    return endpoint.conditions is not None and endpoint.conditions.ready is True


def _own(endpoint: Endpoint, nodes: bool) -> EndpointHints | None:
    for_zones = [ForZone(name=endpoint.zone)] if endpoint.zone else None
    for_nodes = [ForNode(name=endpoint.node_name)] if nodes and endpoint.node_name else None
    return EndpointHints(for_zones=for_zones, for_nodes=for_nodes) if for_zones or for_nodes else None


# --- in proportion to the zones' CPUs


class _Share(NamedTuple):
    minimum: int
    maximum: int
    desired: float


@dataclass
class Topology:
    """The zones' shares of CPU, and which services have hints made by them, with how many for each zone."""

    ratios: dict[str, float] | None = None
    hinted: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """By (service, family)."""

    def set_nodes(self, nodes: Iterable[Node]) -> list[str]:
        """Learn the zones anew; the services that would now be overloaded somewhere are to be looked at."""
        self.ratios = zone_ratios(nodes)
        return sorted({service for (service, _), zones in self.hinted.items() if _overloaded(zones, self.ratios)})

    def forget(self, service: str, address_type: str) -> bool:
        """A service has no such hints any more; whether it had."""
        return self.hinted.pop((service, address_type), None) is not None

    def hint(
        self, service: str, address_type: str, changes: Changes, unchanged: list[EndpointSlice]
    ) -> list[HintEvent]:
        """Share the ready endpoints out; or take all hints away and say why."""
        slices = (*changes.create, *changes.update, *unchanged)
        total = sum(1 for each in slices for endpoint in each.endpoints or () if is_ready(endpoint))
        shares = self._shares(total)
        why = shares if isinstance(shares, str) else None
        if isinstance(shares, dict):
            allocated = _keep(shares, changes, unchanged)
            writable = (*changes.create, *changes.update)
            why = _hint_own_zones(writable, allocated)
            if why is None:
                for zone, difference in _redistribute(writable, *_giving_and_receiving(shares, allocated)).items():
                    allocated[zone] = allocated.get(zone, 0) + difference
                if allocated:
                    known = any(key[0] == service for key in self.hinted)
                    self.hinted[service, address_type] = allocated
                    message = f"Topology Aware Hints has been enabled, addressType: {address_type}"
                    return [] if known else [HintEvent("Normal", "TopologyAwareHintsEnabled", message)]
                why = "No hints allocated for zones"
        self.forget(service, address_type)
        hint_nothing(changes, changes.unchanged(unchanged))
        return [HintEvent("Warning", "TopologyAwareHintsDisabled", f"{why}, addressType: {address_type}")]

    def _shares(self, total: int) -> dict[str, _Share] | str:
        if self.ratios is None:
            return "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
        counts = f"({total} endpoints, {len(self.ratios)} zones)"
        if len(self.ratios) > total:
            return f"Insufficient number of endpoints {counts}"
        minima = {
            zone: math.ceil(ratio * total * (1 / (1 + OVERLOAD_THRESHOLD))) for zone, ratio in self.ratios.items()
        }
        spare = total - sum(minima.values())
        if spare < 0:
            return (
                "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold "
                + counts
            )
        return {
            zone: _Share(minima[zone], minima[zone] + spare, max(ratio * total, minima[zone]))
            for zone, ratio in self.ratios.items()
        }


def zone_ratios(nodes: Iterable[Node]) -> dict[str, float] | None:
    """Each zone's part of the CPUs of all ready workers; None if a node does not tell, or with less than two zones."""
    by_zone: dict[str, Quantity] = {}
    for node in nodes:
        labels = labels_of(node)
        if any(each in labels for each in _EXCLUDED) or not _node_ready(node):
            continue
        zone = labels.get(ZONE_LABEL)
        cpu = parse(str(((node.status.allocatable if node.status else None) or {}).get("cpu", "0")))
        if not zone or not cpu:
            return None
        by_zone[zone] = by_zone[zone] + cpu if zone in by_zone else cpu
    total = sum(each.milli_value() for each in by_zone.values())
    if len(by_zone) < 2 or not total:
        return None
    return {zone: cpu.milli_value() / total for zone, cpu in by_zone.items()}


def _node_ready(node: Node) -> bool:
    condition = find_condition(node.status.conditions if node.status else None, "Ready")
    return condition is not None and condition.status == "True"


def _overloaded(zones: Mapping[str, int], ratios: Mapping[str, float] | None) -> bool:
    if not zones:
        return False
    if not ratios:
        return True
    total = sum(zones.values())
    return any(
        zone not in zones or zones[zone] < math.ceil(total * ratio * (1 / (1 + OVERLOAD_THRESHOLD)))
        for zone, ratio in ratios.items()
    )


def _keep(shares: Mapping[str, _Share], changes: Changes, unchanged: list[EndpointSlice]) -> dict[str, int]:
    """Hints of slices that can stay as they are, by zone; the other slices are written too."""
    allocated: dict[str, int] = {}
    for each in unchanged:
        hints = _hints(each, allocated, shares)
        if hints is None:
            changes.update.append(copy(each))
            continue
        for zone, count in hints.items():
            allocated[zone] = allocated.get(zone, 0) + count
    return allocated


def _hints(of: EndpointSlice, allocated: Mapping[str, int], shares: Mapping[str, _Share]) -> dict[str, int] | None:
    hints: dict[str, int] = {}
    for endpoint in of.endpoints or ():
        if not is_ready(endpoint):
            continue
        zones = [each.name or "" for each in (endpoint.hints.for_zones if endpoint.hints else None) or ()]
        if not zones or any(zone not in shares for zone in zones):
            return None
        for zone in zones:
            hints[zone] = hints.get(zone, 0) + 1
    if any(count + allocated.get(zone, 0) > shares[zone].maximum for zone, count in hints.items()):
        return None
    return hints


def _hint_own_zones(slices: Iterable[EndpointSlice], allocated: dict[str, int]) -> str | None:
    for each in slices:
        for endpoint in each.endpoints or ():
            if not is_ready(endpoint):
                continue
            if not endpoint.zone:
                return "One or more endpoints do not have a zone specified"
            allocated[endpoint.zone] = allocated.get(endpoint.zone, 0) + 1
            endpoint.hints = EndpointHints(for_zones=[ForZone(name=endpoint.zone)])
    return None


def _giving_and_receiving(
    shares: Mapping[str, _Share], allocated: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, int]]:
    surplus = {zone: allocated.get(zone, 0) - share.desired for zone, share in sorted(shares.items())}
    giving: dict[str, int] = {}
    receiving: dict[str, int] = {}
    while True:
        giver = max(surplus, key=lambda zone: surplus[zone])
        taker = min(surplus, key=lambda zone: surplus[zone])
        gives, takes = surplus[giver], -surplus[taker]
        if (gives < 1 and takes < 1) or gives < 0.5 or takes < 0.5:
            return giving, receiving
        giving[giver] = giving.get(giver, 0) + 1
        receiving[taker] = receiving.get(taker, 0) + 1
        surplus[giver] -= 1
        surplus[taker] += 1


def _redistribute(slices: Iterable[EndpointSlice], giving: dict[str, int], receiving: dict[str, int]) -> dict[str, int]:
    moved: dict[str, int] = {}
    for each in slices:
        for endpoint in each.endpoints or ():
            if not is_ready(endpoint) or not giving.get(endpoint.zone or ""):
                continue
            taker = next((zone for zone, count in receiving.items() if count), None)
            if taker is None:
                return moved
            assert endpoint.zone is not None
            endpoint.hints = EndpointHints(for_zones=[ForZone(name=taker)])
            giving[endpoint.zone] -= 1
            receiving[taker] -= 1
            moved[taker] = moved.get(taker, 0) + 1
            moved[endpoint.zone] = moved.get(endpoint.zone, 0) - 1
    return moved
