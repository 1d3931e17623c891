"""The chains and rules of the proxy's table (pure).

    prerouting, output (dstnat)   -> services -> frontends and routes maps -> a chain for each `Route` -> dnat
    postrouting (srcnat)          masquerades what is marked, and pods that reach themselves
    prerouting, output (before)   drops what a load balancer's source ranges do not allow
    input, forward, output        refuses Services without endpoints, and unused addresses of the Service range

Registers: source address, destination address, protocol, destination port, then index or endpoint address, endpoint
port. So one load serves the keys of all maps: a frontend begins at the destination, an affinity at the source.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables import objects
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.objects import Chain, Hook, Table, element

from . import frontends
from .frontends import INTERNAL_OFFSET, Family, Route

Rule = list[bytes]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The settings of the configuration and the node that rules depend on."""

    cluster_cidrs: tuple[Network, ...] = ()
    """Where packets of pods come from; others are masqueraded on their way to a cluster IP."""
    local_interface: str = ""
    """Instead of cluster CIDRs: packets of pods come by this interface (with a `*` at its end: by such ones)."""
    service_cidrs: tuple[Network, ...] = ()
    node_port_networks: tuple[Network, ...] | None = None
    """The node's addresses that have node ports; None = all but the loopback device's."""
    masquerade_all: bool = False
    mark: int = 0x4000


class Rules:
    """The rules of one IP version's table."""

    def __init__(self, table: Table, family: Family, facts: TableFacts) -> None:
        self.table, self.family, self.facts = table, family, facts
        words = family.length // 4
        self.source = e.REGISTER
        self.destination = e.REGISTER + words
        self.protocol = e.REGISTER + 2 * words
        self.port = self.protocol + 1
        self.endpoint = self.port + 1
        self.endpoint_port = self.endpoint + words
        self.saved = e.REGISTER + 15

    def add_base(self, batch: Batch) -> None:
        """Adds the chains that do not depend on Services."""
        plain = {
            "services": self._services(),
            "node-ports": [[*self._load(node_port=True), *self._follow(frontends.FRONTENDS)]],
            "mark-off-cluster": self._mark_off_cluster(),
            "firewall-check": [self._firewall()],
            "no-endpoints-check": self._no_endpoints(),
            "node-ports-check": [
                [*self._load(node_port=True), *self._follow(frontends.NO_ENDPOINTS, frontends.REFUSALS)]
            ],
            "refuse": self._refuse(),
            "cluster-ips-check": self._cluster_ips(),
        }
        new = _new_connection(self.source)
        hooks: dict[str, tuple[Hook, list[Rule]]] = {
            "nat-prerouting": (Hook("nat", objects.PREROUTING, objects.DSTNAT_PRIORITY), [[e.jump("services")]]),
            "nat-output": (Hook("nat", objects.OUTPUT, objects.DSTNAT_PRIORITY), [[e.jump("services")]]),
            "nat-postrouting": (Hook("nat", objects.POSTROUTING, objects.SRCNAT_PRIORITY), self._postrouting()),
            "firewall-prerouting": (
                Hook("filter", objects.PREROUTING, objects.DSTNAT_PRIORITY - 10),
                [[*new, e.jump("firewall-check")]],
            ),
            "firewall-output": (
                Hook("filter", objects.OUTPUT, objects.DSTNAT_PRIORITY - 10),
                [[*new, e.jump("firewall-check")]],
            ),
            "filter-input": (Hook("filter", objects.INPUT, 0), [[*new, e.jump("no-endpoints-check")]]),
        }
        for name, number in (("filter-forward", objects.FORWARD), ("filter-output", objects.OUTPUT)):
            checks = [[*new, e.jump("no-endpoints-check")], [*new, e.jump("cluster-ips-check")]]
            hooks[name] = Hook("filter", number, 0), checks
        for name in plain:
            batch.add_chain(self.table, Chain(name))
        for name, rules in plain.items():
            self._add(batch, name, rules)
        for name, (hook, rules) in hooks.items():
            batch.add_chain(self.table, Chain(name, hook))
            self._add(batch, name, rules)

    def add_route(self, batch: Batch, route: Route, number: bytes) -> None:
        """Adds the chain of a route, which maps know by its number."""
        batch.add_chain(self.table, Chain(route.chain))
        self._add(batch, route.chain, self._route(route))
        verdict = e.verdict_value(e.GOTO, route.chain)
        batch.add_elements(self.table, route.map, [element(number, verdict)])

    def delete_route(self, batch: Batch, route: Route, number: bytes) -> None:
        """Deletes the chain of a route that nothing leads to."""
        batch.delete_elements(self.table, route.map, [element(number)])
        batch.flush_chain(self.table, route.chain)
        batch.delete_chain(self.table, route.chain)

    def _add(self, batch: Batch, chain: str, rules: Iterable[Rule]) -> None:
        for rule in rules:
            batch.add_rule(self.table, chain, rule)

    def _load(self, node_port: bool = False) -> Rule:
        """Loads the frontend that a packet is sent to."""
        number = self.family.number
        address = e.destination_address(number, self.destination)
        if node_port:
            address = e.immediate(self.destination, self.family.zero)
        return [address, e.meta(e.L4PROTO, self.protocol), e.destination_port(self.port)]

    def _follow(self, name: str, routes: str = frontends.ROUTES) -> Rule:
        """Follows the route that a map has for the frontend.

        The route's number goes through the packet's mark, which then gets back what it had: `nft` 1.0 ends with a
        failed assertion when it lists a rule that looks up what was looked up.
        """
        found = e.lookup(name, self.destination, self.endpoint)
        return [found, *self._through_mark(), e.lookup(routes, self.endpoint, e.VERDICT_REGISTER)]

    def _through_mark(self) -> Rule:
        """Leads a number that was looked up through the packet's mark, which keeps its value."""
        return [
            e.meta(e.MARK, self.saved),
            e.set_meta(e.MARK, self.endpoint),
            e.meta(e.MARK, self.endpoint),
            e.set_meta(e.MARK, self.saved),
        ]

    def _services(self) -> list[Rule]:
        found = [[*self._load(), *self._follow(frontends.FRONTENDS)]]
        return found + [[*match, e.jump("node-ports")] for match in self._node_addresses()]

    def _node_addresses(self) -> Iterator[Rule]:
        """Matches packets to the node's addresses that have node ports."""
        local = [e.address_type(self.source), e.compare(self.source, struct.pack("=I", e.LOCAL_TYPE))]
        networks = self.facts.node_port_networks
        if networks is None:
            loopback = ipaddress.ip_network("127.0.0.0/8" if self.family.length == 4 else "::1/128")
            yield [*self._in_network(loopback, self.destination, inverted=True), *local]
        for network in networks or ():
            yield [*self._in_network(network, self.destination), *local]

    def _in_network(self, network: Network, register: int, inverted: bool = False) -> Rule:
        """Matches the source (register `source`) or destination address against a network."""
        number = self.family.number
        load = e.source_address if register == self.source else e.destination_address
        operator = e.NOT_EQUAL if inverted else e.EQUAL
        return [
            load(number, register),
            e.bitwise(register, network.netmask.packed),
            e.compare(register, network.network_address.packed, operator),
        ]

    def _from_cluster(self) -> Iterator[Rule]:
        """Matches packets of pods."""
        if self.facts.local_interface:
            name = self.facts.local_interface.encode()
            compared = name[:-1] if name.endswith(b"*") else name.ljust(16, b"\0")
            yield [e.meta(e.IIFNAME, self.source), e.compare(self.source, compared)]
        for network in self.facts.cluster_cidrs:
            if network.version == (6 if self.family.length == 16 else 4):
                yield self._in_network(network, self.source)

    def _mark(self) -> Rule:
        mark = self.facts.mark
        bits = struct.pack("=I", ~mark & 0xFFFFFFFF), struct.pack("=I", mark)
        return [e.meta(e.MARK, self.source), e.bitwise(self.source, *bits), e.set_meta(e.MARK, self.source)]

    def _mark_off_cluster(self) -> list[Rule]:
        """Marks what comes from outside the cluster, if it is known what comes from inside."""
        if self.facts.masquerade_all:
            return [self._mark()]
        inside = list(self._from_cluster())
        if not inside:
            return []
        # The node's own packets have an address that pods can answer to.
        local = [e.address_type(self.source, e.SOURCE), e.compare(self.source, struct.pack("=I", e.LOCAL_TYPE))]
        return [[*match, e.verdict(e.RETURN)] for match in (*inside, local)] + [self._mark()]

    def _route(self, route: Route) -> Iterator[Rule]:
        """The rules of a route's chain."""
        if route.kind == "reject":
            yield [e.goto("refuse")]
        elif route.kind == "drop":
            yield [e.verdict(e.DROP)]
        if route.kind == "cluster":
            yield [e.jump("mark-off-cluster")]
        elif route.kind == "external":
            yield self._mark()
        elif route.kind == "local":
            inside = [
                *self._load(route.node_port),
                *self._follow(frontends.INTERNAL_FRONTENDS, frontends.INTERNAL_ROUTES),
            ]
            for match in self._from_cluster():
                yield [*match, *inside]
            node = [e.address_type(self.source, e.SOURCE), e.compare(self.source, struct.pack("=I", e.LOCAL_TYPE))]
            yield [*node, *self._mark(), *inside]
        if not route.size:
            return
        load = self._load(route.node_port)
        offset = INTERNAL_OFFSET if route.kind == "internal" else 0
        index = e.random(route.size, self.endpoint, offset)
        translate = e.dnat(self.family.number, self.endpoint, self.endpoint_port)
        if not route.affinity:
            yield [*load, index, e.lookup(frontends.ENDPOINTS, self.destination, self.endpoint), translate]
            return
        # What is remembered and looked up again is a number, for the reason that `_follow` names.
        load = [e.source_address(self.family.number, self.source), *load]
        known = [e.lookup(frontends.AFFINITY, self.source, self.endpoint), *self._through_mark()]
        pick = [index, e.lookup(frontends.AFFINITY_NUMBERS, self.destination, self.endpoint), *self._through_mark()]
        remember = e.update_set(frontends.AFFINITY, self.source, self.endpoint, timeout_ms=route.affinity * 1000)
        forget = e.update_set(frontends.AFFINITY, self.source, self.endpoint, operation=e.DELETE)
        chosen = [e.lookup(frontends.AFFINITY_ENDPOINTS, self.destination, self.endpoint), translate]
        yield [*load, *known, remember, *chosen]
        # Its endpoint is gone. An update would keep it: the kernel only renews the time of a key that is there.
        yield [*load, *known, forget]
        yield [*load, *pick, remember, *chosen]
        yield [*load, *pick, *chosen]  # there was no room for one more client

    def _postrouting(self) -> list[Rule]:
        mark = struct.pack("=I", self.facts.mark)
        number = self.family.number
        marked = [
            e.meta(e.MARK, self.source),
            e.bitwise(self.source, mark),
            e.compare(self.source, bytes(4), e.NOT_EQUAL),
        ]
        clear = struct.pack("=I", ~self.facts.mark & 0xFFFFFFFF)
        unmark = [e.meta(e.MARK, self.source), e.bitwise(self.source, clear), e.set_meta(e.MARK, self.source)]
        both = [e.source_address(number, self.source), e.destination_address(number, self.destination)]
        return [
            [*marked, *unmark, e.masquerade(fully_random=True)],
            [*both, e.lookup(frontends.HAIRPINS, self.source), e.masquerade(fully_random=True)],
        ]

    def _firewall(self) -> Rule:
        return [
            *self._load(),
            e.lookup(frontends.FIREWALL, self.destination),
            e.source_address(self.family.number, self.source),
            e.lookup(frontends.FIREWALL_ALLOWED, self.source, inverted=True),
            e.verdict(e.DROP),
        ]

    def _refuse(self) -> list[Rule]:
        """TCP is reset, because the kernel sends a machine only one ICMP error a second; the rest gets ICMP errors."""
        tcp = [e.meta(e.L4PROTO, self.protocol), e.compare(self.protocol, b"\x06")]
        return [[*tcp, e.reset()], [e.reject(self.family.number)]]

    def _no_endpoints(self) -> list[Rule]:
        found = [[*self._load(), *self._follow(frontends.NO_ENDPOINTS, frontends.REFUSALS)]]
        return found + [[*match, e.jump("node-ports-check")] for match in self._node_addresses()]

    def _cluster_ips(self) -> list[Rule]:
        number = self.family.number
        known = [e.destination_address(number, self.destination), e.lookup(frontends.CLUSTER_IPS, self.destination)]
        # An address that the node has itself is served by the node, as that of cluster DNS may be.
        own = [e.address_type(self.source), e.compare(self.source, struct.pack("=I", e.LOCAL_TYPE))]
        found = [[*own, e.verdict(e.RETURN)], [*known, e.goto("refuse")]]
        for network in self.facts.service_cidrs:
            if network.version == (6 if self.family.length == 16 else 4):
                found.append([*self._in_network(network, self.destination), e.goto("refuse")])
        return found


def _new_connection(register: int) -> Rule:
    bits = struct.pack("=I", e.NEW)
    return [e.ct_state(register), e.bitwise(register, bits), e.compare(register, bytes(4), e.NOT_EQUAL)]
