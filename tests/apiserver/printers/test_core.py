"""The core group, but for pods."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.printers.rows import AGE, resource, row, shown

DELETED = {"deletionTimestamp": "2024-01-10T11:59:00Z"}
TEMPLATE = {
    "metadata": {"labels": {"x": "y"}},
    "spec": {"containers": [{"name": "c", "image": "nginx:1"}, {"name": "d", "image": "e"}]},
}

INFO = {
    "kernelVersion": "6.1",
    "osImage": "Debian",
    "containerRuntimeVersion": "containerd://2",
    "kubeletVersion": "v1.36.4",
    "architecture": "amd64",
}


@pytest.mark.parametrize(
    ("obj", "status", "roles"),
    [
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "Ready", "<none>"),
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "NotReady", "<none>"),
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, "NotReady", "<none>"),
        ({"spec": {"unschedulable": True}}, "Unknown,SchedulingDisabled", "<none>"),
        (
            {
                "metadata": {
                    "labels": {
                        "node-role.kubernetes.io/worker": "",
                        "node-role.kubernetes.io/control-plane": "",
                        "node-role.kubernetes.io/": "",
                        "kubernetes.io/role": "old",
                    }
                },
                "spec": {"unschedulable": True},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            },
            "Ready,SchedulingDisabled",
            "control-plane,old,worker",
        ),
    ],
)
def test_nodes_show_whether_they_take_pods(obj: dict[str, Any], status: str, roles: str) -> None:
    assert shown(resource("nodes"), obj, "Status", "Roles") == [status, roles]


def test_nodes_show_wide_what_runs_there() -> None:
    addresses = [
        {"type": "Hostname", "address": "h"},
        {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "InternalIP", "address": "fd00::1"},
        {"type": "ExternalIP", "address": "192.0.2.1"},
    ]
    wide = ("Version", "Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")
    obj = {"status": {"addresses": addresses, "nodeInfo": INFO}}
    assert shown(resource("nodes"), obj, *wide) == [
        "v1.36.4",
        "10.0.0.1",
        "192.0.2.1",
        "Debian",
        "6.1 (amd64)",
        "containerd://2",
    ]
    unknown = ["", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]
    assert shown(resource("nodes"), {}, *wide) == unknown


def service(type: str = "ClusterIP", ingress: list[dict[str, str]] | None = None, **spec: Any) -> dict[str, Any]:
    return {"spec": {"type": type, **spec}, "status": {"loadBalancer": {"ingress": ingress or []}}}


@pytest.mark.parametrize(
    ("obj", "external"),
    [
        (service(), "<none>"),
        (service(externalIPs=["1.1.1.1", "2.2.2.2"]), "1.1.1.1,2.2.2.2"),
        (service("NodePort"), "<none>"),
        (service("LoadBalancer"), "<pending>"),
        (service("LoadBalancer", [{"ip": "9.9.9.9"}, {"hostname": "a.b"}, {"ip": "1.2.3.4"}]), "1.2.3.4,9.9.9.9,a.b"),
        (service("LoadBalancer", [{"ip": "9.9.9.9"}], externalIPs=["1.1.1.1"]), "9.9.9.9,1.1.1.1"),
        (
            service("LoadBalancer", [{"hostname": "a.name.longer.than.sixteen.letters"}]),
            "a.name.longer.than.sixteen.letters",
        ),
        (service("ExternalName", externalName="example.com"), "example.com"),
        (service("Other"), "<unknown>"),
    ],
)
def test_services_show_where_they_are_reached_from_outside(obj: dict[str, Any], external: str) -> None:
    assert shown(resource("services"), obj, "External-IP") == [external]


def test_services_show_ports_and_selector() -> None:
    ports = [
        {"port": 80, "protocol": "TCP", "nodePort": 30080},
        {"port": 53, "protocol": "UDP"},
    ]
    obj = service("NodePort", ports=ports, clusterIPs=["10.0.0.9", "fd00::9"], selector={"b": "2", "a": "1"})
    assert row(resource("services"), obj) == {
        "Name": "x",
        "Type": "NodePort",
        "Cluster-IP": "10.0.0.9",
        "External-IP": "<none>",
        "Port(s)": "80:30080/TCP,53/UDP",
        "Age": AGE,
        "Selector": "a=1,b=2",
    }
    empty = shown(resource("services"), service("ExternalName"), "Cluster-IP", "Port(s)", "Selector")
    assert empty == ["<none>", "<none>", "<none>"]


def addresses(*ips: str) -> list[dict[str, str]]:
    return [{"ip": each} for each in ips]


@pytest.mark.parametrize(
    ("subsets", "text"),
    [
        ([], "<none>"),
        ([{"notReadyAddresses": addresses("10.0.0.9"), "ports": [{"port": 80}]}], ""),
        (
            [{"addresses": addresses("10.0.0.1")}, {"addresses": addresses("fd00::2"), "ports": [{"port": 80}]}],
            "10.0.0.1,[fd00::2]:80",
        ),
        ([{"addresses": addresses("a", "b", "c")}], "a,b,c"),
        ([{"addresses": addresses("a", "b"), "ports": [{"port": 1}, {"port": 2}]}], "a:1,b:1,a:2 + 1 more..."),
    ],
)
def test_endpoints_show_the_first_three(subsets: list[Any], text: str) -> None:
    assert shown(resource("endpoints"), {"subsets": subsets}, "Endpoints", "Age") == [text, AGE]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            {"type": "Normal", "reason": "R", "message": " hi \n", "firstTimestamp": "2024-01-10T10:00:00Z",
             "lastTimestamp": "2024-01-10T11:59:30Z", "count": 5, "source": {"component": "kubelet", "host": "n1"},
             "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"}},
            ["30s", "Normal", "R", "pod/p", "spec.containers{c}", "kubelet, n1", "hi", "120m", 5, "x"],
            id="classic",
        ),
        pytest.param(
            {"type": "Warning", "reason": "R", "message": "m", "eventTime": "2024-01-10T11:00:00.000000Z",
             "firstTimestamp": None, "lastTimestamp": None, "source": {}, "involvedObject": {"kind": "Node"},
             "reportingComponent": "k8s.io/x", "reportingInstance": "y"},
            ["60m", "Warning", "R", "node", "", "k8s.io/x, y", "m", "60m", 1, "x"],
            id="newer",
        ),
        pytest.param(
            {"eventTime": "2024-01-10T11:00:00.000000Z", "reportingComponent": "c",
             "series": {"count": 7, "lastObservedTime": "2024-01-10T11:58:00.000000Z"}},
            ["2m", "", "", "", "", "c", "", "60m", 7, "x"],
            id="series",
        ),
    ],
)  # fmt: skip
def test_events_show_what_happened_when(obj: dict[str, Any], expected: list[Any]) -> None:
    assert list(row(resource("events"), obj).values()) == expected


def test_events_look_the_same_in_both_groups() -> None:
    newer = {
        "eventTime": "2024-01-10T11:00:00.000000Z",
        "reason": "R",
        "note": "m",
        "type": "Normal",
        "regarding": {"kind": "Pod", "name": "p"},
        "reportingController": "c",
        "deprecatedCount": 3,
    }
    cells = row(resource("events", "events.k8s.io"), newer)
    assert list(cells.values()) == ["60m", "Normal", "R", "pod/p", "", "c", "m", "60m", 3, "x"]


@pytest.mark.parametrize(
    ("plural", "obj", "expected"),
    [
        ("namespaces", {"status": {"phase": "Active"}}, ["x", "Active", AGE]),
        ("serviceaccounts", {}, ["x", AGE]),
        ("configmaps", {"data": {"a": "1"}, "binaryData": {"b": "AA==", "c": "AA=="}}, ["x", 3, AGE]),
        ("secrets", {"type": "Opaque", "data": {"a": "AA=="}}, ["x", "Opaque", 1, AGE]),
        ("podtemplates", {"template": TEMPLATE}, ["x", "c,d", "nginx:1,e", "x=y"]),
        (
            "replicationcontrollers",
            {
                "spec": {"replicas": 3, "selector": {"a": "b"}, "template": TEMPLATE},
                "status": {"replicas": 2, "readyReplicas": 1},
            },
            ["x", 3, 2, 1, AGE, "c,d", "nginx:1,e", "a=b"],
        ),
        (
            "resourcequotas",
            {
                "status": {
                    "hard": {"pods": "10", "limits.cpu": "4", "requests.memory": "1Gi", "limits": "3"},
                    "used": {"pods": "1", "limits.cpu": "1500m"},
                }
            },
            ["x", "limits: 0/3, pods: 1/10, requests.memory: 0/1Gi", "limits.cpu: 1500m/4", AGE],
        ),
        (
            "componentstatuses",
            {"conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]},
            ["x", "Healthy", "ok", ""],
        ),
        (
            "componentstatuses",
            {"conditions": [{"type": "Healthy", "status": "False", "error": "no"}]},
            ["x", "Unhealthy", "", "no"],
        ),
        ("componentstatuses", {}, ["x", "Unknown", "", ""]),
        (
            "persistentvolumes",
            {
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": "a", "name": "b"},
                    "storageClassName": "sc",
                    "volumeAttributesClassName": "vac",
                    "volumeMode": "Block",
                },
                "status": {"phase": "Failed", "reason": "Because"},
            },
            ["x", "1Gi", "RWO,ROX,RWX", "Retain", "Failed", "a/b", "sc", "vac", "Because", AGE, "Block"],
        ),
        (
            "persistentvolumes",
            {
                "metadata": {**DELETED, "annotations": {"volume.beta.kubernetes.io/storage-class": "beta"}},
                "spec": {"accessModes": ["ReadWriteOncePod"], "storageClassName": "sc"},
                "status": {"phase": "Available"},
            },
            ["x", "0", "RWOP", "", "Terminating", "", "beta", "<unset>", "", AGE, "<unset>"],
        ),
        (
            "persistentvolumeclaims",
            {
                "spec": {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]},
                "status": {"phase": "Pending"},
            },
            ["x", "Pending", "", "", "", "", "<unset>", AGE, "<unset>"],
        ),
        (
            "persistentvolumeclaims",
            {
                "spec": {"volumeName": "v", "storageClassName": "sc", "volumeMode": "Filesystem"},
                "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]},
            },
            ["x", "Bound", "v", "2Gi", "RWO", "sc", "<unset>", AGE, "Filesystem"],
        ),
        (
            "persistentvolumeclaims",
            {"metadata": DELETED, "spec": {"volumeName": "v"}, "status": {"phase": "Lost"}},
            ["x", "Terminating", "v", "0", "", "", "<unset>", AGE, "<unset>"],
        ),
    ],
)
def test_cells(plural: str, obj: dict[str, Any], expected: list[Any]) -> None:
    assert list(row(resource(plural), obj).values()) == expected
