"""NetworkPolicies and pods for tests, in short words."""

from __future__ import annotations

import ipaddress
from typing import Any

import msgspec

from pybernetes.api.networking.v1 import NetworkPolicy
from pybernetes.client.keys import Key
from pybernetes.network.policy.cluster_facts import ClusterPolicy, cluster_policy_facts
from pybernetes.network.policy.facts import PodFacts, Policy, policy_facts


def policy(name: str, namespace: str = "x", **spec: Any) -> Policy:
    """A policy for all pods of a namespace, unless its spec says other."""
    content = {"metadata": {"name": name, "namespace": namespace}, "spec": {"podSelector": {}, **spec}}
    return policy_facts(msgspec.convert(content, NetworkPolicy))


def cluster_policy(name: str, tier: str, priority: int, subject: Any = None, **rules: Any) -> ClusterPolicy:
    """A ClusterNetworkPolicy for all pods, unless a subject says other."""
    spec = {"tier": tier, "priority": priority, "subject": subject or {"namespaces": {}}, **rules}
    return cluster_policy_facts({"metadata": {"name": name}, "spec": spec})


def pod(*addresses: str, namespace: str = "x", local: bool = True, ports: Any = (), **labels: str) -> PodFacts:
    packed = tuple(ipaddress.ip_address(each).packed for each in addresses)
    return PodFacts(namespace, labels, packed, tuple(ports), local)


def key(name: str, namespace: str = "x") -> Key:
    return Key(namespace, name)


def labels(**of: str) -> dict[str, Any]:
    return {"matchLabels": of}
