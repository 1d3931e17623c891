"""Which endpoints a node sends packets to."""

from __future__ import annotations

from typing import Any

import pytest
from proxy.services import endpoint, endpoint_slice, service, terminating

from pybernetes.proxy.endpoints import NodeFacts, choose, of_port
from pybernetes.proxy.frontends import DROP, FAMILIES, FRONTENDS, NO_ENDPOINTS, Route, compile_service

NODE = NodeFacts("here", "a")


def chosen(*endpoints: str | dict[str, Any], node: NodeFacts = NODE) -> tuple[list[str], list[str]]:
    """Addresses for the traffic policies Cluster and Local."""
    found = choose(of_port([endpoint_slice(*endpoints)], "", "TCP", "IPv4", node), node)
    return [each.address for each in found.cluster], [each.address for each in found.local]


def test_ready_endpoints_serve_and_those_of_the_node_serve_local_policies() -> None:
    assert chosen("10.1.0.2", endpoint("10.1.0.1", nodeName="here"), endpoint("10.1.0.3", nodeName="there")) == (
        ["10.1.0.1", "10.1.0.2", "10.1.0.3"],
        ["10.1.0.1"],
    )


def test_an_endpoint_without_conditions_is_ready() -> None:
    assert chosen({"addresses": ["10.1.0.1"]}) == (["10.1.0.1"], [])


def test_unready_endpoints_do_not_serve() -> None:
    assert chosen(endpoint("10.1.0.1", conditions={"ready": False, "serving": False})) == ([], [])


def test_terminating_endpoints_that_serve_are_used_only_where_none_is_ready() -> None:
    gone = terminating("10.1.0.2", nodeName="here")
    assert chosen("10.1.0.1", gone) == (["10.1.0.1"], ["10.1.0.2"])
    assert chosen(gone, terminating("10.1.0.3", serving=False)) == (["10.1.0.2"], ["10.1.0.2"])


def hinted(address: str, *zones: str, nodes: tuple[str, ...] = ()) -> dict[str, Any]:
    hints = {"forZones": [{"name": zone} for zone in zones], "forNodes": [{"name": node} for node in nodes]}
    return endpoint(address, hints=hints)


@pytest.mark.parametrize(
    ("endpoints", "want"),
    [
        ((hinted("10.1.0.1", "a"), hinted("10.1.0.2", "b")), ["10.1.0.1"]),
        ((hinted("10.1.0.1", "a", "b"), hinted("10.1.0.2", "b")), ["10.1.0.1"]),
        ((hinted("10.1.0.1", "b"), hinted("10.1.0.2", "c")), ["10.1.0.1", "10.1.0.2"]),
        ((hinted("10.1.0.1", "a"), "10.1.0.2"), ["10.1.0.1", "10.1.0.2"]),
        ((hinted("10.1.0.1", "a", nodes=("there",)), hinted("10.1.0.2", "a", nodes=("here",))), ["10.1.0.2"]),
        ((hinted("10.1.0.1", "b", nodes=("there",)), hinted("10.1.0.2", "a", nodes=("other",))), ["10.1.0.2"]),
    ],
    ids=["zone", "two zones", "no fit", "one without hints", "node", "zone where no node fits"],
)
def test_hints_keep_traffic_near(endpoints: tuple[Any, ...], want: list[str]) -> None:
    assert chosen(*endpoints)[0] == want


def test_hints_mean_nothing_on_a_node_without_a_zone() -> None:
    assert chosen(hinted("10.1.0.1", "a"), hinted("10.1.0.2", "b"), node=NodeFacts("here"))[0] == [
        "10.1.0.1",
        "10.1.0.2",
    ]


def test_ports_are_matched_by_name_protocol_and_family() -> None:
    slices = [
        endpoint_slice("10.1.0.1", ports=[{"name": "http", "port": 8080, "protocol": "TCP"}]),
        endpoint_slice("10.1.0.2", ports=[{"name": "http", "port": 8081, "protocol": "UDP"}]),
        endpoint_slice("fd00::1", addressType="IPv6", ports=[{"name": "http", "port": 8082, "protocol": "TCP"}]),
        endpoint_slice("10.1.0.3", ports=[{"name": "http", "protocol": "TCP"}]),
    ]
    assert [each[:2] for each in of_port(slices, "http", "TCP", "IPv4", NODE)] == [("10.1.0.1", 8080)]
    assert [each[:2] for each in of_port(slices, "http", "TCP", "IPv6", NODE)] == [("fd00::1", 8082)]


def test_an_endpoint_in_two_slices_counts_once_and_the_ready_one_wins() -> None:
    slices = [endpoint_slice(terminating("10.1.0.1")), endpoint_slice("10.1.0.1", name="web-2")]
    (found,) = of_port(slices, "", "TCP", "IPv4", NODE)
    assert found.ready


def test_endpoints_that_only_terminate_fail_the_health_check_and_serve_on() -> None:
    balancer = service(type="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=32000)
    here, family = NodeFacts("node"), FAMILIES[0]
    ready = endpoint("10.1.0.1", nodeName="node")
    both = compile_service(balancer, [endpoint_slice(ready, terminating("10.1.0.2", nodeName="node"))], here, family)
    assert both.health_check == (32000, 1)
    ending = compile_service(balancer, [endpoint_slice(terminating("10.1.0.1", nodeName="node"))], here, family)
    assert ending.health_check == (32000, 0)
    assert ending.entries["endpoints"]


def test_a_cluster_ip_service_with_external_ips_keeps_its_external_traffic_policy() -> None:
    one = service(externalIPs=["192.0.2.9"], externalTrafficPolicy="Local")
    slices = [endpoint_slice(endpoint("10.1.0.1", nodeName="node"), "10.1.0.2")]
    frontend = FAMILIES[0].pack("192.0.2.9") + b"\x06\0\0\0" + (80).to_bytes(2, "big") + b"\0\0"
    found = compile_service(one, slices, NodeFacts("node"), FAMILIES[0]).entries
    assert found[FRONTENDS][frontend] == Route("local", 1)
    elsewhere = compile_service(one, slices, NodeFacts("other"), FAMILIES[0]).entries
    assert elsewhere[NO_ENDPOINTS][frontend] == DROP


@pytest.mark.parametrize("label", ["service.kubernetes.io/headless", "service.kubernetes.io/service-proxy-name"])
def test_services_and_slices_that_are_labelled_for_others_are_left_alone(label: str) -> None:
    slices = [endpoint_slice("10.1.0.1"), endpoint_slice("10.1.0.2", name="web-2")]
    family = FAMILIES[0]
    assert slices[1].metadata is not None
    slices[1].metadata.labels = {**(slices[1].metadata.labels or {}), label: ""}
    found = compile_service(service(), slices, NODE, family).entries["endpoints"].values()
    assert list(found) == [family.pack("10.1.0.1") + (8080).to_bytes(2, "big") + b"\0\0"]
    assert compile_service(service(labels={label: "x"}), slices, NODE, family).entries == {}
