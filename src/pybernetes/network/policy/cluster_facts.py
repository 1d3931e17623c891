"""Parses a ClusterNetworkPolicy (policy.networking.k8s.io/v1alpha2) for the compiler (pure).

It is a custom resource, so it arrives as a dict. What this does not know (peers `nodes` and `domainNames`, which are
experimental, or what a later version may add) fails closed, as the API asks for: an Accept rule with it matches
nothing, a Deny or Pass rule denies everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pybernetes.api.meta.v1 import LabelSelector
from pybernetes.client.keys import Key

from .facts import INGRESS, PROTOCOLS, Peers, Port, Range, Rule, merged, ranges, selector

ADMIN, BASELINE = "Admin", "Baseline"
TIERS = (ADMIN, BASELINE)
ACCEPT, DENY, PASS = "Accept", "Deny", "Pass"
ACTIONS = (ACCEPT, DENY, PASS)
EVERYONE = Rule(True)


@dataclass(frozen=True, slots=True)
class ClusterRule:
    """A rule of a ClusterNetworkPolicy and its action."""

    action: str
    rule: Rule


@dataclass(frozen=True, slots=True, eq=False)
class ClusterPolicy:
    """A ClusterNetworkPolicy. A changed one is another object: chains are kept by identity."""

    key: Key
    tier: str
    priority: int
    subject: Peers
    ingress: tuple[ClusterRule, ...]
    egress: tuple[ClusterRule, ...]
    spec: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def rules(self, direction: str) -> tuple[ClusterRule, ...]:
        """Its rules for a direction, the first that matches counts; without any it does not affect the direction."""
        return self.ingress if direction == INGRESS else self.egress

    @property
    def order(self) -> tuple[int, Key]:
        """Its place among those of its tier."""
        return self.priority, self.key


def cluster_policy_facts(policy: Mapping[str, Any]) -> ClusterPolicy:
    """Parse a ClusterNetworkPolicy. Raises ValueError with the field that cannot be read."""
    spec, name = policy.get("spec") or {}, str((policy.get("metadata") or {}).get("name", ""))
    tier, priority = spec.get("tier"), spec.get("priority")
    if tier not in TIERS:
        raise ValueError(f"spec.tier: {tier!r} is neither Admin nor Baseline")
    if not isinstance(priority, int):
        raise ValueError(f"spec.priority: {priority!r} is not a number")
    subject = _pods(spec.get("subject") or {}, "spec.subject")
    if subject is None:
        raise ValueError("spec.subject: neither namespaces nor pods")
    found = {
        direction: tuple(
            _rule(each, peers, f"spec.{direction}[{index}]") for index, each in enumerate(spec.get(direction) or ())
        )
        for direction, peers in (("ingress", "from"), ("egress", "to"))
    }
    return ClusterPolicy(Key("", name), tier, priority, subject, found["ingress"], found["egress"], spec)


def _rule(rule: Mapping[str, Any], peers: str, where: str) -> ClusterRule:
    action = rule.get("action")
    if action not in ACTIONS:
        raise ValueError(f"{where}.action: {action!r} is not one of {', '.join(ACTIONS)}")
    pods: list[Peers] = []
    blocks: list[Range] = []
    ports: list[Port] = []
    known = bool(rule.get(peers))
    for index, each in enumerate(rule.get(peers) or ()):
        if each.get("networks"):
            blocks += [block for cidr in each["networks"] for block in ranges(cidr, ())]
        elif (found := _pods(each, f"{where}.{peers}[{index}]")) is not None:
            pods.append(found)
        else:
            known = False
    for index, each in enumerate(rule.get("protocols") or ()):
        some = _ports(each, f"{where}.protocols[{index}]")
        known = known and bool(some)
        ports += some
    if not known:
        return ClusterRule(ACCEPT, Rule(False)) if action == ACCEPT else ClusterRule(DENY, EVERYONE)
    return ClusterRule(action, Rule(False, tuple(dict.fromkeys(pods)), merged(blocks), tuple(ports)))


def _pods(peer: Mapping[str, Any], where: str) -> Peers | None:
    """The pods that a subject or a peer selects; None if it selects something else."""
    if "namespaces" in peer:
        return Peers("", _selector(peer["namespaces"], f"{where}.namespaces"), selector(None))
    if "pods" in peer:
        pods, path = peer["pods"] or {}, f"{where}.pods"
        namespaces = _selector(pods.get("namespaceSelector"), f"{path}.namespaceSelector")
        return Peers("", namespaces, _selector(pods.get("podSelector"), f"{path}.podSelector"))
    return None


def _selector(of: Any, where: str) -> Any:
    try:
        return selector(msgspec.convert(of or {}, LabelSelector))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _ports(protocol: Mapping[str, Any], where: str) -> list[Port]:
    """The ports that an entry of `protocols` names; none if it names something else."""
    if name := protocol.get("destinationNamedPort"):
        return [Port(each, name=str(name)) for each in PROTOCOLS.values()]
    for kind, number in PROTOCOLS.items():
        if kind.lower() not in protocol:
            continue
        port = (protocol[kind.lower()] or {}).get("destinationPort")
        if port is None:
            return [Port(number)]
        limits = port.get("range") or {}
        first, last = port.get("number", limits.get("start")), port.get("number", limits.get("end"))
        if not isinstance(first, int) or not isinstance(last, int):
            raise ValueError(f"{where}.{kind.lower()}.destinationPort: neither number nor range")
        return [Port(number, first, last)]
    return []
