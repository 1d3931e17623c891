"""What `pyb why service` and `pyb why connection` find."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from network.policy.objects import cluster_policy, labels, policy
from proxy.services import endpoint, endpoint_slice, service, terminating

from pybernetes.api.core.v1 import Pod, PodIP, ServicePort
from pybernetes.cluster.commands import why_network
from pybernetes.cluster.errors import ClusterError
from pybernetes.network.explain import Facts, Report, behind, explain_connection, explain_service, service_of


def pod(name: str, ip: str = "", ready: bool = True, namespace: str = "x", **more: Any) -> Pod:
    condition = {"type": "Ready", "status": str(ready), "message": "" if ready else "the probe failed"}
    content = {
        "metadata": {"name": name, "namespace": namespace, "labels": more.pop("labels", {"app": name})},
        "spec": {"containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}], **more},
        "status": {"phase": "Running", "podIP": ip, "conditions": [condition]},
    }
    return msgspec.convert(content, Pod)


@pytest.mark.parametrize(
    ("spec", "pods", "want"),
    [
        ({"selector": {"app": "web"}}, [pod("other", "10.1.0.2")], "pod x/other has app=other"),
        ({"selector": {"app": "web"}}, [], "no pod of the namespace has its selector's labels (app=web)"),
        (
            {"selector": {"app": "web"}},
            [pod("web", "10.1.0.2", ready=False)],
            "x/web is not ready: the probe failed",
        ),
        ({"selector": {"app": "web"}}, [pod("web")], "pod x/web has no address yet"),
        ({"selector": {"app": "web"}}, [pod("web", "10.1.0.2")], "is ready, but in no EndpointSlice yet"),
        ({"selector": {}}, [], "it has no selector"),
        ({"selector": {"app": "web"}, "type": "LoadBalancer"}, [], "no load balancer has given it an address"),
    ],
)
def test_the_missing_endpoint_is_named(spec: dict[str, Any], pods: list[Pod], want: str) -> None:
    report = explain_service(service(**spec), [], pods)
    assert not report.good
    assert want in report.text()


def test_a_named_target_port_that_no_container_has() -> None:
    one = service(selector={"app": "web"})
    assert one.spec is not None
    assert one.spec.ports is not None
    one.spec.ports[0].target_port = "https"
    assert "no container port named 'https'" in explain_service(one, [], [pod("web", "10.1.0.2")]).text()


def test_endpoints_that_are_there() -> None:
    report = explain_service(service(), [endpoint_slice("10.1.0.2", "10.1.0.3")], [])
    assert report.good
    assert "2 ready endpoints" in report.summary
    assert "10.1.0.2:8080" in report.text()
    assert one_endpoint_of_two_ports().summary == "service default/web has 1 ready endpoint"


def one_endpoint_of_two_ports() -> Report:
    two = service()
    assert two.spec is not None
    assert two.spec.ports is not None
    two.spec.ports.append(ServicePort(port=81))
    return explain_service(two, [endpoint_slice("10.1.0.2")], [])


def test_endpoints_that_only_terminate_serve_until_they_have_ended() -> None:
    report = explain_service(service(), [endpoint_slice(terminating("10.1.0.2"))], [])
    assert report.good
    assert "10.1.0.2:8080; they terminate, and serve until they have ended" in report.text()
    assert not explain_service(service(), [endpoint_slice(terminating("10.1.0.2", serving=False))], []).good


def test_what_keeps_some_clients_from_a_service_is_named() -> None:
    local = {"internalTrafficPolicy": "Local", "externalTrafficPolicy": "Local", "type": "LoadBalancer"}
    one = service(loadBalancerSourceRanges=["192.0.2.0/24"], **local)
    text = explain_service(one, [endpoint_slice(endpoint("10.1.0.2", nodeName="a"))], []).text()
    assert "internalTrafficPolicy Local: clients of a alone; packets of pods elsewhere are dropped" in text
    assert "externalTrafficPolicy Local: from outside it is reached on a alone; other nodes drop packets" in text
    assert "loadBalancerSourceRanges: only 192.0.2.0/24 may use its load balancer" in text


def test_a_service_is_found_by_its_address_and_an_address_without_service_is_refused() -> None:
    one = service(externalIPs=["192.0.2.9", "010.1.2.3"])
    assert service_of("10.96.0.10", [one], ["10.96.0.0/12"]) is one
    assert service_of("192.0.2.9", [service("none", ip="None"), one], []) is one
    assert service_of("10.1.0.3", [one], ["10.96.0.0/12"]) is None
    unused = service_of("10.96.0.11", [one], ["10.96.0.0/12"])
    assert isinstance(unused, Report)
    assert unused.summary == "no Service has the address 10.96.0.11 of the Service range: connections are refused"


def test_what_of_a_service_keeps_a_pod_from_it() -> None:
    here, there = pod("client", "10.1.0.9", nodeName="a"), pod("client", "10.1.0.9", nodeName="b")
    slices = [endpoint_slice(endpoint("10.1.0.2", nodeName="a"), endpoint("10.1.0.3", nodeName="a"))]
    local = service(internalTrafficPolicy="Local")
    assert behind(local, slices, here, "", 80, "TCP") == ([], [("10.1.0.2", 8080), ("10.1.0.3", 8080)])
    (report,), ends = behind(local, slices, there, "", 0, "TCP")
    assert ends == []
    assert "its port 80 has no endpoint on b: packets of the pod are dropped" in report.summary
    (report,), ends = behind(local, slices, here, "10.96.0.10", 81, "TCP")
    assert (report.summary, ends) == ("service default/web has no TCP port 81: connections are refused", [])
    assert behind(service(type="ExternalName", ip=""), [], here, "", 80, "TCP") == ([], [])
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}
    balancer = service(type="LoadBalancer", loadBalancerSourceRanges=["192.0.2.0/24"], status=status)
    assert behind(balancer, slices, here, "10.96.0.10", 80, "TCP")[1]
    (report,), ends = behind(balancer, slices, here, "192.0.2.9", 80, "TCP")
    assert ends == []
    assert "10.1.0.9 is in none of its loadBalancerSourceRanges (192.0.2.0/24)" in report.summary


def test_the_policy_that_denies_a_connection_is_named() -> None:
    client, web = pod("client", "10.1.0.2"), pod("web", "10.1.0.3")
    rule = {"from": [{"podSelector": labels(app="friend")}]}
    deny = policy("deny", podSelector=labels(app="web"), ingress=[rule])
    facts = Facts((deny,), {"x": {}}, (client, web))
    report = explain_connection(client, "10.1.0.3", 8080, "TCP", facts)
    assert not report.good
    assert report.summary == "pod x/client may not connect to pod x/web (10.1.0.3) TCP 8080"
    assert report.findings == (
        "egress: no NetworkPolicy isolates the source",
        "ingress: the target is isolated by NetworkPolicy x/deny, and no rule of it allows this",
    )
    friend = pod("friend", "10.1.0.2")
    report = explain_connection(friend, "10.1.0.3", 8080, "TCP", Facts((deny,), {"x": {}}, (friend, web)))
    assert report.good
    assert "NetworkPolicy x/deny allows it" in report.text()
    assert not explain_connection(pod("new"), "10.1.0.3", 8080, "TCP", facts).good
    assert explain_connection(pod("host", "10.1.0.2", hostNetwork=True), "10.1.0.3", 8080, "TCP", facts).good


def test_a_pod_with_both_ip_versions_is_judged_by_that_of_the_target() -> None:
    client, web = pod("client", "10.1.0.2"), pod("web", "10.1.0.3")
    for one, address in ((client, "fd00::2"), (web, "fd00::3")):
        assert one.status
        one.status.pod_ips = [PodIP(ip=one.status.pod_ip), PodIP(ip=address)]
    allow = policy("block", podSelector=labels(app="web"), ingress=[{"from": [{"ipBlock": {"cidr": "fd00::/64"}}]}])
    facts = Facts((allow,), {"x": {}}, (client, web))
    assert explain_connection(client, "fd00::3", 8080, "TCP", facts).summary.startswith(
        "pod x/client may connect to pod x/web (fd00::3)"
    )
    assert not explain_connection(client, "10.1.0.3", 8080, "TCP", facts).good
    assert (
        "no address of the IP version" in explain_connection(pod("v4", "10.1.0.9"), "fd00::3", 1, "TCP", facts).text()
    )


def test_the_cluster_policy_that_decides_is_named() -> None:
    client, web = pod("client", "10.1.0.2"), pod("web", "10.1.0.3")
    deny = cluster_policy("no", "Admin", 1, ingress=[{"action": "Deny", "from": [{"namespaces": {}}]}])
    facts = Facts((policy("allow", ingress=[{}]),), {"x": {}}, (client, web), (deny,))
    report = explain_connection(client, "10.1.0.3", 8080, "TCP", facts)
    assert not report.good
    assert report.findings[1] == "ingress: ClusterNetworkPolicy no (Admin) denies it"


def test_targets_as_they_are_typed() -> None:
    assert why_network._split("service/web:80") == ("service/web", 80)
    assert why_network._split("[fd00::1]:80") == ("fd00::1", 80)
    assert why_network._split("fd00::1") == ("fd00::1", 0)
    with pytest.raises(ClusterError, match="not a port"):
        why_network._split("web:http")
    assert why_network.concerns(["svc/web"])
    assert why_network.concerns(["connection", "a", "b"])
    assert why_network.concerns(["--name", "prod", "service/web"])
    assert why_network.concerns(["--output=json", "connection", "a", "b"])
    assert not why_network.concerns(["pod/web"])
    assert not why_network.concerns(["--name", "service", "pod/web"])
