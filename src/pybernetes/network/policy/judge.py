"""The verdict on one connection, straight from the policies, with its reason (pure).

It shares nothing with the compiler but the parsed policies, so that each checks the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .cluster_facts import ACCEPT, ADMIN, BASELINE, PASS, ClusterPolicy
from .facts import EGRESS, INGRESS, Peers, PodFacts, Policy, Port, Rule


@dataclass(frozen=True, slots=True)
class End:
    """One end of a connection: a pod, or just an address."""

    address: bytes
    pod: PodFacts | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a connection is allowed; `policies` are those that isolate the pod in this direction."""

    allowed: bool
    direction: str = ""
    policies: tuple[str, ...] = ()
    by: str = ""
    """The policy that allows it, or the ClusterNetworkPolicy that denies it."""
    tier: str = ""
    """Of the ClusterNetworkPolicy that decides; empty if NetworkPolicies do, or nothing."""


def judge(
    policies: Iterable[Policy],
    namespaces: Mapping[str, Mapping[str, str]],
    source: End,
    target: End,
    protocol: int,
    port: int,
    cluster: Iterable[ClusterPolicy] = (),
) -> list[Verdict]:
    """The verdicts on both ends, egress first; the connection is allowed if all allow it."""
    known = list(policies)
    ordered = sorted(cluster, key=lambda each: each.order)
    found = []
    if source.address == target.address:
        return [Verdict(True)]  # a pod may always reach itself
    for direction, own, other in ((EGRESS, source, target), (INGRESS, target, source)):
        if own.pod is not None:
            connection = _Connection(namespaces, direction, own.pod, other, target, protocol, port)
            found.append(
                connection.tier(ordered, ADMIN)
                or connection.network_policies(known)
                or connection.tier(ordered, BASELINE)
                or Verdict(True, direction)
            )
    return found


@dataclass(frozen=True, slots=True)
class _Connection:
    """A connection, seen from the end whose policies are asked."""

    namespaces: Mapping[str, Mapping[str, str]]
    direction: str
    pod: PodFacts
    other: End
    target: End
    protocol: int
    port: int

    def tier(self, policies: list[ClusterPolicy], tier: str) -> Verdict | None:
        """The verdict of a tier of ClusterNetworkPolicies; None if it has none."""
        for each in policies:
            if each.tier != tier or not _selects(each.subject, self.pod, self.namespaces):
                continue
            for rule in each.rules(self.direction):
                if self.matches(rule.rule):
                    if rule.action == PASS:
                        return None
                    return Verdict(rule.action == ACCEPT, self.direction, (), str(each.key), tier)
        return None

    def network_policies(self, policies: list[Policy]) -> Verdict | None:
        """The verdict of NetworkPolicies; None if none isolates the pod in this direction."""
        selected = [
            each
            for each in policies
            if each.key.namespace == self.pod.namespace
            and each.rules(self.direction) is not None
            and each.pods.matches(self.pod.labels)
        ]
        if not selected:
            return None
        names = tuple(str(each.key) for each in selected)
        for each in selected:
            if any(self.matches(rule) for rule in each.rules(self.direction) or ()):
                return Verdict(True, self.direction, names, str(each.key))
        return Verdict(False, self.direction, names)

    def matches(self, rule: Rule) -> bool:
        """Whether a rule is about this connection."""
        return _peer(rule, self.other, self.namespaces) and _port(rule, self.target, self.protocol, self.port)


def _peer(rule: Rule, other: End, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
    if rule.anyone:
        return True
    if any(len(first) == len(other.address) and first <= other.address <= last for first, last in rule.blocks):
        return True
    return other.pod is not None and any(_selects(each, other.pod, namespaces) for each in rule.peers)


def _selects(peers: Peers, pod: PodFacts, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
    return peers.in_namespace(pod.namespace, namespaces.get(pod.namespace)) and peers.pods.matches(pod.labels)


def _port(rule: Rule, target: End, protocol: int, port: int) -> bool:
    return not rule.ports or any(_is(each, target, protocol, port) for each in rule.ports)


def _is(wanted: Port, target: End, protocol: int, port: int) -> bool:
    if wanted.protocol != protocol:
        return False
    if wanted.name:
        return target.pod is not None and (wanted.name, protocol, port) in target.pod.ports
    return wanted.first <= port <= wanted.last
