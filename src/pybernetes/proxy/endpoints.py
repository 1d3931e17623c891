"""Which endpoints of a Service's port a node sends packets to (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pybernetes.api.discovery.v1 import EndpointSlice

ZONE_LABEL = "topology.kubernetes.io/zone"


class Endpoint(NamedTuple):
    """One endpoint of a port, in one slice."""

    address: str
    port: int
    ready: bool
    serving: bool
    terminating: bool
    local: bool
    zones: tuple[str, ...]
    """Hints: the zones that shall use it."""
    nodes: tuple[str, ...]
    """Hints: the nodes that shall use it."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The node's properties that select endpoints."""

    name: str
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The endpoints for packets of each traffic policy; `any` says whether the port has a usable endpoint anywhere."""

    cluster: tuple[Endpoint, ...]
    local: tuple[Endpoint, ...]
    any: bool


def of_port(slices: Iterable[EndpointSlice], name: str, protocol: str, family: str, node: NodeFacts) -> list[Endpoint]:
    """The endpoints of a port in slices of one address family, sorted; each address and port once."""
    found: dict[tuple[str, int], Endpoint] = {}
    for each in slices:
        if each.address_type != family:
            continue
        for port in each.ports or ():
            if (port.name or "") != name or (port.protocol or "TCP") != protocol or not port.port:
                continue
            for endpoint in each.endpoints or ():
                if not endpoint.addresses:
                    continue
                conditions, hints = endpoint.conditions, endpoint.hints
                ready = conditions is None or conditions.ready is not False
                made = Endpoint(
                    endpoint.addresses[0],
                    port.port,
                    ready,
                    ready if conditions is None or conditions.serving is None else conditions.serving,
                    conditions is not None and conditions.terminating is True,
                    endpoint.node_name == node.name,
                    tuple(zone.name or "" for zone in hints.for_zones or ()) if hints else (),
                    tuple(each.name or "" for each in hints.for_nodes or ()) if hints else (),
                )
                key = made.address, made.port
                # While a pod moves from one slice to another it may be in both.
                if key not in found or (made.ready, made.serving) > (found[key].ready, found[key].serving):
                    found[key] = made
    return [found[key] for key in sorted(found)]


def choose(endpoints: Sequence[Endpoint], node: NodeFacts) -> Chosen:
    """Ready endpoints, those near the node if hints say so; where none is ready, those that still serve while they
    terminate."""
    ready = [each for each in endpoints if each.ready]
    draining = [each for each in endpoints if each.serving and each.terminating]
    cluster = near(ready, node) or draining
    local = [each for each in ready if each.local] or [each for each in draining if each.local]
    return Chosen(tuple(cluster), tuple(local), bool(ready or draining))


def near(ready: list[Endpoint], node: NodeFacts) -> list[Endpoint]:
    """Those whose hints name the node, else its zone. Hints count only if every endpoint has some and one fits."""
    if ready and all(each.nodes for each in ready):
        mine = [each for each in ready if node.name in each.nodes]
        if mine:
            return mine
    if ready and node.zone and all(each.zones for each in ready):
        return [each for each in ready if node.zone in each.zones] or ready
    return ready
