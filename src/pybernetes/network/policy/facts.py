"""The fields of pods and NetworkPolicies that the compiler uses (pure)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pybernetes.api import labels
from pybernetes.api.core.v1 import Pod
from pybernetes.api.labels import Selector
from pybernetes.api.meta.v1 import LabelSelector
from pybernetes.api.networking.v1 import NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort
from pybernetes.client.keys import Key, key_of

PROTOCOLS = {"TCP": 6, "UDP": 17, "SCTP": 132}
LAST_PORT = 65535
INGRESS, EGRESS = "ingress", "egress"
DIRECTIONS = (INGRESS, EGRESS)
Range = tuple[bytes, bytes]
"""First and last address."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod with a network of its own that has not ended."""

    namespace: str
    labels: Mapping[str, str]
    addresses: tuple[bytes, ...] = ()
    ports: tuple[tuple[str, int, int], ...] = ()
    """Named container ports: name, protocol, number."""
    local: bool = False
    """Whether it is on this node."""


def pod_facts(pod: Pod, node_name: str) -> PodFacts | None:
    """The facts of a pod; None if policies do not apply to it (host network, or ended)."""
    spec, status, metadata = pod.spec, pod.status, pod.metadata
    if spec is None or metadata is None or spec.host_network:
        return None
    if status is not None and status.phase in ("Succeeded", "Failed"):
        return None
    addresses = []
    for text in [each.ip for each in (status.pod_ips if status else None) or ()] or [status.pod_ip if status else ""]:
        try:
            addresses.append(ipaddress.ip_address(text or "").packed)
        except ValueError:
            continue
    containers = [*(spec.containers or ()), *(c for c in spec.init_containers or () if c.restart_policy == "Always")]
    ports = [
        (port.name, PROTOCOLS.get(port.protocol or "TCP", 0), port.container_port or 0)
        for container in containers
        for port in container.ports or ()
        if port.name
    ]
    return PodFacts(
        metadata.namespace or "", metadata.labels or {}, tuple(addresses), tuple(ports), spec.node_name == node_name
    )


@dataclass(frozen=True, slots=True)
class Peers:
    """Pods by selectors. Equal ones share a set."""

    namespace: str
    """The only namespace; empty: those that `namespaces` selects."""
    namespaces: Selector
    pods: Selector

    def in_namespace(self, name: str, of: Mapping[str, str] | None) -> bool:
        """Whether pods of a namespace with these labels can be meant."""
        return name == self.namespace if self.namespace else self.namespaces.matches(of or {})


@dataclass(frozen=True, slots=True)
class Port:
    """Ports of a protocol from `first` to `last`, or those that pods have by a name."""

    protocol: int
    first: int = 0
    last: int = LAST_PORT
    name: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """The peers and ports that one rule of a policy allows. Without ports: all."""

    anyone: bool
    peers: tuple[Peers, ...] = ()
    blocks: tuple[Range, ...] = ()
    ports: tuple[Port, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """A NetworkPolicy; a direction that it does not isolate is None."""

    key: Key
    pods: Selector
    ingress: tuple[Rule, ...] | None
    egress: tuple[Rule, ...] | None

    def rules(self, direction: str) -> tuple[Rule, ...] | None:
        """The rules for a direction; None: the direction is not isolated."""
        return self.ingress if direction == INGRESS else self.egress


def policy_facts(policy: NetworkPolicy) -> Policy:
    """Parse a NetworkPolicy."""
    spec, key = policy.spec, key_of(policy)
    if spec is None:
        return Policy(key, selector(None), (), None)
    types = spec.policy_types or (["Ingress", "Egress"] if spec.egress else ["Ingress"])
    incoming = [_rule(key.namespace, each.from_, each.ports) for each in spec.ingress or ()]
    outgoing = [_rule(key.namespace, each.to, each.ports) for each in spec.egress or ()]
    return Policy(
        key,
        selector(spec.pod_selector),
        tuple(incoming) if "Ingress" in types else None,
        tuple(outgoing) if "Egress" in types else None,
    )


def selector(of: LabelSelector | None) -> Selector:
    """A label selector; none selects everything, as an empty one."""
    return labels.from_label_selector(of if of is not None else LabelSelector())


def _rule(namespace: str, peers: Iterable[NetworkPolicyPeer] | None, ports: Iterable[NetworkPolicyPort] | None) -> Rule:
    given = list(peers or ())
    found = [_peers(namespace, each) for each in given if each.ip_block is None]
    blocks = [block for each in given if each.ip_block for block in ranges(each.ip_block.cidr, each.ip_block.except_)]
    return Rule(not given, tuple(dict.fromkeys(found)), merged(blocks), tuple(_port(each) for each in ports or ()))


def _peers(namespace: str, peer: NetworkPolicyPeer) -> Peers:
    pods = selector(peer.pod_selector)
    if peer.namespace_selector is None:
        return Peers(namespace, selector(None), pods)
    return Peers("", selector(peer.namespace_selector), pods)


def _port(port: NetworkPolicyPort) -> Port:
    protocol = PROTOCOLS.get(port.protocol or "TCP", 0)
    if port.port is None:
        return Port(protocol)
    if isinstance(port.port, str):
        return Port(protocol, name=port.port)
    return Port(protocol, port.port, port.end_port or port.port)


def ranges(cidr: str | None, excepted: Iterable[str] | None) -> list[Range]:
    """The addresses of a block without those of its exceptions; nothing if the block is no network."""
    try:
        block = ipaddress.ip_network(cidr or "", strict=False)
    except ValueError:
        return []
    length = block.max_prefixlen // 8
    start, end = int(block.network_address), int(block.broadcast_address)
    holes = []
    for text in excepted or ():
        try:
            hole = ipaddress.ip_network(text, strict=False)
        except ValueError:
            continue
        if hole.version == block.version:
            holes.append((int(hole.network_address), int(hole.broadcast_address)))
    found = []
    for first, last in sorted(holes):
        if first > start:
            found.append((start, min(first - 1, end)))
        start = max(start, last + 1)
    if start <= end:
        found.append((start, end))
    return [(a.to_bytes(length, "big"), b.to_bytes(length, "big")) for a, b in found if a <= b]


def merged(found: Iterable[Range]) -> tuple[Range, ...]:
    """The same addresses as ranges that neither overlap nor touch: interval sets take no others."""
    result: list[Range] = []
    for first, last in sorted(found, key=lambda each: (len(each[0]), each)):
        length = len(first)
        before = result[-1] if result else None
        if before and len(before[0]) == length:
            after = int.from_bytes(before[1], "big") + 1
            if int.from_bytes(first, "big") <= after:
                result[-1] = before[0], max(before[1], last)
                continue
        result.append((first, last))
    return tuple(result)
