"""The named groups: every cell of every kind that has a printer."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.printers.rows import AGE, resource, row, shown, table

DELETED = {"deletionTimestamp": "2024-01-10T11:59:00Z"}
CONTAINERS = {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}}
SIMPLE = {"matchLabels": {"a": "b"}}
SELECTOR = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [
        {"key": "z", "operator": "DoesNotExist"},
        {"key": "q", "operator": "NotIn", "values": ["2", "1"]},
    ],
}
SELECTED = "a=b,q notin (1,2),!z"


@pytest.mark.parametrize(
    ("plural", "obj", "expected"),
    [
        (
            "deployments",
            {
                "spec": {"replicas": 3, "selector": SELECTOR, "template": CONTAINERS},
                "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 4},
            },
            ["x", "2/3", 1, 4, AGE, "c,d", "i,j", SELECTED],
        ),
        ("deployments", {"spec": {"selector": {}}}, ["x", "0/0", 0, 0, AGE, "", "", ""]),
        (
            "deployments",
            {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}},
            ["x", "0/0", 0, 0, AGE, "", "", "<invalid>"],
        ),
        (
            "replicasets",
            {
                "spec": {"replicas": 3, "selector": SELECTOR, "template": CONTAINERS},
                "status": {"replicas": 2, "readyReplicas": 1},
            },
            ["x", 3, 2, 1, AGE, "c,d", "i,j", SELECTED],
        ),
        (
            "replicasets",
            {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}},
            ["x", 0, 0, 0, AGE, "", "", "<error>"],
        ),
        (
            "statefulsets",
            {"spec": {"replicas": 3, "template": CONTAINERS}, "status": {"readyReplicas": 1}},
            ["x", "1/3", AGE, "c,d", "i,j"],
        ),
        (
            "daemonsets",
            {
                "spec": {"selector": SIMPLE, "template": {"spec": {"nodeSelector": {"k": "v", "a": "b"}}}},
                "status": {
                    "desiredNumberScheduled": 1,
                    "currentNumberScheduled": 2,
                    "numberReady": 3,
                    "updatedNumberScheduled": 4,
                    "numberAvailable": 5,
                },
            },
            ["x", 1, 2, 3, 4, 5, "a=b,k=v", AGE, "", "", "a=b"],
        ),
        ("daemonsets", {"spec": {}}, ["x", 0, 0, 0, 0, 0, "<none>", AGE, "", "", "<none>"]),
        (
            "controllerrevisions",
            {
                "metadata": {
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Pod", "name": "p"},
                        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True},
                    ]
                },
                "revision": 4,
            },
            ["x", "daemonset.apps/d", 4, AGE],
        ),
        (
            "controllerrevisions",
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}]}},
            ["x", "pod/p", 0, AGE],
        ),
        ("controllerrevisions", {"revision": 1}, ["x", "<none>", 1, AGE]),
    ],
)
def test_apps(plural: str, obj: dict[str, Any], expected: list[Any]) -> None:
    assert list(row(resource(plural, "apps"), obj).values()) == expected


def conditions(*types: str, status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": each, "status": status} for each in types]}


@pytest.mark.parametrize(
    ("obj", "status"),
    [
        ({}, "Running"),
        ({"status": conditions("SuccessCriteriaMet")}, "SuccessCriteriaMet"),
        ({"status": conditions("SuccessCriteriaMet", "Complete")}, "Complete"),
        ({"status": conditions("FailureTarget")}, "FailureTarget"),
        ({"status": conditions("FailureTarget", "Failed")}, "Failed"),
        ({"status": conditions("Suspended")}, "Suspended"),
        ({"status": conditions("Suspended", status="False")}, "Running"),
        ({"metadata": DELETED, "status": conditions("Suspended")}, "Terminating"),
        ({"metadata": DELETED, "status": conditions("Complete")}, "Complete"),
    ],
)
def test_jobs_show_what_they_are_at(obj: dict[str, Any], status: str) -> None:
    assert shown(resource("jobs", "batch"), obj, "Status") == [status]


@pytest.mark.parametrize(
    ("spec", "status", "completions", "duration"),
    [
        ({"completions": 5}, {"succeeded": 2}, "2/5", ""),
        ({"parallelism": 3}, {}, "0/1 of 3", ""),
        ({"parallelism": 1}, {"startTime": "2024-01-10T11:58:00Z"}, "0/1", "2m"),
        ({}, {"startTime": "2024-01-10T10:00:00Z", "completionTime": "2024-01-10T10:00:42Z"}, "0/1", "42s"),
    ],
)
def test_jobs_show_how_far_they_are(
    spec: dict[str, Any], status: dict[str, Any], completions: str, duration: str
) -> None:
    obj = {"spec": {**spec, "template": CONTAINERS, "selector": SIMPLE}, "status": status}
    expected = ["x", "Running", completions, duration, AGE, "c,d", "i,j", "a=b"]
    assert list(row(resource("jobs", "batch"), obj).values()) == expected


def test_cron_jobs() -> None:
    cron_jobs = resource("cronjobs", "batch")
    obj = {
        "spec": {
            "schedule": "@daily",
            "timeZone": "Europe/Berlin",
            "suspend": False,
            "jobTemplate": {"spec": {"template": CONTAINERS}},
        },
        "status": {"active": [{"name": "a"}], "lastScheduleTime": "2024-01-10T11:00:00Z"},
    }
    expected = ["x", "@daily", "Europe/Berlin", "False", 1, "60m", AGE, "c,d", "i,j", "<none>"]
    assert list(row(cron_jobs, obj).values()) == expected
    bare = shown(cron_jobs, {"spec": {"schedule": "@daily"}}, "Timezone", "Suspend", "Active", "Last Schedule")
    assert bare == ["<none>", "<unset>", 0, "<none>"]


def metric(type: str, target: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": type, type[0].lower() + type[1:]: {"target": target, **more}}


def measured(type: str, **current: Any) -> dict[str, Any]:
    return {"type": type, type[0].lower() + type[1:]: {"current": current}}


CPU = metric("Resource", {"averageUtilization": 80}, name="cpu")
PODS = metric("Pods", {"averageValue": "5k"})


@pytest.mark.parametrize(
    ("metrics", "current", "targets"),
    [
        ([], [], "<none>"),
        ([CPU], [], "cpu: <unknown>/80%"),
        ([CPU], [measured("Resource", averageUtilization=40, averageValue="100m")], "cpu: 40%/80%"),
        ([metric("Resource", {}, name="cpu")], [], "cpu: <unknown>/<auto>"),
        ([metric("Resource", {"averageValue": "1"}, name="cpu")], [], "cpu: <unknown>/1"),
        (
            [metric("Resource", {"averageValue": "1"}, name="cpu")],
            [measured("Resource", averageValue="100m")],
            "cpu: 100m/1",
        ),
        (
            [metric("ContainerResource", {"averageUtilization": 10}, name="memory", container="c")],
            [measured("ContainerResource", averageUtilization=4)],
            "memory: 4%/10%",
        ),
        ([PODS], [], "<unknown>/5k"),
        ([PODS], [measured("Pods", averageValue="5")], "5/5k"),
        ([PODS], [measured("Pods", value="5")], "<nil>/5k"),
        ([metric("External", {"value": "5k"})], [measured("External", value="1")], "1/5k"),
        ([metric("External", {"averageValue": "5k"})], [measured("External", averageValue="1")], "1/5k (avg)"),
        ([metric("External", {"averageValue": "5k"})], [measured("External", value="1")], "<unknown>/5k (avg)"),
        ([metric("Object", {"value": "3"})], [], "<unknown>/3"),
        ([metric("Object", {"value": "3"})], [measured("Object", averageValue="1")], "<nil>/3"),
        ([CPU, PODS], [measured("Resource", averageUtilization=40)], "cpu: 40%/80%, <unknown>/5k"),
        ([CPU, PODS, PODS, PODS], [], "cpu: <unknown>/80%, <unknown>/5k + 2 more..."),
        ([{"type": "New"}], [], "<unknown type>"),
    ],
)
def test_autoscalers_show_each_metric(metrics: list[Any], current: list[Any], targets: str) -> None:
    obj = {
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 5, "metrics": metrics},
        "status": {"currentReplicas": 3, "currentMetrics": current},
    }
    cells = list(row(resource("horizontalpodautoscalers", "autoscaling", "v2"), obj).values())
    assert cells == ["x", "Deployment/d", targets, "<unset>", 5, 3, AGE]


def test_autoscalers_look_the_same_in_both_versions() -> None:
    obj = {
        "metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/conditions": "[]", "mine": "1"}},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "d"},
            "minReplicas": 2,
            "maxReplicas": 5,
            "targetCPUUtilizationPercentage": 55,
        },
        "status": {"currentReplicas": 1, "currentCPUUtilizationPercentage": 33},
    }
    made = table(resource("horizontalpodautoscalers", "autoscaling", "v1"), obj, include="Metadata")["rows"][0]
    assert made["cells"] == ["x", "Deployment/d", "cpu: 33%/55%", "2", 5, 1, AGE]
    assert made["object"]["metadata"]["annotations"] == {"mine": "1"}  # what v1 keeps there is a field in v2


def rule(host: str = "") -> dict[str, Any]:
    return {"host": host} if host else {}


@pytest.mark.parametrize(
    ("rules", "hosts"),
    [
        ([], "*"),
        ([rule()], "*"),
        ([rule("a"), rule("b"), rule("c")], "a,b,c"),
        ([rule("a"), rule("b"), rule("c"), rule("d"), rule()], "a,b,c + 2 more..."),
        ([rule(), rule("b"), rule("c"), rule("d"), rule()], "b,c,d + 2 more..."),
    ],
)
def test_ingresses_show_the_first_three_hosts(rules: list[Any], hosts: str) -> None:
    assert shown(resource("ingresses", "networking.k8s.io"), {"spec": {"rules": rules}}, "Hosts") == [hosts]


RBAC = "rbac.authorization.k8s.io"
BINDING = {
    "roleRef": {"kind": "ClusterRole", "name": "r"},
    "subjects": [
        {"kind": "User", "name": "u"},
        {"kind": "ServiceAccount", "namespace": "n", "name": "s"},
        {"kind": "Group", "name": "g"},
        {"kind": "User", "name": "v"},
    ],
}
BOUND = ["x", "ClusterRole/r", AGE, "u, v", "g", "n/s"]
ADMISSION = "admissionregistration.k8s.io"
GO_SELECTOR = (
    "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{"
    "LabelSelectorRequirement{Key:z,Operator:DoesNotExist,Values:[],},"
    "LabelSelectorRequirement{Key:q,Operator:NotIn,Values:[2 1],},},}"
)


@pytest.mark.parametrize(
    ("plural", "group", "obj", "expected"),
    [
        (
            "ingresses",
            "networking.k8s.io",
            {
                "spec": {"ingressClassName": "c", "rules": [rule("a.b")], "tls": [{"hosts": ["a.b"]}]},
                "status": {"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"hostname": "x.y"}, {"ip": "1.1.1.1"}]}},
            },
            ["x", "c", "a.b", "1.1.1.1,2.2.2.2,x.y", "80, 443", AGE],
        ),
        ("ingresses", "networking.k8s.io", {"spec": {}}, ["x", "<none>", "*", "", "80", AGE]),
        (
            "ingressclasses",
            "networking.k8s.io",
            {
                "metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
                "spec": {"controller": "a/b", "parameters": {"apiGroup": "g", "kind": "K", "name": "n"}},
            },
            ["x (default)", "a/b", "K.g/n", AGE],
        ),
        (
            "ingressclasses",
            "networking.k8s.io",
            {"spec": {"parameters": {"kind": "K", "name": "n"}}},
            ["x", "", "K/n", AGE],
        ),
        ("ingressclasses", "networking.k8s.io", {}, ["x", "", "<none>", AGE]),
        ("networkpolicies", "networking.k8s.io", {"spec": {"podSelector": SELECTOR}}, ["x", SELECTED, AGE]),
        ("networkpolicies", "networking.k8s.io", {"spec": {"podSelector": {}}}, ["x", "<none>", AGE]),
        (
            "ipaddresses",
            "networking.k8s.io",
            {"spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "s"}}},
            ["x", "services/n/s"],
        ),
        (
            "ipaddresses",
            "networking.k8s.io",
            {"spec": {"parentRef": {"group": "g.h", "resource": "things", "name": "s"}}},
            ["x", "things.g.h/s"],
        ),
        ("servicecidrs", "networking.k8s.io", {"spec": {"cidrs": ["a", "b"]}}, ["x", "a,b", AGE]),
        (
            "endpointslices",
            "discovery.k8s.io",
            {
                "addressType": "IPv4",
                "ports": [{"port": 80}, {"name": "b"}, {}, {"port": 83}],
                "endpoints": [{"addresses": ["a"]}, {"addresses": ["b", "c"]}, {"addresses": ["d"]}],
            },
            ["x", "IPv4", "80,b,* + 1 more...", "a,b,c + 1 more...", AGE],
        ),
        ("endpointslices", "discovery.k8s.io", {"addressType": "IPv6"}, ["x", "IPv6", "<unset>", "<unset>", AGE]),
        (
            "poddisruptionbudgets",
            "policy",
            {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}},
            ["x", "50%", "N/A", 2, AGE],
        ),
        ("poddisruptionbudgets", "policy", {"spec": {"maxUnavailable": 0}}, ["x", "N/A", "0", 0, AGE]),
        ("rolebindings", RBAC, BINDING, BOUND),
        ("clusterrolebindings", RBAC, BINDING, BOUND),
        (
            "certificatesigningrequests",
            "certificates.k8s.io",
            {"spec": {"signerName": "a/b", "username": "me", "expirationSeconds": 3600}},
            ["x", AGE, "a/b", "me", "60m", "Pending"],
        ),
        (
            "certificatesigningrequests",
            "certificates.k8s.io",
            {"status": {**conditions("Approved", "Failed"), "certificate": "AA=="}},
            ["x", AGE, "<none>", "", "<none>", "Approved,Failed,Issued"],
        ),
        (
            "certificatesigningrequests",
            "certificates.k8s.io",
            {"status": conditions("Approved", "Denied")},
            ["x", AGE, "<none>", "", "<none>", "Denied"],
        ),
        (
            "storageclasses",
            "storage.k8s.io",
            {
                "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
                "provisioner": "p",
                "reclaimPolicy": "Retain",
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowVolumeExpansion": True,
            },
            ["x (default)", "p", "Retain", "WaitForFirstConsumer", True, AGE],
        ),
        (
            "storageclasses",
            "storage.k8s.io",
            {"metadata": {"annotations": {"storageclass.beta.kubernetes.io/is-default-class": "true"}}},
            ["x (default)", "", "Delete", "Immediate", False, AGE],
        ),
        ("csidrivers", "storage.k8s.io", {"spec": {}}, ["x", True, False, False, "<unset>", False, "<none>", AGE]),
        (
            "csidrivers",
            "storage.k8s.io",
            {
                "spec": {
                    "attachRequired": False,
                    "podInfoOnMount": True,
                    "storageCapacity": True,
                    "tokenRequests": [{"audience": "a"}, {"audience": "b"}],
                    "requiresRepublish": True,
                    "volumeLifecycleModes": ["Persistent", "Ephemeral"],
                }
            },
            ["x", False, True, True, "a,b", True, "Persistent,Ephemeral", AGE],
        ),
        ("csinodes", "storage.k8s.io", {"spec": {"drivers": [{"name": "d"}]}}, ["x", 1, AGE]),
        ("csinodes", "storage.k8s.io", {"spec": {"drivers": None}}, ["x", 0, AGE]),
        (
            "volumeattachments",
            "storage.k8s.io",
            {
                "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
                "status": {"attached": True},
            },
            ["x", "a", "v", "n", True, AGE],
        ),
        ("volumeattributesclasses", "storage.k8s.io", {"driverName": "d"}, ["x", "d", AGE]),
        ("mutatingwebhookconfigurations", ADMISSION, {"webhooks": [{"name": "a"}]}, ["x", 1, AGE]),
        ("validatingwebhookconfigurations", ADMISSION, {}, ["x", 0, AGE]),
        (
            "validatingadmissionpolicies",
            ADMISSION,
            {"spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "true"}]}},
            ["x", 1, "v1/ConfigMap", AGE],
        ),
        ("mutatingadmissionpolicies", ADMISSION, {"spec": {"mutations": [{}, {}]}}, ["x", 2, "<unset>", AGE]),
        ("validatingadmissionpolicybindings", ADMISSION, {"spec": {"policyName": "p"}}, ["x", "p", "<unset>", AGE]),
        ("mutatingadmissionpolicybindings", ADMISSION, {"spec": {"paramRef": {"name": "a"}}}, ["x", "", "*/a", AGE]),
        (
            "validatingadmissionpolicybindings",
            ADMISSION,
            {"spec": {"paramRef": {"name": "a", "namespace": "n"}}},
            ["x", "", "n/a", AGE],
        ),
        (
            "validatingadmissionpolicybindings",
            ADMISSION,
            {"spec": {"paramRef": {"selector": SELECTOR}}},
            ["x", "", GO_SELECTOR, AGE],
        ),
        ("apiservices", "apiregistration.k8s.io", {"status": conditions("Available")}, ["x", "Local", "True", AGE]),
        (
            "apiservices",
            "apiregistration.k8s.io",
            {
                "spec": {"service": {"namespace": "n", "name": "s"}},
                "status": {"conditions": [{"type": "Available", "status": "False", "reason": "Gone"}]},
            },
            ["x", "n/s", "False (Gone)", AGE],
        ),
        ("apiservices", "apiregistration.k8s.io", {}, ["x", "Local", "Unknown", AGE]),
        (
            "priorityclasses",
            "scheduling.k8s.io",
            {"value": -5, "globalDefault": True, "preemptionPolicy": "Never"},
            ["x", -5, True, AGE, "Never"],
        ),
        ("leases", "coordination.k8s.io", {"spec": {"holderIdentity": "me"}}, ["x", "me", AGE]),
        ("leases", "coordination.k8s.io", {"spec": {}}, ["x", "", AGE]),
        ("runtimeclasses", "node.k8s.io", {"handler": "runc"}, ["x", "runc", AGE]),
        ("deviceclasses", "resource.k8s.io", {}, ["x", AGE]),
        ("resourceclaimtemplates", "resource.k8s.io", {}, ["x", AGE]),
        ("resourceclaims", "resource.k8s.io", {}, ["x", "pending", AGE]),
        ("resourceclaims", "resource.k8s.io", {"status": {"allocation": {}}}, ["x", "allocated", AGE]),
        (
            "resourceclaims",
            "resource.k8s.io",
            {"metadata": DELETED, "status": {"allocation": {}, "reservedFor": [{"name": "p"}]}},
            ["x", "deleted,allocated,reserved", AGE],
        ),
        ("resourceclaims", "resource.k8s.io", {"metadata": DELETED}, ["x", "deleted", AGE]),
        (
            "resourceslices",
            "resource.k8s.io",
            {"spec": {"nodeName": "n", "driver": "d", "pool": {"name": "p"}}},
            ["x", "n", "d", "p", AGE],
        ),
        (
            "flowschemas",
            "flowcontrol.apiserver.k8s.io",
            {
                "spec": {
                    "priorityLevelConfiguration": {"name": "l"},
                    "matchingPrecedence": 100,
                    "distinguisherMethod": {"type": "ByUser"},
                },
                "status": {"conditions": [{"type": "Dangling", "status": "True"}]},
            },
            ["x", "l", 100, "ByUser", AGE, "True"],
        ),
        ("flowschemas", "flowcontrol.apiserver.k8s.io", {}, ["x", "", 0, "<none>", AGE, "?"]),
        (
            "prioritylevelconfigurations",
            "flowcontrol.apiserver.k8s.io",
            {
                "spec": {
                    "type": "Limited",
                    "limited": {
                        "nominalConcurrencyShares": 40,
                        "limitResponse": {
                            "type": "Queue",
                            "queuing": {"queues": 64, "handSize": 6, "queueLengthLimit": 50},
                        },
                    },
                }
            },
            ["x", "Limited", 40, 64, 6, 50, AGE],
        ),
        (
            "prioritylevelconfigurations",
            "flowcontrol.apiserver.k8s.io",
            {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}},
            ["x", "Limited", 0, "<none>", "<none>", "<none>", AGE],
        ),
        (
            "prioritylevelconfigurations",
            "flowcontrol.apiserver.k8s.io",
            {"spec": {"type": "Exempt"}},
            ["x", "Exempt", "<none>", "<none>", "<none>", "<none>", AGE],
        ),
    ],
)
def test_cells(plural: str, group: str, obj: dict[str, Any], expected: list[Any]) -> None:
    assert list(row(resource(plural, group), obj).values()) == expected


def test_flow_schemas_are_listed_in_the_order_of_matching() -> None:
    schemas = [("b", 20), ("c", 10), ("a", 20)]
    objects = [{"metadata": {"name": name}, "spec": {"matchingPrecedence": number}} for name, number in schemas]
    made = table(resource("flowschemas", "flowcontrol.apiserver.k8s.io"), *objects, include="Metadata")
    assert [each["cells"][0] for each in made["rows"]] == ["c", "a", "b"]
    assert [each["object"]["metadata"]["name"] for each in made["rows"]] == ["c", "a", "b"]
