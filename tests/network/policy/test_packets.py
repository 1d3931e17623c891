"""Packets of real sockets through the rules of policies: every verdict of the kernel is that of `judge`."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import pytest
from network.namespace import NetworkNamespace
from network.policy.objects import cluster_policy, key, labels, pod, policy
from proxy.lab import DROPPED_AFTER, Lab, Proxy, make_lab
from proxy.services import endpoint, endpoint_slice, service

from pybernetes.net.netlink.conntrack import Conntrack
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.policy import agent
from pybernetes.network.policy.cluster_facts import ClusterPolicy
from pybernetes.network.policy.facts import PROTOCOLS, PodFacts, Policy
from pybernetes.network.policy.judge import End, judge
from pybernetes.network.policy.kernel import Kernel
from pybernetes.network.policy.state import PolicyState
from pybernetes.proxy.chains import TableFacts

NAMESPACES = {"x": {"ns": "x"}, "y": {"ns": "y"}}
WEB = (("web", 6, 8080), ("web", 17, 8080))
PODS = {
    "a": pod("10.1.0.2", "fd00:1::2", namespace="x", ports=WEB, pod="a"),
    "b": pod("10.1.0.3", "fd00:1::3", namespace="x", ports=(("web", 6, 81),), pod="b"),
    "c": pod("10.1.0.4", "fd00:1::4", namespace="y", ports=WEB, pod="c"),
}
FROM_Y = {"from": [{"namespaceSelector": labels(ns="y")}]}
CASES: dict[str, list[Policy]] = {
    "nothing": [],
    "deny ingress": [policy("deny", podSelector=labels(pod="a"), policyTypes=["Ingress"])],
    "deny egress": [policy("deny", podSelector=labels(pod="a"), policyTypes=["Egress"])],
    "deny both in a namespace": [policy("deny", policyTypes=["Ingress", "Egress"])],
    "allow all": [policy("deny", policyTypes=["Ingress"]), policy("allow", ingress=[{}])],
    "from a namespace": [policy("p", ingress=[FROM_Y])],
    "from a pod of the namespace": [policy("p", ingress=[{"from": [{"podSelector": labels(pod="a")}]}])],
    "from a pod elsewhere": [
        policy("p", ingress=[{"from": [{"namespaceSelector": {}, "podSelector": labels(pod="c")}]}])
    ],
    "union of policies": [
        policy("one", ingress=[{"ports": [{"port": 81}]}]),
        policy("two", ingress=[{**FROM_Y, "ports": [{"port": 8080, "protocol": "UDP"}]}]),
    ],
    "named port": [policy("p", ingress=[{"ports": [{"port": "web"}]}])],
    "named port, outgoing": [policy("p", egress=[{"ports": [{"port": "web"}]}], policyTypes=["Egress"])],
    "range of ports": [policy("p", ingress=[{"ports": [{"port": 8000, "endPort": 8080}]}])],
    "range that ends below a port": [policy("p", ingress=[{"ports": [{"port": 80, "endPort": 8079}]}])],
    "every port of a protocol": [policy("p", ingress=[{"ports": [{"protocol": "UDP"}]}])],
    "blocks": [
        policy(
            "p",
            ingress=[
                {
                    "from": [
                        {"ipBlock": {"cidr": "10.1.0.0/24", "except": ["10.1.0.4/32", "10.1.0.2/31"]}},
                        {"ipBlock": {"cidr": "10.1.0.3/32"}},
                        {"ipBlock": {"cidr": "fd00:1::/64", "except": ["fd00:1::3/128"]}},
                        {"ipBlock": {"cidr": "192.0.2.2/32"}},
                    ]
                }
            ],
        )
    ],
    "peers and ports": [
        policy(
            "p",
            ingress=[
                {
                    "from": [{"podSelector": labels(pod="b")}, {"namespaceSelector": labels(ns="y")}],
                    "ports": [{"port": 81}, {"port": 8080, "protocol": "UDP"}, {"port": "web"}],
                }
            ],
        )
    ],
    "both ends": [
        policy("in", "y", ingress=[{"from": [{"namespaceSelector": labels(ns="x"), "podSelector": labels(pod="a")}]}]),
        policy("out", policyTypes=["Egress"], egress=[{"to": [{"namespaceSelector": labels(ns="y")}]}]),
    ],
}

ALL = {"namespaces": {}}
POD_A, POD_B = ({"pods": {"namespaceSelector": {}, "podSelector": labels(pod=each)}} for each in "ab")
EVERYWHERE = {"networks": ["0.0.0.0/0", "::/0"]}
TCP_8080 = {"tcp": {"destinationPort": {"number": 8080}}}
DENY_ALL = {"action": "Deny", "from": [ALL]}
CLUSTER_CASES: dict[str, tuple[list[Policy], list[ClusterPolicy]]] = {
    "admin denies what a NetworkPolicy allows": (
        [policy("allow", ingress=[{}])],
        [cluster_policy("one", "Admin", 5, POD_A, ingress=[{"action": "Deny", "from": [POD_B]}])],
    ),
    "admin accepts what a NetworkPolicy denies": (
        [policy("deny", policyTypes=["Ingress"])],
        [cluster_policy("one", "Admin", 5, ingress=[{"action": "Accept", "from": [POD_A], "protocols": [TCP_8080]}])],
    ),
    "pass leads past the rest of the tier, to NetworkPolicies": (
        [policy("some", ingress=[{"from": [{"podSelector": labels(pod="b")}]}])],
        [
            cluster_policy("first", "Admin", 1, ingress=[{"action": "Pass", "from": [POD_A, POD_B]}]),
            cluster_policy("second", "Admin", 2, ingress=[DENY_ALL]),
        ],
    ),
    "pass with several peers and ports": (
        [],
        [
            cluster_policy(
                "first",
                "Admin",
                1,
                ingress=[
                    {
                        "action": "Pass",
                        "from": [POD_A, {"namespaces": labels(ns="y")}],
                        "protocols": [{"udp": {"destinationPort": {"range": {"start": 8000, "end": 8090}}}}, TCP_8080],
                    },
                    DENY_ALL,
                ],
            ),
        ],
    ),
    "priorities count, not names": (
        [],
        [
            cluster_policy("a", "Admin", 20, ingress=[DENY_ALL]),
            cluster_policy("b", "Admin", 10, ingress=[{"action": "Accept", "from": [POD_A]}]),
        ],
    ),
    "baseline is for pods that no NetworkPolicy isolates": (
        [policy("only", podSelector=labels(pod="b"), ingress=[{"from": [{"podSelector": labels(pod="a")}]}])],
        [cluster_policy("default", "Baseline", 0, ingress=[DENY_ALL])],
    ),
    "egress to networks and by named ports": (
        [],
        [
            cluster_policy(
                "one",
                "Admin",
                1,
                POD_A,
                egress=[
                    {"action": "Accept", "to": [ALL], "protocols": [{"destinationNamedPort": "web"}]},
                    {"action": "Deny", "to": [EVERYWHERE]},
                ],
            )
        ],
    ),
    "what is not known fails closed": (
        [],
        [
            cluster_policy(
                "one",
                "Admin",
                1,
                POD_A,
                egress=[
                    {"action": "Accept", "to": [ALL, {"nodes": {}}]},
                    {"action": "Pass", "to": [{"somewhere": {}}]},
                ],
            )
        ],
    ),
}


class Node:
    """The policies of the lab's node."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.state = kernel, PolicyState()
        self.policies: dict[str, Policy] = {}
        self.cluster: tuple[ClusterPolicy, ...] = ()
        for name, of in NAMESPACES.items():
            self.state.put_namespace(name, of)
        for name, each in PODS.items():
            self.state.put_pod(key(name, each.namespace), each)
        kernel.replace(self.state)

    def put(self, *policies: Policy) -> None:
        """Makes these the policies, by an incremental change."""
        now = {str(each.key): each for each in policies}
        for name, each in {**self.policies, **now}.items():
            self.state.put_policy(each.key, now.get(name))
        self.policies = now
        self.kernel.update(self.state)

    def put_cluster(self, *policies: ClusterPolicy) -> None:
        """Makes these the ClusterNetworkPolicies."""
        self.cluster = policies
        self.state.put_cluster_policies(policies)
        self.kernel.update(self.state)

    def allows(self, source: End, target: End, protocol: int, port: int) -> bool:
        found = judge(self.policies.values(), NAMESPACES, source, target, protocol, port, self.cluster)
        return all(each.allowed for each in found)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with make_lab() as made:
        for number, where in enumerate(made.pods):
            for kind, port in (("tcp", 8080), ("tcp", 81), ("udp", 8080)):
                made.serve(where, f"pod{number}", port, kind)
        made.serve(made.world, "world", 80)
        made.serve(made.node, "node", 9090)
        made.node.run(agent.see_bridged_packets)
        yield made


@pytest.fixture
def node(lab: Lab) -> Iterator[Node]:
    with lab.node.run(Nftables) as nftables:
        made = Node(Kernel(nftables))
        yield made
        made.kernel.remove()


def end(pod: PodFacts, version: int) -> End:
    return End(pod.addresses[0 if version == 4 else 1], pod)


def reachable(lab: Lab, node: Node) -> list[str]:
    """Where the kernel's verdicts differ from `judge`'s. Asked all at once: what is denied takes its time."""
    where = dict(zip(PODS, lab.pods, strict=True))

    def differs(ends: tuple[str, str], version: int, kind: str, port: int) -> str:
        source, target = (end(PODS[each], version) for each in ends)
        want = node.allows(source, target, PROTOCOLS[kind.upper()], port)
        address = str(ipaddress.ip_address(target.address))
        got = lab.ask(where[ends[0]], address, port, kind, wait=10.0 if want else 0.15)
        what = f"{ends[0]} -> {ends[1]} {kind} {port} IPv{version}: {got}, allowed: {want}"
        return what if (got != "dropped") != want else ""

    connections = ((4, "tcp", 8080), (4, "tcp", 81), (4, "udp", 8080), (6, "tcp", 8080))
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(differs, ends, *each) for ends in permutations(PODS, 2) for each in connections]
        return list(filter(None, (each.result() for each in asked)))


@pytest.mark.parametrize("case", CASES)
def test_the_kernel_judges_as_the_policies_say(lab: Lab, node: Node, case: str) -> None:
    node.put(*CASES[case])
    assert reachable(lab, node) == []
    node.put()
    assert lab.node.output("nft", "list", "table", "ip", "network-policy").count("chain") == 3, "nothing is left over"


@pytest.mark.parametrize("case", CLUSTER_CASES)
def test_the_kernel_judges_by_tiers_as_cluster_policies_say(lab: Lab, node: Node, case: str) -> None:
    policies, cluster = CLUSTER_CASES[case]
    node.put(*policies)
    node.put_cluster(*cluster)
    assert reachable(lab, node) == []
    node.put_cluster()
    node.put()
    assert lab.node.output("nft", "list", "table", "ip", "network-policy").count("chain") == 3, "nothing is left over"


def test_cluster_policies_follow_their_changes_and_labels_of_namespaces(lab: Lab, node: Node) -> None:
    def deny(priority: int, ns: str) -> ClusterPolicy:
        return cluster_policy("deny", "Admin", priority, {"namespaces": labels(ns=ns)}, ingress=[DENY_ALL])

    node.put_cluster(deny(1, "x"))
    assert lab.drops(lab.pods[2], "10.1.0.2", 8080)
    accept = cluster_policy("accept", "Admin", 5, ingress=[{"action": "Accept", "from": [ALL]}])
    node.put_cluster(deny(9, "x"), accept)
    assert lab.ask(lab.pods[2], "10.1.0.2", 8080) == "pod0", "it has a lower precedence now"
    node.put_cluster(deny(1, "z"), accept)
    assert lab.ask(lab.pods[2], "10.1.0.2", 8080) == "pod0"
    node.state.put_namespace("x", {"ns": "z"})
    node.kernel.update(node.state)
    assert lab.drops(lab.pods[2], "10.1.0.2", 8080)
    rules = lab.node.output("nft", "list", "table", "ip", "network-policy")
    node.kernel.replace(node.state)
    assert len(lab.node.output("nft", "list", "table", "ip", "network-policy")) == len(rules)


def test_one_policy_after_another_leaves_nothing_of_the_one_before(lab: Lab, node: Node) -> None:
    for case in ("peers and ports", "blocks", "named port", "union of policies", "both ends"):
        node.put(*CASES[case])
    assert reachable(lab, node) == []
    before = lab.node.output("nft", "list", "ruleset").count("rules")
    node.kernel.replace(node.state)
    assert lab.node.output("nft", "list", "ruleset").count("rules") == before
    assert reachable(lab, node) == []


def test_the_node_reaches_its_pods_and_a_pod_itself_but_pods_not_the_node(lab: Lab, node: Node) -> None:
    node.put(*CASES["deny both in a namespace"])
    assert lab.ask(lab.node, "10.1.0.2", 8080) == "pod0"
    assert lab.ask(lab.pods[0], "10.1.0.2", 8080) == "pod0"
    assert lab.drops(lab.world, "10.1.0.2", 8080)
    assert lab.drops(lab.pods[0], "10.1.0.1", 9090), "egress to the node is judged"
    assert lab.drops(lab.pods[0], "192.0.2.2", 80)
    assert lab.ask(lab.pods[2], "10.1.0.1", 9090) == "node"


def test_pods_change_labels_addresses_and_namespaces_theirs(lab: Lab, node: Node) -> None:
    node.put(policy("p", podSelector=labels(pod="a"), ingress=[{"from": [{"namespaceSelector": labels(ns="y")}]}]))
    assert lab.drops(lab.pods[1], "10.1.0.2", 8080)
    node.state.put_namespace("x", {"ns": "y"})
    node.kernel.update(node.state)
    assert lab.ask(lab.pods[1], "10.1.0.2", 8080) == "pod0"
    node.state.put_namespace("x", {"ns": "x"})
    node.state.put_pod(key("c", "y"), None)
    node.kernel.update(node.state)
    assert lab.drops(lab.pods[1], "10.1.0.2", 8080)
    assert lab.drops(lab.pods[2], "10.1.0.2", 8080)
    node.state.put_pod(key("a"), pod("10.1.0.2", pod="other"))
    node.kernel.update(node.state)
    assert lab.ask(lab.pods[1], "10.1.0.2", 8080) == "pod0", "no policy selects it any more"


def test_a_connection_that_exists_is_judged_again_and_answers_pass(lab: Lab, node: Node) -> None:
    allow = policy("p", podSelector=labels(pod="a"), ingress=[{"from": [{"podSelector": labels(pod="b")}]}])
    node.put(allow)
    server = lab.pods[0].run(socket.create_server, ("10.1.0.2", 7000))
    with server, lab.pods[1].run(socket.create_connection, ("10.1.0.2", 7000), 10.0) as client:
        far, _ = server.accept()
        with far:
            client.sendall(b"first")
            assert far.recv(10) == b"first"
            node.kernel.replace(node.state)  # as after a restart
            far.sendall(b"answer")
            assert client.recv(10) == b"answer"
            node.put(policy("p", podSelector=labels(pod="a"), policyTypes=["Ingress"]))
            client.sendall(b"second")
            far.settimeout(DROPPED_AFTER)
            with pytest.raises(TimeoutError):
                far.recv(10)
            node.put(allow)
            far.settimeout(30.0)
            assert far.recv(10) == b"second", "sent again by the kernel, and let through again"


def test_through_a_service_the_pod_behind_it_is_judged(lab: Lab, node: Node) -> None:
    facts = TableFacts(cluster_cidrs=(ipaddress.ip_network("10.1.0.0/16"),))
    with lab.node.run(Nftables) as nftables, lab.node.run(Conntrack) as tracked:
        proxy = Proxy(nftables, tracked, facts)
        try:
            proxy.put(service(), endpoint_slice(endpoint("10.1.0.2", nodeName="here")))
            node.put(policy("p", podSelector=labels(pod="a"), ingress=[{"from": [{"podSelector": labels(pod="b")}]}]))
            assert lab.ask(lab.pods[1], "10.96.0.10") == "pod0"
            assert lab.drops(lab.pods[2], "10.96.0.10")
            assert lab.ask(lab.pods[0], "10.96.0.10") == "pod0", "a pod reaches itself by its Service"
        finally:
            proxy.kernel.remove()


def test_a_pod_that_starts_is_isolated_before_its_address_is_known(lab: Lab, node: Node) -> None:
    node.put(policy("deny", podSelector=labels(pod="a"), policyTypes=["Ingress"]))
    node.state.set_ranges([(ipaddress.ip_address("10.1.0.0").packed, ipaddress.ip_address("10.1.0.255").packed)])
    node.state.put_pod(key("a"), pod(pod="a"))
    node.kernel.update(node.state)
    assert lab.drops(lab.pods[1], "10.1.0.2", 8080)
    assert lab.ask(lab.pods[1], "10.1.0.4", 8080) == "pod2", "known pods are not concerned"
    node.state.put_pod(key("a"), pod("10.1.0.2", pod="b"))
    node.kernel.update(node.state)
    assert lab.ask(lab.pods[1], "10.1.0.2", 8080) == "pod0"


ROUNDABOUT = ("255.255.255.255", "224.0.0.1", "10.1.0.255", "ff02::1", "link-local")
"""Addresses that are no pod's, and that a pod on the same bridge answers to."""


@pytest.mark.parametrize("address", ROUNDABOUT)
def test_an_isolated_pod_is_not_reached_by_addresses_that_are_no_pods(lab: Lab, node: Node, address: str) -> None:
    isolated, sender = lab.pods[0], lab.pods[2]
    if address == "link-local":
        shown = isolated.output("ip", "-6", "-o", "address", "show", "dev", "eth0", "scope", "link")
        address = shown.split("inet6 ")[1].split("/")[0]
    node.kernel.remove()
    assert arrives(sender, isolated, address, times=40), "without a policy"
    node.kernel.replace(node.state)
    node.state.set_ranges([(ipaddress.ip_address("10.1.0.0").packed, ipaddress.ip_address("10.1.0.255").packed)])
    node.put(policy("deny", podSelector=labels(pod="a"), policyTypes=["Ingress"]))
    assert not arrives(sender, isolated, address)
    assert lab.ask(sender, "10.1.0.3", 8080, "udp") == "pod1"
    assert lab.ask(sender, "fd00:1::3", 8080) == "pod1", "neighbours are found"


def arrives(source: NetworkNamespace, target: NetworkNamespace, address: str, times: int = 1) -> bool:
    """Whether a pod receives one of some datagrams."""
    version6 = ":" in address
    family = socket.AF_INET6 if version6 else socket.AF_INET
    index = source.run(socket.if_nametoindex, "eth0")
    server, client = (each.run(socket.socket, family, socket.SOCK_DGRAM) for each in (target, source))
    with server, client:
        server.bind(("", 0))
        server.settimeout(DROPPED_AFTER)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        port = server.getsockname()[1]
        for _ in range(times):
            client.sendto(b"?", (address, port, 0, index) if version6 else (address, port))
            with contextlib.suppress(TimeoutError):
                return bool(server.recv(100))
    return False


def test_two_pods_with_one_address_for_a_moment(lab: Lab, node: Node) -> None:
    node.put(policy("deny", podSelector=labels(pod="a"), policyTypes=["Ingress"]))
    node.state.put_pod(key("new"), pod("10.1.0.2", pod="a"))
    node.state.put_pod(key("a"), None)
    node.kernel.update(node.state)
    assert lab.drops(lab.pods[1], "10.1.0.2", 8080)


def test_changes_by_others_are_noticed(lab: Lab, node: Node) -> None:
    node.put(*CASES["deny ingress"])
    node.kernel.watch()
    assert not node.kernel.disturbed()
    lab.node.output("nft", "flush", "table", "ip", "network-policy")
    assert node.kernel.disturbed()
    node.kernel.replace(node.state)
    assert not node.kernel.disturbed()
    assert lab.drops(lab.pods[1], "10.1.0.2", 8080)
