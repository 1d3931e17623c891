"""What `pyb why service` and `pyb why connection` find."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from network.policy.objects import cluster_policy, labels, policy
from proxy.services import endpoint_slice, service

from pybernetes.api.core.v1 import Pod, PodIP
from pybernetes.cluster.commands import why_network
from pybernetes.cluster.errors import ClusterError
from pybernetes.network.explain import Facts, explain_connection, explain_service


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
