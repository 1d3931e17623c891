"""The verdict on one connection, straight from the policies, with its reason (pure).

It shares nothing with the compiler but the parsed policies, so that each checks the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
    """The policy that allows it."""


def judge(
    policies: Iterable[Policy],
    namespaces: Mapping[str, Mapping[str, str]],
    source: End,
    target: End,
    protocol: int,
    port: int,
) -> list[Verdict]:
    """The verdicts on both ends, egress first; the connection is allowed if all allow it."""
    known = list(policies)
    found = []
    if source.address == target.address:
        return [Verdict(True)]  # a pod may always reach itself
    for direction, own, other in ((EGRESS, source, target), (INGRESS, target, source)):
        if own.pod is not None:
            found.append(_end(known, namespaces, direction, own.pod, other, target, protocol, port))
    return found


def _end(
    policies: list[Policy],
    namespaces: Mapping[str, Mapping[str, str]],
    direction: str,
    pod: PodFacts,
    other: End,
    target: End,
    protocol: int,
    port: int,
) -> Verdict:
    selected = [
        each
        for each in policies
        if each.key.namespace == pod.namespace and each.rules(direction) is not None and each.pods.matches(pod.labels)
    ]
    names = tuple(str(each.key) for each in selected)
    if not selected:
        return Verdict(True, direction)
    for each in selected:
        for rule in each.rules(direction) or ():
            if _peer(rule, other, namespaces) and _port(rule, target, protocol, port):
                return Verdict(True, direction, names, str(each.key))
    return Verdict(False, direction, names)


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
