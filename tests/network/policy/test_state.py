"""Sets and chains after any sequence of changes are those that the same objects give from nothing."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from network.policy.objects import cluster_policy, key, labels, pod, policy

from pybernetes.client.keys import Key
from pybernetes.network.policy.cluster_facts import ClusterPolicy
from pybernetes.network.policy.facts import PodFacts, Policy
from pybernetes.network.policy.state import PolicyState

NAMESPACES, VALUES = ("x", "y", "z"), ("a", "b", "c")


class World:
    """Objects that change by chance, and the state that follows them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.state = PolicyState()
        self.pods: dict[Key, PodFacts | None] = {}
        self.namespaces: dict[str, dict[str, str] | None] = {}
        self.policies: dict[Key, Policy | None] = {}
        self.cluster: dict[str, ClusterPolicy] = {}

    def step(self) -> None:
        self.random.choice([self.pod, self.pod, self.namespace, self.policy, self.policy, self.cluster_policies])()
        if self.random.random() < 0.3:
            self.state.committed()

    def pod(self) -> None:
        number, namespace = self.random.randrange(8), self.random.randrange(3)
        name = key(f"pod{number}", NAMESPACES[namespace])
        made = None
        if self.random.random() < 0.8:
            # One that starts has no address yet, and one that starts again may have another.
            own = f"10.{self.random.randrange(2)}.{namespace}.{number}"
            address = [own] if self.random.random() < 0.8 else []
            made = pod(
                *address,
                namespace=name.namespace,
                local=self.random.random() < 0.7,
                ports=(("web", 6, self.random.choice((80, 81))),),
                app=self.random.choice(VALUES),
            )
        if made is not None or self.pods.get(name) is not None:
            self.pods[name] = made
            self.state.put_pod(name, made)

    def namespace(self) -> None:
        name = self.random.choice(NAMESPACES)
        made = {"ns": self.random.choice(VALUES)} if self.random.random() < 0.8 else None
        if made is not None or self.namespaces.get(name) is not None:
            self.namespaces[name] = made
            self.state.put_namespace(name, made)

    def policy(self) -> None:
        name = key(f"policy{self.random.randrange(4)}", self.random.choice(NAMESPACES))
        made = None
        if self.random.random() < 0.7:
            peers = [self.peer() for _ in range(self.random.randrange(3))]
            rules = {"ingress": [{"from": peers, "ports": self.ports()}], "egress": [{"to": peers}]}
            types = self.random.choice((["Ingress"], ["Egress"], ["Ingress", "Egress"]))
            subject = labels(app=self.random.choice(VALUES)) if self.random.random() < 0.7 else {}
            made = policy(name.name, name.namespace, podSelector=subject, policyTypes=types, **rules)
        if made is not None or self.policies.get(name) is not None:
            self.policies[name] = made
            self.state.put_policy(name, made)

    def cluster_policies(self) -> None:
        name = f"cluster{self.random.randrange(3)}"
        self.cluster.pop(name, None)
        if self.random.random() < 0.6:
            peers: list[Any] = [{"namespaces": labels(ns=self.random.choice(VALUES))}]
            rule = {"action": self.random.choice(("Accept", "Deny", "Pass"))}
            to = [*peers, {"networks": ["192.0.2.0/24"]}]
            protocols = self.random.choice(({}, {"protocols": [{"destinationNamedPort": "web"}]}))
            self.cluster[name] = cluster_policy(
                name,
                self.random.choice(("Admin", "Baseline")),
                self.random.randrange(3),
                self.random.choice((None, {"namespaces": labels(ns=self.random.choice(VALUES))})),
                ingress=[{**rule, "from": peers, **protocols}],
                egress=[{**rule, "to": to}],
            )
        self.state.put_cluster_policies(list(self.cluster.values()))

    def peer(self) -> dict[str, Any]:
        pods = {"podSelector": labels(app=self.random.choice(VALUES))}
        namespaces = {"namespaceSelector": labels(ns=self.random.choice(VALUES))}
        return self.random.choice((pods, namespaces, {**pods, **namespaces}, {"ipBlock": {"cidr": "192.0.2.0/24"}}))

    def ports(self) -> list[dict[str, Any]]:
        return self.random.choice(([], [{"port": "web"}], [{"port": 80}, {"port": "web"}]))

    def fresh(self) -> PolicyState:
        """A state that never saw anything but the objects as they are."""
        made = PolicyState()
        made.put_cluster_policies(list(self.cluster.values()))
        for name, of in self.namespaces.items():
            made.put_namespace(name, of)
        for where, policy_ in self.policies.items():
            made.put_policy(where, policy_)
        for where, pod_ in self.pods.items():
            made.put_pod(where, pod_)
        return made


def content(state: PolicyState) -> dict[str, Any]:
    """What the tables have, without the names that depend on what was there before."""
    found: dict[str, Any] = {}
    for family, each in state.content.items():
        known = {"own", "known", "guarded", "broadcasts"}
        found[family] = {
            "sets": Counter((kind, frozenset(each.elements.get(name, ()))) for name, kind in each.sets.items()),
            "own": {name: set(each.elements.get(name, ())) for name in known},
            "chains": Counter(len(rules) for rules in each.chains.values()),
            "verdicts": {
                name: {address: len(each.chains[chain]) for address, chain in of.items()}
                for name, of in each.verdicts.items()
                if of
            },
            "leftovers": sorted(each.elements.keys() - each.sets.keys() - known),
        }
    return found


@pytest.mark.parametrize("seed", [1, 2, 203, 222])
def test_changes_in_any_order_end_with_what_the_objects_say(seed: int) -> None:
    world = World(seed)
    for number in range(400):
        world.step()
        if number % 20 == 19:
            assert content(world.state) == content(world.fresh()), number
