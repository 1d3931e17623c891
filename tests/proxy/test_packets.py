"""Packets of real sockets through the proxy's rules: who answers, and whom the server sees."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from proxy.lab import Lab, Proxy, make_lab
from proxy.services import endpoint, endpoint_slice, service

from pybernetes.net.netlink.conntrack import Conntrack
from pybernetes.network.nftables.client import Nftables
from pybernetes.proxy import conntrack, frontends, kernel
from pybernetes.proxy.chains import TableFacts
from pybernetes.proxy.frontends import FAMILIES

PODS = ("10.1.0.2", "10.1.0.3", "10.1.0.4")
FACTS = TableFacts(
    cluster_cidrs=(ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00:1::/64")),
    service_cidrs=(ipaddress.ip_network("10.96.0.0/12"),),
)


def _has_sctp() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP).close()
    except OSError:
        return False
    return True


needs_sctp = pytest.mark.skipif(not _has_sctp(), reason="the kernel has no SCTP")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with make_lab() as made:
        for number, pod in enumerate(made.pods):
            for kind in ("tcp", "udp", "sctp") if _has_sctp() else ("tcp", "udp"):
                made.serve(pod, f"pod{number}", 8080, kind)
        made.serve(made.world, "world", 80)
        yield made


@pytest.fixture
def proxy(lab: Lab) -> Iterator[Proxy]:
    with lab.node.run(Nftables) as nftables, lab.node.run(Conntrack) as tracked:
        made = Proxy(nftables, tracked, FACTS)
        yield made
        made.kernel.remove()


def local(address: str) -> dict[str, Any]:
    return endpoint(address, nodeName="here")


def test_a_cluster_ip_leads_to_all_endpoints_from_pods_and_the_node(lab: Lab, proxy: Proxy) -> None:
    proxy.put(service(), endpoint_slice(*PODS[:2]))
    assert lab.ask_often(lab.pods[2], "10.96.0.10") == {"pod0", "pod1"}
    assert lab.ask_often(lab.node, "10.96.0.10") == {"pod0", "pod1"}
    lab.peers.clear()
    lab.ask(lab.pods[2], "10.96.0.10")
    assert lab.peers == ["10.1.0.4"], "the server sees the pod's own address"


def test_from_outside_the_cluster_the_server_sees_the_node(lab: Lab, proxy: Proxy) -> None:
    proxy.put(service(), endpoint_slice(PODS[0]))
    lab.peers.clear()
    assert lab.ask(lab.world, "10.96.0.10") == "pod0"
    assert lab.peers == ["10.1.0.1"]


def test_a_pod_reaches_itself_through_its_service(lab: Lab, proxy: Proxy) -> None:
    proxy.put(service(), endpoint_slice(local(PODS[0])))
    assert lab.ask(lab.pods[0], "10.96.0.10") == "pod0"


def test_ipv6_works_alike(lab: Lab, proxy: Proxy) -> None:
    one = service(ip="fd00:96::10", ipFamilies=["IPv6"])
    proxy.put(one, endpoint_slice(*(local(f"fd00:1::{n}") for n in (2, 3)), addressType="IPv6"))
    assert lab.ask_often(lab.pods[2], "fd00:96::10") == {"pod0", "pod1"}
    proxy.put(one, endpoint_slice(local("fd00:1::2"), addressType="IPv6"))
    assert lab.ask(lab.pods[0], "fd00:96::10") == "pod0", "hairpin"
    proxy.put(
        service(ip="fd00:96::10", sessionAffinity="ClientIP"),
        endpoint_slice("fd00:1::2", "fd00:1::3", "fd00:1::4", addressType="IPv6"),
    )
    assert len(lab.ask_often(lab.world, "fd00:96::10", times=12)) == 1


@pytest.mark.parametrize("kind", ["tcp", "udp", pytest.param("sctp", marks=needs_sctp)])
def test_a_port_leads_to_the_endpoint_of_its_protocol(lab: Lab, proxy: Proxy, kind: str) -> None:
    proxy.put(service(protocol=kind.upper()), endpoint_slice(PODS[1], protocol=kind.upper()))
    assert lab.ask(lab.pods[0], "10.96.0.10", kind=kind) == "pod1"
    other = "tcp" if kind == "udp" else "udp"
    assert lab.ask(lab.pods[0], "10.96.0.10", kind=other) == "refused"


def test_a_service_without_endpoints_refuses_at_once_and_serves_when_one_comes(lab: Lab, proxy: Proxy) -> None:
    one = service(nodePort=30080, type="NodePort", externalIPs=["192.0.2.77"])
    lab.world.output("ip", "route", "replace", "192.0.2.77", "via", "192.0.2.1")
    proxy.put(one)
    everywhere = [
        (lab.pods[0], "10.96.0.10", 80),
        (lab.node, "10.96.0.10", 80),
        (lab.world, "192.0.2.1", 30080),
        (lab.world, "192.0.2.77", 80),
        (lab.node, "192.0.2.1", 30080),
    ]
    assert [lab.ask(*each) for each in everywhere] == ["refused"] * 5
    proxy.put(one, endpoint_slice(PODS[1]))
    assert [lab.ask(*each) for each in everywhere] == ["pod1"] * 5
    proxy.put(one)
    assert [lab.ask(*each) for each in everywhere] == ["refused"] * 5


def test_unused_addresses_and_ports_of_the_service_range_are_refused(lab: Lab, proxy: Proxy) -> None:
    proxy.put(service(), endpoint_slice(PODS[0]))
    assert lab.ask(lab.pods[1], "10.96.0.99") == "refused"
    assert lab.ask(lab.node, "10.96.0.99") == "refused"
    assert lab.ask(lab.pods[1], "10.96.0.10", 81) == "refused"
    assert lab.ask_often(lab.pods[1], "10.96.0.99", times=10) == {"refused"}, "without waiting for ICMP errors"
    assert lab.ask(lab.pods[1], "192.0.2.2", 80) == "world", "other addresses are left alone"


def test_a_node_port_is_served_on_the_addresses_of_the_node(lab: Lab, proxy: Proxy) -> None:
    proxy.put(service(nodePort=30080, type="NodePort"), endpoint_slice(PODS[0], PODS[1]))
    lab.peers.clear()
    assert lab.ask_often(lab.world, "192.0.2.1", 30080) == {"pod0", "pod1"}
    assert set(lab.peers) == {"10.1.0.1"}
    assert lab.ask(lab.pods[0], "10.1.0.1", 30080) in ("pod0", "pod1")
    assert lab.ask(lab.node, "192.0.2.1", 30080) in ("pod0", "pod1")
    assert lab.ask(lab.node, "127.0.0.1", 30080) == "refused"


def test_node_ports_can_be_limited_to_some_addresses(lab: Lab, proxy: Proxy) -> None:
    with lab.node.run(Nftables) as nftables, lab.node.run(Conntrack) as tracked:
        limited = Proxy(nftables, tracked, TableFacts(node_port_networks=(ipaddress.ip_network("192.0.2.0/25"),)))
        limited.put(service(nodePort=30080, type="NodePort"), endpoint_slice(PODS[1]))
        assert lab.ask(lab.world, "192.0.2.1", 30080) == "pod1"
        assert lab.ask(lab.pods[0], "10.1.0.1", 30080) == "refused"


def test_external_policy_local_keeps_the_client_address_and_drops_without_local_endpoints(
    lab: Lab, proxy: Proxy
) -> None:
    one = service(nodePort=30080, type="NodePort", externalTrafficPolicy="Local")
    proxy.put(one, endpoint_slice(local(PODS[0]), PODS[1]))
    lab.peers.clear()
    assert lab.ask_often(lab.world, "192.0.2.1", 30080, times=12) == {"pod0"}
    assert set(lab.peers) == {"192.0.2.2"}
    assert lab.ask_often(lab.pods[2], "192.0.2.1", 30080) == {"pod0", "pod1"}, "from inside all endpoints serve"
    lab.peers.clear()
    assert lab.ask_often(lab.node, "192.0.2.1", 30080) == {"pod0", "pod1"}
    assert set(lab.peers) == {"10.1.0.1"}, "answers of endpoints elsewhere come back to the node that asked"
    proxy.put(one, endpoint_slice(PODS[1]))
    assert lab.drops(lab.world, "192.0.2.1", 30080)
    assert lab.ask(lab.pods[2], "192.0.2.1", 30080) == "pod1"


def test_internal_policy_local_uses_only_the_endpoints_of_the_node(lab: Lab, proxy: Proxy) -> None:
    one = service(internalTrafficPolicy="Local")
    proxy.put(one, endpoint_slice(local(PODS[0]), PODS[1]))
    assert lab.ask_often(lab.pods[2], "10.96.0.10", times=12) == {"pod0"}
    proxy.put(one, endpoint_slice(PODS[1]))
    assert lab.drops(lab.pods[2], "10.96.0.10")


def test_session_affinity_keeps_a_client_with_its_endpoint_as_long_as_that_serves(lab: Lab, proxy: Proxy) -> None:
    one = service(sessionAffinity="ClientIP")
    proxy.put(one, endpoint_slice(*PODS))
    (first,) = lab.ask_often(lab.world, "10.96.0.10", times=12)
    proxy.kernel.replace(proxy.rulesets, proxy.facts)
    assert lab.ask_often(lab.world, "10.96.0.10", times=12) == {first}, "a new table keeps it"
    left = [ip for number, ip in enumerate(PODS) if f"pod{number}" != first]
    proxy.put(one, endpoint_slice(*left))
    (second,) = lab.ask_often(lab.world, "10.96.0.10", times=12)
    assert second != first
    proxy.put(one, endpoint_slice(*PODS))
    assert lab.ask_often(lab.world, "10.96.0.10", times=12) == {second}
    assert "@affinity-endpoints" in lab.node.output("nft", "list", "ruleset"), "nft can list the rules"


def test_session_affinity_ends_after_its_timeout(lab: Lab, proxy: Proxy) -> None:
    config = {"clientIP": {"timeoutSeconds": 1}}
    proxy.put(service(sessionAffinity="ClientIP", sessionAffinityConfig=config), endpoint_slice(*PODS))
    lab.ask(lab.world, "10.96.0.10")
    assert "timeout 1s" in lab.node.output("nft", "list", "map", "ip", "kube-proxy", "affinity")


def test_a_client_that_there_is_no_room_to_remember_is_served_all_the_same(
    lab: Lab, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontends, "AFFINITIES", 1)
    proxy.kernel.replace(proxy.rulesets, proxy.facts)
    proxy.put(service(sessionAffinity="ClientIP"), endpoint_slice(*map(local, PODS)))
    (first,) = lab.ask_often(lab.world, "10.96.0.10", times=8)
    assert lab.ask_often(lab.pods[0], "10.96.0.10") == {"pod0", "pod1", "pod2"}
    assert lab.ask_often(lab.world, "10.96.0.10", times=8) == {first}


def test_routes_that_are_gone_leave_no_numbers_behind(lab: Lab, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MOST_NUMBERS", 2)
    for seconds in (10, 20, 30, 40):
        config = {"clientIP": {"timeoutSeconds": seconds}}
        proxy.put(service(sessionAffinity="ClientIP", sessionAffinityConfig=config), endpoint_slice(PODS[0]))
        assert lab.ask(lab.world, "10.96.0.10") == "pod0"
    assert len(proxy.kernel._numbers) <= 2


def test_a_load_balancers_source_ranges_are_enforced(lab: Lab, proxy: Proxy) -> None:
    lab.world.output("ip", "route", "replace", "192.0.2.88", "via", "192.0.2.1")
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.88"}]}}

    def ranges(*allowed: str) -> None:
        one = service(type="LoadBalancer", status=status, loadBalancerSourceRanges=list(allowed))
        proxy.put(one, endpoint_slice(PODS[0]))

    ranges("192.0.2.2/32", "198.51.100.0/24", "198.51.100.128/25")
    assert lab.ask(lab.world, "192.0.2.88") == "pod0"
    ranges("198.51.100.0/24")
    assert lab.drops(lab.world, "192.0.2.88")
    assert lab.ask(lab.pods[1], "10.96.0.10") == "pod0", "the cluster IP is public"
    ranges()
    assert lab.ask(lab.world, "192.0.2.88") == "pod0"


def test_a_load_balancer_that_proxies_itself_has_no_address_here(lab: Lab, proxy: Proxy) -> None:
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.2", "ipMode": "Proxy"}]}}
    proxy.put(service(type="LoadBalancer", status=status), endpoint_slice(PODS[0]))
    assert lab.ask(lab.pods[0], "192.0.2.2") == "world"


def test_a_new_table_takes_the_place_of_the_old_one_without_harm_to_connections(lab: Lab, proxy: Proxy) -> None:
    proxy.put(service(), endpoint_slice(PODS[0]))
    server = lab.pods[0].run(socket.create_server, ("10.1.0.2", 9090))
    proxy.put(service("slow", "10.96.0.20", 90), endpoint_slice(PODS[0], of="slow", port=9090))
    with server, lab.world.run(socket.create_connection, ("10.96.0.20", 90), 5) as client:
        accepted, _ = server.accept()
        with accepted:
            proxy.kernel.replace(proxy.rulesets, proxy.facts)
            proxy.delete("slow")
            client.sendall(b"still here")
            accepted.settimeout(5)
            assert accepted.recv(100) == b"still here"


def test_the_cost_of_a_change_is_that_of_the_service(lab: Lab, proxy: Proxy) -> None:
    for number in range(50):
        proxy.put(service(f"s{number}", f"10.97.0.{number}"), endpoint_slice(PODS[0], of=f"s{number}"))
    assert proxy.put(service(), endpoint_slice(PODS[0])) == 3, "frontend, endpoint, cluster IP"
    assert proxy.put(service(), endpoint_slice(PODS[0])) == 0


def test_nothing_is_left_of_services_that_are_gone(lab: Lab, proxy: Proxy) -> None:
    empty = lab.node.output("nft", "list", "ruleset")
    one = service(
        nodePort=30080,
        type="NodePort",
        externalTrafficPolicy="Local",
        externalIPs=["192.0.2.77"],
        sessionAffinity="ClientIP",
    )
    proxy.put(one, endpoint_slice(local(PODS[0]), PODS[1]))
    proxy.put(one, endpoint_slice(PODS[1]))
    proxy.delete("web")
    assert lab.node.output("nft", "list", "ruleset") == empty


def test_a_udp_client_that_sends_on_leaves_an_endpoint_that_is_gone(lab: Lab, proxy: Proxy) -> None:
    one = service(protocol="UDP", nodePort=30053, type="NodePort")
    proxy.put(one, endpoint_slice(PODS[0], protocol="UDP"))
    for target in (("10.96.0.10", 80), ("192.0.2.1", 30053)):
        proxy.put(one, endpoint_slice(PODS[0], protocol="UDP"))
        with lab.world.run(socket.socket, socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(10)
            client.connect(target)
            client.send(b"?")
            assert client.recv(100) == b"pod0"
            before = proxy.compiled["IPv4"].udp
            proxy.put(one, endpoint_slice(PODS[1], protocol="UDP"))
            lost = conntrack.changed(before, proxy.compiled["IPv4"].udp)
            assert proxy.kernel.forget_udp(FAMILIES[0], lost) == 1
            client.send(b"?")
            assert client.recv(100) == b"pod1"
            assert proxy.kernel.forget_udp(FAMILIES[0], lost) == 0


def test_an_address_of_the_service_range_that_the_node_has_itself_is_left_to_it(lab: Lab, proxy: Proxy) -> None:
    lab.node.output("ip", "address", "add", "10.96.0.53/32", "dev", "lo")
    lab.serve(lab.node, "node", 5353)
    assert lab.ask(lab.pods[0], "10.96.0.53", 5353) == "node"
    assert lab.ask(lab.node, "10.96.0.53", 5353) == "node"
    lab.node.output("ip", "address", "delete", "10.96.0.53/32", "dev", "lo")
