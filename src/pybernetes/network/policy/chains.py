"""Policies as nftables rules (pure).

    forward (0)   -> pods-egress[source]       -> a chain for the pod's policies -> a chain for each policy
    forward (1)   -> pods-ingress[destination] -> likewise; what a pod sends to no pod's address ends here
    input (0)     -> pods-egress[source]: what pods send to their node

A chain of a policy accepts what the policy allows, which ends its hook only: the other direction is judged by the next
hook. Every packet of a connection's first direction is judged, not only the first one, so that a changed policy holds
for connections that exist; answers pass. What the node itself sends to its pods is in no hook. Packets are seen after
the proxy has translated their destination and before their source is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables import objects
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.datatypes import IPV4, IPV6, PORT, PROTOCOL, VERDICT, concat
from pybernetes.network.nftables.objects import Chain, Hook, Set, Table

from .cluster_facts import ACCEPT, DENY, PASS
from .facts import EGRESS, INGRESS, LAST_PORT, Peers, Port, Rule

NAME = "network-policy"
ADDRESSES, BLOCKS, NAMED_PORTS = "addresses", "blocks", "named ports"
"""Kinds of sets: addresses of pods, ranges of addresses, (address, protocol, port) of pods."""
OWN, KNOWN, GUARDED, BROADCASTS = "own", "known", "guarded", "broadcasts"
_ICMPV6, _FIRST_NEIGHBOR, _LAST_NEIGHBOR = b"\x3a", b"\x82", b"\x8f"
"""ICMPv6 from multicast listener queries (130) to reports (143): neighbor discovery, which has to work on bridges."""
_ACTIONS = {ACCEPT: e.ACCEPT, DENY: e.DROP, PASS: e.RETURN}
_LINK_LOCAL, _LINK_LOCAL_MASK = b"\xfe\x80" + bytes(14), b"\xff\xc0" + bytes(14)
_MULTICAST = {4: (b"\xf0" + bytes(3), b"\xe0" + bytes(3)), 16: (b"\xff" + bytes(15), b"\xff" + bytes(15))}
"""By the length of an address the mask and the bits of multicast addresses."""
Expressions = list[bytes]


def pods_map(direction: str) -> str:
    """The verdict map from addresses of isolated pods to their chains."""
    return f"pods-{direction}"


class Family:
    """Rules of one IP version."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        self.address = IPV4 if number == e.IPV4 else IPV6
        self.length = self.address.length
        self.table = Table(name, NAME)
        self._words = self.length // 4

    def set(self, name: str, kind: str) -> Set:
        """A set of this kind."""
        if kind == NAMED_PORTS:
            return Set(name, concat(self.address, PROTOCOL, PORT))
        return Set(name, self.address, interval=kind == BLOCKS)

    def add_base(self, batch: Batch) -> None:
        """Adds what does not depend on policies."""
        table = self.table
        for direction in (INGRESS, EGRESS):
            batch.add_set(table, Set(pods_map(direction), self.address, VERDICT))
        batch.add_set(table, Set(OWN, concat(self.address, self.address)))
        batch.add_set(table, Set(KNOWN, self.address))
        batch.add_set(table, Set(GUARDED, self.address, interval=True))
        batch.add_set(table, Set(BROADCASTS, self.address))
        for name, hook, direction in (
            ("forward-egress", Hook("filter", objects.FORWARD, 0), EGRESS),
            ("forward-ingress", Hook("filter", objects.FORWARD, 1), INGRESS),
            ("input-egress", Hook("filter", objects.INPUT, 0), EGRESS),
        ):
            batch.add_chain(table, Chain(name, hook))
            for rule in self._base(direction):
                batch.add_rule(table, name, rule)
        for rule in self._roundabout():
            batch.add_rule(table, "forward-ingress", rule)

    def _base(self, direction: str) -> Iterable[Expressions]:
        register = e.REGISTER
        accept, load = e.verdict(e.ACCEPT), self._load(direction)
        yield [e.ct_direction(register), e.compare(register, bytes((e.REPLY,))), accept]
        related = struct.pack("=I", e.RELATED)
        yield [
            e.ct_state(register),
            e.bitwise(register, related),
            e.compare(register, bytes(4), e.NOT_EQUAL),
            accept,
        ]
        if self.number == e.IPV6:
            kind = e.payload(e.TRANSPORT, 0, 1, register)
            yield [
                *(e.meta(e.L4PROTO, register), e.compare(register, _ICMPV6)),
                *(kind, e.compare(register, _FIRST_NEIGHBOR, e.AT_LEAST)),
                *(e.compare(register, _LAST_NEIGHBOR, e.AT_MOST), accept),
            ]
        both = [e.source_address(self.number, register), e.destination_address(self.number, register + self._words)]
        yield [*both, e.lookup(OWN, register), accept]
        yield [*load, e.lookup(pods_map(direction), register, e.VERDICT_REGISTER)]
        yield [*load, e.lookup(GUARDED, register), e.lookup(KNOWN, register, inverted=True), e.verdict(e.DROP)]

    def _roundabout(self) -> Iterable[Expressions]:
        """Drops what reaches a pod on the same bridge under addresses that are no pod's, which no policy could judge.

        Link-local addresses are forwarded by bridges only, so that any is of one.
        """
        register, drop = e.REGISTER, e.verdict(e.DROP)
        source, target = e.source_address(self.number, register), e.destination_address(self.number, register)
        if self.number == e.IPV6:
            for address in (source, target):
                masked = e.bitwise(register, _LINK_LOCAL_MASK)
                yield [address, masked, e.compare(register, _LINK_LOCAL), drop]
        of_pod = [source, e.lookup(KNOWN, register)]
        mask, bits = _MULTICAST[self.length]
        yield [*of_pod, target, e.bitwise(register, mask), e.compare(register, bits), drop]
        if self.number == e.IPV4:
            yield [*of_pod, target, e.compare(register, b"\xff" * 4), drop]
        yield [*of_pod, target, e.lookup(BROADCASTS, register), drop]

    def pod_chain(self, policies: Iterable[str], admin: str = "", baseline: str = "") -> list[Expressions]:
        """The rules for pods that these policies (by their chains) isolate: first those of the tier Admin, then
        NetworkPolicies, whose word is final; those of the tier Baseline only where no NetworkPolicy isolates."""
        found = [[e.jump(admin)]] if admin else []
        isolating = [[e.jump(name)] for name in policies]
        if isolating:
            return [*found, *isolating, [e.verdict(e.DROP)]]
        return [*found, [e.jump(baseline)]] if baseline else found

    def tier_chain(
        self,
        direction: str,
        rules: Iterable[tuple[int, str, Rule]],
        peer_set: Callable[[Peers], str],
        block_set: Callable[[int], str],
        port_set: Callable[[Port], str],
    ) -> list[Expressions]:
        """The rules (number, action, what it matches) of a tier's ClusterNetworkPolicies, by their order. Pass returns
        to the pod's chain, and so skips the rest of the tier: a rule must not jump, even for a product of its peers and
        ports, of which the API allows 25 each."""
        found: list[Expressions] = []
        for number, action, rule in rules:
            ends = self._ports(rule, port_set)
            verdict = e.verdict(_ACTIONS[action])
            found += [
                [*peer, *end, verdict]
                for peer in self._peers(direction, number, rule, peer_set, block_set)
                for end in ends
            ]
        return found

    def policy_chain(
        self,
        direction: str,
        rules: Iterable[Rule],
        peer_set: Callable[[Peers], str],
        block_set: Callable[[int], str],
        port_set: Callable[[Port], str],
        ports_chain: Callable[[int], str],
    ) -> dict[str, list[Expressions]]:
        """The rules of a policy (under the empty name), and those of the chains for the ports of its rules."""
        found: dict[str, list[Expressions]] = {"": []}
        for number, rule in enumerate(rules):
            ends = [[*end, e.verdict(e.ACCEPT)] for end in self._ports(rule, port_set)]
            peers = self._peers(direction, number, rule, peer_set, block_set)
            if len(peers) > 1 and len(ends) > 1:  # a product of both could be arbitrarily large
                found[ports_chain(number)] = ends
                ends = [[e.jump(ports_chain(number))]]
            found[""] += [[*peer, *end] for peer in peers for end in ends]
        return found

    def _peers(
        self,
        direction: str,
        number: int,
        rule: Rule,
        peer_set: Callable[[Peers], str],
        block_set: Callable[[int], str],
    ) -> list[Expressions]:
        if rule.anyone:
            return [[]]
        names = [peer_set(each) for each in rule.peers]
        if any(len(first) == self.length for first, _ in rule.blocks):
            names.append(block_set(number))
        return [[*self._load(direction, other=True), e.lookup(name, e.REGISTER)] for name in names]

    def _ports(self, rule: Rule, port_set: Callable[[Port], str]) -> list[Expressions]:
        return [self._port(each, port_set) for each in rule.ports] if rule.ports else [[]]

    def _port(self, port: Port, port_set: Callable[[Port], str]) -> Expressions:
        register = e.REGISTER
        if port.name:
            protocol = register + self._words
            load = [e.destination_address(self.number, register), e.meta(e.L4PROTO, protocol)]
            return [*load, e.destination_port(protocol + 1), e.lookup(port_set(port), register)]
        found = [e.meta(e.L4PROTO, register), e.compare(register, bytes((port.protocol,)))]
        first, last = port.first.to_bytes(2, "big"), port.last.to_bytes(2, "big")
        if port.first == port.last:
            found += [e.destination_port(register), e.compare(register, first)]
        elif (port.first, port.last) != (0, LAST_PORT):
            limits = [e.compare(register, first, e.AT_LEAST), e.compare(register, last, e.AT_MOST)]
            found += [e.destination_port(register), *limits]
        return found

    def _load(self, direction: str, *, other: bool = False) -> Expressions:
        """Loads the address of the pod that is isolated in this direction, or of the other end."""
        load = e.source_address if (direction == EGRESS) != other else e.destination_address
        return [load(self.number, e.REGISTER)]


FAMILIES = (Family("ip", e.IPV4), Family("ip6", e.IPV6))
