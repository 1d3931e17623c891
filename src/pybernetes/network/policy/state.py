"""All policies, pods and namespaces, and the sets and chains of the kernel that follow from them (pure).

Only policies that isolate a pod of this node have chains here, and only the peers that these name have sets. A change
costs the work on what it touches: a pod is compared with the peers and with the policies of its namespace, a policy
with the pods that it names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pybernetes.client.keys import Key
from pybernetes.network.nftables import datatypes

from . import chains
from .chains import ADDRESSES, BLOCKS, NAMED_PORTS, Family
from .cluster_facts import ADMIN, BASELINE, ClusterPolicy
from .content import Content
from .facts import DIRECTIONS, Peers, PodFacts, Policy, Port, Range, Rule

ISOLATION = tuple[str, tuple[Key, ...], tuple[ClusterPolicy, ...]]
"""A direction, the NetworkPolicies that isolate in it, and the ClusterNetworkPolicies that have rules for it by their
order: pods with the same share a chain."""


class PolicyState:
    """Objects in, content of the tables out."""

    def __init__(self, families: Iterable[Family] = chains.FAMILIES) -> None:
        self.families = tuple(families)
        self.content = {family.name: Content() for family in self.families}
        self._pods: dict[Key, PodFacts] = {}
        self._by_namespace: dict[str, dict[Key, PodFacts]] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._policies: dict[Key, Policy] = {}
        self._isolating: dict[str, dict[Key, Policy]] = {}
        """Policies by namespace."""
        self._cluster: list[ClusterPolicy] = []
        """ClusterNetworkPolicies, in the order in which they are evaluated."""
        self._isolated: dict[Key, list[ISOLATION]] = {}
        """Local pods that policies isolate."""
        self._owners: dict[bytes, set[Key]] = {}
        """Local pods by address."""
        self._waiting: set[Key] = set()
        """Isolated pods of this node that have no address yet."""
        self._pod_chains: Counter[ISOLATION] = Counter()
        self._used: Counter[tuple[str, Key]] = Counter()
        """Chains of policies, with how many pod chains lead there."""
        self._compiled: dict[tuple[str, Key], _Used] = {}
        self._tiers: dict[ISOLATION, _Used] = {}
        """The objects that the chains of a pod's ClusterNetworkPolicies refer to."""
        self._peers: Counter[Peers] = Counter()
        self._ports: Counter[Port] = Counter()
        self._names: dict[object, str] = {}
        self._next = 0
        self._ranges: tuple[Range, ...] = ()
        self._guarding = False

    def __bool__(self) -> bool:
        return bool(self._policies or self._cluster)

    # Objects

    def put_pod(self, key: Key, pod: PodFacts | None) -> None:
        """A pod as it is now; None: it is gone, or policies do not apply to it."""
        old = self._pods.get(key)
        if old == pod:
            return
        for peers in self._peers:
            self._move(peers, old, pod)
        for port in self._ports:
            self._move_ports(port, old, pod)
        self._by_namespace.setdefault((pod or old or _NOWHERE).namespace, {}).pop(key, None)
        if pod is None:
            del self._pods[key]
        else:
            self._pods[key] = self._by_namespace[pod.namespace][key] = pod
        self._move_local(key, old, pod)
        self._isolate(key, old, pod)
        self._guard()

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """The labels of a namespace; None: it is gone."""
        old = self._namespaces.get(name)
        if old == labels:
            return
        for peers in self._peers:
            if peers.namespace:
                continue
            before, after = (each is not None and peers.in_namespace(name, each) for each in (old, labels))
            if before != after:
                for pod in self._by_namespace.get(name, {}).values():
                    if peers.pods.matches(pod.labels):
                        self._count(self._names[peers], pod, 1 if after else -1)
        if labels is None:
            del self._namespaces[name]
        else:
            self._namespaces[name] = labels
        if self._cluster:
            self._isolate_again(self._by_namespace.get(name, {}))

    def put_policy(self, key: Key, policy: Policy | None) -> None:
        """A policy as it is now; None: it is gone."""
        old = self._policies.get(key)
        if old == policy:
            return
        of_namespace = self._isolating.setdefault(key.namespace, {})
        of_namespace.pop(key, None)
        if policy is None:
            del self._policies[key]
        else:
            self._policies[key] = of_namespace[key] = policy
        for direction in DIRECTIONS:
            if (direction, key) in self._compiled and policy is not None:
                before = self._compiled.pop((direction, key))
                self._compile(direction, policy)
                self._release(direction, key, before)
        self._isolate_again(self._by_namespace.get(key.namespace, {}))

    def put_cluster_policies(self, policies: Iterable[ClusterPolicy]) -> None:
        """All ClusterNetworkPolicies as they are now."""
        had = {each.key: each for each in self._cluster}
        # One that is as before stays the same object, and with it the chains that it is in.
        now = [had[each.key] if each.key in had and had[each.key].spec == each.spec else each for each in policies]
        now.sort(key=lambda each: each.order)
        if now != self._cluster:
            self._cluster = now
            self._isolate_again(self._pods)

    def set_ranges(self, ranges: Iterable[Range]) -> None:
        """The addresses that pods of this node get."""
        if self._guarding:
            self._count_ranges(-1)
        self._count_broadcasts(-1)
        self._ranges = tuple(ranges)
        self._count_broadcasts(1)
        if self._guarding:
            self._count_ranges(1)

    def isolating(self) -> int:
        """How many pods of this node are isolated."""
        return len(self._isolated)

    def committed(self) -> None:
        """The kernel has it all."""
        for each in self.content.values():
            each.committed()

    # Members of sets

    def _selects(self, peers: Peers, pod: PodFacts | None) -> bool:
        if pod is None or not pod.addresses:
            return False
        labels = self._namespaces.get(pod.namespace)
        there = peers.namespace == pod.namespace if peers.namespace else labels is not None
        return there and peers.in_namespace(pod.namespace, labels) and peers.pods.matches(pod.labels)

    def _move(self, peers: Peers, old: PodFacts | None, new: PodFacts | None) -> None:
        before, after = self._selects(peers, old), self._selects(peers, new)
        if before and after and old and new and old.addresses == new.addresses:
            return
        for pod, there, by in ((old, before, -1), (new, after, 1)):
            if there and pod is not None:
                self._count(self._names[peers], pod, by)

    def _count(self, name: str, pod: PodFacts, by: int) -> None:
        for family in self.families:
            for address in pod.addresses:
                if len(address) == family.length:
                    self.content[family.name].count(name, address, by)

    def _move_ports(self, port: Port, old: PodFacts | None, new: PodFacts | None) -> None:
        for pod, by in ((old, -1), (new, 1)):
            self._count_ports(port, pod, by)

    def _count_ports(self, port: Port, pod: PodFacts | None, by: int) -> None:
        if pod is None:
            return
        for number in {each[2] for each in pod.ports if each[:2] == (port.name, port.protocol)}:
            tail = datatypes.protocol(port.protocol) + datatypes.port(number)
            for family in self.families:
                for address in pod.addresses:
                    if len(address) == family.length:
                        self.content[family.name].count(self._names[port], address + tail, by)

    def _move_local(self, key: Key, old: PodFacts | None, new: PodFacts | None) -> None:
        for address in old.addresses if old and old.local else ():
            self._owners[address].discard(key)
            if not self._owners[address]:
                del self._owners[address]
        for address in new.addresses if new and new.local else ():
            self._owners.setdefault(address, set()).add(key)
        for pod, by in ((old, -1), (new, 1)):
            if pod is None or not pod.local:
                continue
            self._count(chains.KNOWN, pod, by)
            for family in self.families:
                for address in pod.addresses:
                    if len(address) == family.length:
                        self.content[family.name].count(chains.OWN, address + address, by)

    # Isolation

    def _isolate_again(self, pods: Mapping[Key, PodFacts]) -> None:
        """Looks which policies isolate these pods now."""
        for key, pod in pods.items():
            if pod.local:
                self._isolate(key, pod, pod)
        self._guard()

    def _selecting(self, pod: PodFacts) -> list[ClusterPolicy]:
        """The ClusterNetworkPolicies whose subject a pod is."""
        labels = self._namespaces.get(pod.namespace)
        if labels is None:
            return []
        subjects = ((each, each.subject) for each in self._cluster)
        return [each for each, of in subjects if of.namespaces.matches(labels) and of.pods.matches(pod.labels)]

    def _isolate(self, key: Key, old: PodFacts | None, pod: PodFacts | None) -> None:
        """Leads the packets of a local pod to the policies that isolate it."""
        now: list[ISOLATION] = []
        if pod is not None and pod.local:
            selecting = [
                each for each in self._isolating.get(pod.namespace, {}).values() if each.pods.matches(pod.labels)
            ]
            cluster = self._selecting(pod) if self._cluster else []
            for direction in DIRECTIONS:
                names = tuple(sorted(each.key for each in selecting if each.rules(direction) is not None))
                tiers = tuple(each for each in cluster if each.rules(direction))
                if names or tiers:
                    now.append((direction, names, tiers))
        before = self._isolated.get(key, [])
        for each in now:
            if each not in before:
                self._use(each)
        addresses = {address for each in (old, pod) if each and each.local for address in each.addresses}
        leading = {each[0]: self._names[each] for each in now}
        for direction in DIRECTIONS:
            chain = leading.get(direction, "")
            for family in self.families:
                for address in addresses:
                    if len(address) == family.length:
                        here = chain if pod is not None and address in pod.addresses else ""
                        self._lead(family, direction, address, here, key)
        for each in before:
            if each not in now:
                self._unuse(each)
        if now:
            self._isolated[key] = now
        else:
            self._isolated.pop(key, None)
        if now and pod is not None and not pod.addresses:
            self._waiting.add(key)
        else:
            self._waiting.discard(key)

    def _lead(self, family: Family, direction: str, address: bytes, chain: str, key: Key) -> None:
        if not chain:  # another pod may have got the address before this one was gone
            for other in self._owners.get(address, ()):
                for each in self._isolated.get(other, ()) if other != key else ():
                    if each[0] == direction:
                        chain = self._names[each]
        self.content[family.name].set_verdict(chains.pods_map(direction), address, chain)

    def _use(self, isolation: ISOLATION) -> None:
        self._pod_chains[isolation] += 1
        if self._pod_chains[isolation] > 1:
            return
        direction, keys, cluster = isolation
        names = []
        for key in keys:
            self._used[direction, key] += 1
            if self._used[direction, key] == 1:
                self._compile(direction, self._policies[key])
            names.append(self._names[direction, key])
        name = self._name(isolation, f"pod-{direction}")
        tiers = self._compile_tiers(isolation, name) if cluster else {}
        for family in self.families:
            self.content[family.name].set_chain(
                name, family.pod_chain(names, tiers.get(ADMIN, ""), tiers.get(BASELINE, ""))
            )

    def _unuse(self, isolation: ISOLATION) -> None:
        self._pod_chains[isolation] -= 1
        if self._pod_chains[isolation]:
            return
        del self._pod_chains[isolation]
        direction, keys, _ = isolation
        name = self._names.pop(isolation)
        for content in self.content.values():
            content.set_chain(name, None)
        if isolation in self._tiers:
            self._give_up(self._tiers.pop(isolation))
        for key in keys:
            self._used[direction, key] -= 1
            if not self._used[direction, key]:
                del self._used[direction, key]
                self._release(direction, key, self._compiled.pop((direction, key)))

    # Chains of policies

    def _compile(self, direction: str, policy: Policy) -> None:
        rules = policy.rules(direction) or ()
        own = self._name((direction, policy.key), f"policy-{direction}")
        used = self._use_rules((direction, policy.key), rules)
        for family in self.families:
            content = self.content[family.name]
            made = family.policy_chain(
                direction,
                rules,
                lambda peers: self._names[peers],
                lambda number: used.blocks[number][0],
                lambda port: self._names[port],
                lambda number: f"{own}-ports-{number}",
            )
            for name, content_rules in made.items():
                content.set_chain(name or own, content_rules)
                used.chains.add((family.name, name or own))
        self._compiled[direction, policy.key] = used

    def _compile_tiers(self, isolation: ISOLATION, chain: str) -> dict[str, str]:
        """Makes the chains of the tiers of ClusterNetworkPolicies for a pod chain; their names by tier."""
        direction, _, cluster = isolation
        ruled = [(each.tier, rule) for each in cluster for rule in each.rules(direction)]
        used = self._tiers[isolation] = self._use_rules(isolation, [rule.rule for _, rule in ruled])
        found = {}
        for tier in {tier for tier, _ in ruled}:
            name = found[tier] = f"{chain}-{tier.lower()}"
            rules = [(number, rule.action, rule.rule) for number, (of, rule) in enumerate(ruled) if of == tier]
            for family in self.families:
                made = family.tier_chain(
                    direction,
                    rules,
                    lambda peers: self._names[peers],
                    lambda number: used.blocks[number][0],
                    lambda port: self._names[port],
                )
                self.content[family.name].set_chain(name, made)
                used.chains.add((family.name, name))
        return found

    def _use_rules(self, owner: object, rules: Sequence[Rule]) -> _Used:
        """Makes the sets that rules refer to; by their numbers those of blocks."""
        used = _Used()
        for number, rule in enumerate(rules):
            for peers in rule.peers:
                self._use_peers(peers)
                used.peers.append(peers)
            for port in rule.ports:
                if port.name:
                    self._use_port(port)
                    used.ports.append(port)
            if rule.blocks:
                where = (owner, number, rule.blocks)
                used.blocks[number] = self._name(where, "blocks"), where
        for family in self.families:
            content = self.content[family.name]
            for number, (name, _) in used.blocks.items():
                mine = [each for each in rules[number].blocks if len(each[0]) == family.length]
                if mine and name not in content.sets:
                    content.add_set(name, BLOCKS)
                    for each in mine:
                        content.count(name, each, 1)
        return used

    def _release(self, direction: str, key: Key, used: _Used) -> None:
        """Gives up what a chain of a policy used, unless its new form uses it too."""
        now = self._compiled.get((direction, key))
        self._give_up(used, now)
        if now is None:
            self._names.pop((direction, key), None)

    def _give_up(self, used: _Used, now: _Used | None = None) -> None:
        """Removes the chains and sets that nothing uses any longer; `now`: what the same chain uses in its new form."""
        kept = {name for name, _ in now.blocks.values()} if now else set()
        for family, name in used.chains - (now.chains if now else set()):
            self.content[family].set_chain(name, None)
        for content in self.content.values():
            for name, _ in used.blocks.values():
                if name not in kept and name in content.sets:
                    content.remove_set(name)
        for name, where in used.blocks.values():
            if name not in kept:
                self._names.pop(where, None)
        for peers in used.peers:
            self._unuse_peers(peers)
        for port in used.ports:
            self._unuse_port(port)

    def _use_peers(self, peers: Peers) -> None:
        self._peers[peers] += 1
        if self._peers[peers] > 1:
            return
        name = self._name(peers, "peers")
        for content in self.content.values():
            content.add_set(name, ADDRESSES)
        pods = self._by_namespace.get(peers.namespace, {}) if peers.namespace else self._pods
        for pod in pods.values():
            if self._selects(peers, pod):
                self._count(name, pod, 1)

    def _unuse_peers(self, peers: Peers) -> None:
        self._peers[peers] -= 1
        if not self._peers[peers]:
            del self._peers[peers]
            self._drop_set(peers)

    def _use_port(self, port: Port) -> None:
        self._ports[port] += 1
        if self._ports[port] > 1:
            return
        name = self._name(port, "ports")
        for content in self.content.values():
            content.add_set(name, NAMED_PORTS)
        for pod in self._pods.values():
            self._count_ports(port, pod, 1)

    def _unuse_port(self, port: Port) -> None:
        self._ports[port] -= 1
        if not self._ports[port]:
            del self._ports[port]
            self._drop_set(port)

    def _drop_set(self, of: object) -> None:
        name = self._names.pop(of)
        for content in self.content.values():
            content.remove_set(name)

    def _name(self, of: object, kind: str) -> str:
        """A name that was never used before, unless this has one."""
        found = self._names.get(of)
        if found is None:
            self._next += 1
            found = self._names[of] = f"{kind}-{self._next}"
        return found

    # Pods that start

    def _guard(self) -> None:
        """While a pod starts that a policy isolates, addresses of no known pod have no connections: it may have one."""
        waiting = bool(self._waiting)
        if waiting != self._guarding:
            self._guarding = waiting
            self._count_ranges(1 if waiting else -1)

    def _count_ranges(self, by: int) -> None:
        for family in self.families:
            for each in self._ranges:
                if len(each[0]) == family.length:
                    self.content[family.name].count(chains.GUARDED, each, by)

    def _count_broadcasts(self, by: int) -> None:
        for family in self.families:
            for last in (each[1] for each in self._ranges):
                if len(last) == family.length == 4:  # IPv6 has no broadcasts: a pod may have the last address
                    self.content[family.name].count(chains.BROADCASTS, last, by)


@dataclass(slots=True)
class _Used:
    """The objects that a policy's chain refers to."""

    peers: list[Peers] = field(default_factory=list)
    ports: list[Port] = field(default_factory=list)
    blocks: dict[int, tuple[str, object]] = field(default_factory=dict)
    chains: set[tuple[str, str]] = field(default_factory=set)
    """IP version and name: a rule may need a chain for its ports in one of them alone."""


_NOWHERE = PodFacts("", {})
