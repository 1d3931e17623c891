"""Whether the node takes a pod."""

from __future__ import annotations

import pytest
from kubelet.observed import pod

from pybernetes.api.core.v1 import Node, NodeSpec, NodeStatus, Taint
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.kubelet.pod.admission import admit, fits
from pybernetes.kubelet.pod.refusal import PodRefused

NODE = Node(
    metadata=ObjectMeta(name="worker", labels={"zone": "a", "kubernetes.io/os": "linux"}),
    spec=NodeSpec(taints=[Taint(key="broken", effect="NoExecute"), Taint(key="soft", effect="NoSchedule")]),
    status=NodeStatus(allocatable={"cpu": "2", "memory": "1Gi", "pods": "3", "example.com/gpu": "1"}),
)
TOLERANT = "tolerations: [{operator: Exists}]"


def spec(more: str = "", container: str = "") -> str:
    inside = f", {container}" if container else ""
    beside = f", {more}" if more else ""
    return f"{{{TOLERANT}, containers: [{{name: a, image: i{inside}}}]{beside}}}"


def requests(text: str) -> str:
    return spec(container=f"resources: {{requests: {{{text}}}}}")


@pytest.mark.parametrize(
    ("wanted", "reason", "message"),
    [
        (requests("cpu: 3"), "OutOfcpu", "cpu, requested: 3000, used: 500, capacity: 2000"),
        (requests("cpu: 1600m"), "OutOfcpu", "cpu, requested: 1600, used: 500, capacity: 2000"),
        (requests("memory: 2Gi"), "OutOfmemory", "memory, requested: 2147483648, used: 0, capacity: 1073741824"),
        (requests("example.com/gpu: 2"), "OutOfexample.com/gpu", "requested: 2, used: 0, capacity: 1"),
        (spec("nodeSelector: {zone: b}"), "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match"),
        (spec("nodeName: other"), "NodeName", "Predicate NodeName failed"),
        (spec(container="ports: [{containerPort: 1, hostPort: 80}]"), "NodePorts", "Predicate NodePorts failed"),
        ("{containers: [{name: a, image: i}]}", "TaintToleration", "Predicate TaintToleration failed"),
        (spec("os: {name: windows}"), "PodOSNotSupported", "OS field doesn't match"),
        (
            spec("securityContext: {supplementalGroupsPolicy: Strict}"),
            "SupplementalGroupsPolicyNotSupported",
            "SupplementalGroupsPolicy=Strict is not supported in this node",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_upstreams_words(wanted: str, reason: str, message: str) -> None:
    neighbour = pod(
        spec(container="resources: {requests: {cpu: 500m}}, ports: [{containerPort: 1, hostPort: 80}]"), uid="other"
    )
    with pytest.raises(PodRefused) as caught:
        admit(pod(wanted), [neighbour], NODE)
    assert caught.value.reason == reason
    assert message in caught.value.message


@pytest.mark.parametrize(
    "wanted",
    [
        requests("cpu: 1500m, memory: 1Gi"),
        requests("example.com/unknown: 5"),  # the device manager's matter
        spec("nodeSelector: {zone: a}, nodeName: worker, os: {name: linux}"),
        spec(container="ports: [{containerPort: 1, hostPort: 80, protocol: UDP}]"),
        spec(container="ports: [{containerPort: 1, hostPort: 81}]"),
    ],
)
def test_what_fits_is_taken(wanted: str) -> None:
    neighbour = pod(
        spec(container="resources: {requests: {cpu: 500m}}, ports: [{containerPort: 1, hostPort: 80}]"), uid="other"
    )
    admit(pod(wanted), [neighbour], NODE)


def test_a_node_has_room_for_so_many_pods() -> None:
    others = [pod(spec(), uid=f"{number}") for number in range(3)]
    fits(pod(spec()), others[:2], NODE)
    with pytest.raises(PodRefused) as caught:
        fits(pod(spec()), others, NODE)
    assert caught.value.reason == "OutOfpods"


def test_a_static_pod_is_taken_by_a_tainted_node() -> None:
    admit(pod("{containers: [{name: a, image: i}]}", annotations={"kubernetes.io/config.source": "file"}), [], NODE)


def test_two_addresses_of_one_port_do_not_collide() -> None:
    def on(address: str, uid: str = "u") -> object:
        return pod(spec(container=f"ports: [{{containerPort: 1, hostPort: 80, hostIP: {address}}}]"), uid=uid)

    admit(on("127.0.0.1"), [on("127.0.0.2", "o")], NODE)  # type: ignore[arg-type, list-item]
    with pytest.raises(PodRefused):
        admit(on("0.0.0.0"), [on("127.0.0.2", "o")], NODE)  # type: ignore[arg-type, list-item]
