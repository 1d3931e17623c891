"""Which node answers for an address of a load balancer (pure).

Every node computes the same from what the cluster says: of the nodes that may, the one with the highest hash of its
name and the address. So addresses are spread over nodes, and one that goes moves no others' addresses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from pybernetes.api.core.v1 import Node, Service
from pybernetes.api.discovery.v1 import EndpointSlice

EXCLUDED_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers"
SILENT_AFTER = 25.0
"""Seconds without a new Lease after which a node counts as gone; kubelets renew theirs every 10 s."""


class Heartbeats:
    """When each node's Lease last changed, by this machine's clock: other nodes' clocks are not trusted.

    A node counts as silent only while the own Lease changes: without the API server no node counts as silent.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._seen: dict[str, tuple[str, float]] = {}

    def note(self, node: str, renewed: str, now: float) -> None:
        """A Lease was seen; `renewed` is what it says, of which only a change matters."""
        if self._seen.get(node, ("", 0.0))[0] != renewed:
            self._seen[node] = renewed, now

    def forget(self, node: str) -> None:
        """A Lease is gone."""
        self._seen.pop(node, None)

    def silent(self, now: float) -> frozenset[str]:
        """The nodes that count as gone."""
        own = self._seen.get(self._own)
        if own is None or now - own[1] > SILENT_AFTER * 0.6:
            return frozenset()
        return frozenset(name for name, (_, when) in self._seen.items() if now - when > SILENT_AFTER)

    def next_change(self, now: float) -> float:
        """Seconds until a node could become silent that is not; SILENT_AFTER if there is none."""
        ages = [now - when for name, (_, when) in self._seen.items() if name != self._own]
        return min((SILENT_AFTER - age for age in ages if age <= SILENT_AFTER), default=SILENT_AFTER)


def candidates(nodes: Iterable[Node], silent: frozenset[str] = frozenset()) -> frozenset[str]:
    """The nodes that may answer: ready, not silent, not excluded. If there is none, all that are not excluded."""
    allowed, good = [], []
    for node in nodes:
        if node.metadata is None or not node.metadata.name or EXCLUDED_LABEL in (node.metadata.labels or {}):
            continue
        allowed.append(node.metadata.name)
        if _ready(node) and node.metadata.name not in silent and not node.metadata.deletion_timestamp:
            good.append(node.metadata.name)
    return frozenset(good or allowed)


def with_endpoints(service: Service, slices: Iterable[EndpointSlice], among: frozenset[str]) -> frozenset[str]:
    """Those of the candidates that have an endpoint of a Service to whose nodes packets must go; all for others.

    Endpoints are ready ones; where no candidate has any, those that still serve while they terminate.
    """
    if service.spec is None or service.spec.external_traffic_policy != "Local":
        return among
    ready: set[str] = set()
    draining: set[str] = set()
    for endpoint in (each for one in slices for each in one.endpoints or ()):
        node, conditions = endpoint.node_name, endpoint.conditions
        if not node or node not in among:
            continue
        if conditions is None or conditions.ready is not False:
            ready.add(node)
        elif conditions.serving and conditions.terminating:
            draining.add(node)
    return frozenset(ready or draining)


def announcer(address: str, among: Iterable[str]) -> str:
    """The node that answers for an address; empty if there is no candidate."""
    return max(among, key=lambda node: (hashlib.sha256(f"{node}#{address}".encode()).digest(), node), default="")


def addresses_of(service: Service) -> list[str]:
    """The addresses that nodes answer for: those of the status at which packets arrive unchanged."""
    if service.spec is None or service.spec.type != "LoadBalancer" or service.status is None:
        return []
    ingress = (service.status.load_balancer.ingress if service.status.load_balancer else None) or ()
    return [each.ip for each in ingress if each.ip and each.ip_mode in (None, "VIP")]


def shares(claims: Mapping[str, list[tuple[tuple[str, str], frozenset[str]]]]) -> dict[str, frozenset[str]]:
    """The candidates for each address. If several Services have it in their status, the first by name counts."""
    return {address: min(each)[1] for address, each in claims.items()}


def _ready(node: Node) -> bool:
    conditions = (node.status.conditions if node.status else None) or ()
    return all(each.status == "True" for each in conditions if each.type == "Ready")
