"""kubectl 1.20 does what people do with it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from e2e.kubectl import Kubectl, KubectlFailed

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
ONCE = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
SELECTOR = {"matchLabels": {"a": "b"}}
WEBHOOK = {
    "name": "a.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"url": "https://example.com/hook"},
    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}],
}

# kind -> (apiVersion, what is in it besides metadata, a merge patch). Names are made from the kind.
KINDS: dict[str, tuple[str, dict[str, object], dict[str, object]]] = {
    "ConfigMap": ("v1", {"data": {"x": "1"}}, {"data": {"y": "2"}}),
    "Secret": ("v1", {"stringData": {"x": "1"}}, {"stringData": {"y": "2"}}),
    "Service": ("v1", {"spec": {"ports": [{"port": 80}]}}, {"spec": {"selector": {"x": "y"}}}),
    "Endpoints": ("v1", {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 1}]}]}, {"subsets": None}),
    "ServiceAccount": ("v1", {}, {"automountServiceAccountToken": False}),
    "Pod": ("v1", {"spec": TEMPLATE["spec"]}, {"metadata": {"labels": {"p": "q"}}}),
    "PodTemplate": ("v1", {"template": TEMPLATE}, {"template": {"metadata": {"labels": {"p": "q"}}}}),
    "LimitRange": (
        "v1",
        {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "2"}}]}},
        {"metadata": {"labels": {"p": "q"}}},
    ),
    "ResourceQuota": ("v1", {"spec": {"hard": {"pods": "3"}}}, {"spec": {"hard": {"pods": "4"}}}),
    "ReplicationController": (
        "v1",
        {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}},
        {"spec": {"replicas": 2}},
    ),
    "PersistentVolumeClaim": (
        "v1",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
        {"metadata": {"labels": {"p": "q"}}},
    ),
    "PersistentVolume": (
        "v1",
        {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/x"}}},
        {"spec": {"persistentVolumeReclaimPolicy": "Delete"}},
    ),
    "Node": ("v1", {}, {"spec": {"unschedulable": True}}),
    "Deployment": ("apps/v1", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}, {"spec": {"replicas": 3}}),
    "ReplicaSet": ("apps/v1", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}, {"spec": {"replicas": 3}}),
    "DaemonSet": ("apps/v1", {"spec": {"selector": SELECTOR, "template": TEMPLATE}}, {"spec": {"minReadySeconds": 3}}),
    "StatefulSet": (
        "apps/v1",
        {"spec": {"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE}},
        {"spec": {"replicas": 3}},
    ),
    "ControllerRevision": ("apps/v1", {"revision": 1, "data": {"x": 1}}, {"revision": 2}),
    "Job": ("batch/v1", {"spec": {"template": ONCE}}, {"spec": {"parallelism": 2}}),
    "CronJob": (
        "batch/v1",
        {"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": ONCE}}}},
        {"spec": {"suspend": True}},
    ),
    "HorizontalPodAutoscaler": (
        "autoscaling/v1",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}},
        {"spec": {"maxReplicas": 4}},
    ),
    "PodDisruptionBudget": (
        "policy/v1",
        {"spec": {"minAvailable": 1, "selector": SELECTOR}},
        {"spec": {"minAvailable": 2}},
    ),
    "NetworkPolicy": ("networking.k8s.io/v1", {"spec": {"podSelector": {}}}, {"spec": {"policyTypes": ["Egress"]}}),
    "Ingress": (
        "networking.k8s.io/v1",
        {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
        {"metadata": {"labels": {"p": "q"}}},
    ),
    "IngressClass": (
        "networking.k8s.io/v1",
        {"spec": {"controller": "example.com/c"}},
        {"metadata": {"labels": {"p": "q"}}},
    ),
    "EndpointSlice": (
        "discovery.k8s.io/v1",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}]},
        {"ports": [{"port": 80}]},
    ),
    "Lease": ("coordination.k8s.io/v1", {"spec": {"holderIdentity": "a"}}, {"spec": {"holderIdentity": "b"}}),
    "Role": (
        "rbac.authorization.k8s.io/v1",
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
        {"metadata": {"labels": {"p": "q"}}},
    ),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", {"rules": []}, {"metadata": {"labels": {"p": "q"}}}),
    "RoleBinding": (
        "rbac.authorization.k8s.io/v1",
        {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}},
        {"subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]},
    ),
    "StorageClass": ("storage.k8s.io/v1", {"provisioner": "example.com/p"}, {"allowVolumeExpansion": True}),
    "CSIDriver": ("storage.k8s.io/v1", {"spec": {"attachRequired": False}}, {"metadata": {"labels": {"p": "q"}}}),
    "PriorityClass": ("scheduling.k8s.io/v1", {"value": 5}, {"description": "d"}),
    "RuntimeClass": ("node.k8s.io/v1", {"handler": "h"}, {"metadata": {"labels": {"p": "q"}}}),
    "ValidatingWebhookConfiguration": (
        "admissionregistration.k8s.io/v1",
        {"webhooks": [WEBHOOK]},
        {"metadata": {"labels": {"p": "q"}}},
    ),
    "FlowSchema": (
        "flowcontrol.apiserver.k8s.io/v1",
        {"spec": {"priorityLevelConfiguration": {"name": "exempt"}}},
        {"spec": {"matchingPrecedence": 77}},
    ),
}


# Debian's kubectl describes these through beta versions that v1.36 does not serve any more.
NO_DESCRIBE = ("PodDisruptionBudget", "EndpointSlice", "CronJob")


@pytest.mark.parametrize("kind", KINDS)
def test_a_life_of_every_kind(run: Kubectl, kind: str, tmp_path: Path) -> None:
    version, content, patch = KINDS[kind]
    space, name = f"life-{kind.lower()}", f"x-{kind.lower()}"
    run("create", "namespace", space)
    manifest = tmp_path / "object.json"
    manifest.write_text(json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, **content}))
    group = version.partition("/")[0] if "/" in version else ""
    resource = f"{kind.lower()}.{version.partition('/')[2]}.{group}" if group else kind.lower()
    here = ("-n", space)

    assert "created" in run("create", *here, "-f", str(manifest))
    assert name in run("get", *here, resource)
    assert name in run("get", *here, resource, "-o", "wide")
    assert f"name: {name}" in run("get", *here, resource, name, "-o", "yaml")
    assert run("get", *here, resource, name, "-o", "jsonpath={.metadata.name}") == name
    assert run("get", *here, resource, name, "-o", "go-template={{.kind}}") == kind
    if kind not in NO_DESCRIBE:
        assert name in run("describe", *here, resource, name)
    assert "labeled" in run("label", *here, resource, name, "l=m")
    assert "annotated" in run("annotate", *here, resource, name, "n=o")
    assert "patched" in run("patch", *here, resource, name, "--type=merge", "-p", json.dumps(patch))
    operation = [{"op": "add", "path": "/metadata/labels/j", "value": "k"}]
    assert "patched" in run("patch", *here, resource, name, "--type=json", "-p", json.dumps(operation))
    found = json.loads(run("get", *here, resource, name, "-o", "json"))
    assert found["metadata"]["labels"]["l"] == "m"
    assert found["metadata"]["labels"]["j"] == "k"
    assert found["metadata"]["annotations"]["n"] == "o"
    found["metadata"]["annotations"]["replaced"] = "yes"
    assert "replaced" in run("replace", *here, "-f", "-", stdin=json.dumps(found))
    selected = run("get", *here, resource, "-l", "l=m,j", "-o", "name").split()
    assert [each.partition("/")[2] for each in selected] == [name]
    assert "deleted" in run("delete", *here, resource, name, "--grace-period=0", "--force", "--wait=false")
    if kind not in ("PersistentVolume", "PersistentVolumeClaim"):
        run("wait", *here, "--for=delete", f"{resource}/{name}", "--timeout=60s") if _there(
            run, here, resource, name
        ) else None
        assert not _there(run, here, resource, name)


def _there(run: Kubectl, here: tuple[str, str], resource: str, name: str) -> bool:
    return bool(run("get", *here, resource, name, "--ignore-not-found"))


def test_api_resources_and_versions(run: Kubectl) -> None:
    lines = run("api-resources").splitlines()
    deployments = next(line for line in lines if line.startswith("deployments"))
    assert deployments.split() == ["deployments", "deploy", "apps/v1", "true", "Deployment"]
    assert {"v1", "apps/v1", "autoscaling/v2", "resource.k8s.io/v1"} <= set(run("api-versions").split())
    assert len(run("api-resources", "-o", "name", "--verbs=list,watch").split()) > 55


def test_tables_look_as_people_know_them(run: Kubectl, space: str) -> None:
    run("create", "-n", space, "deployment", "web", "--image=nginx", "--replicas=3")
    table = run("get", "-n", space, "deploy").split("\n")
    assert table[0].split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert table[1].split()[:4] == ["web", "0/3", "0", "0"]
    wide = run("get", "-n", space, "deploy", "-o", "wide").split("\n")[0].split()
    assert wide[-3:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    names = run("get", "namespaces", "--no-headers", "-o", "custom-columns=N:.metadata.name").split()
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= set(names)


def test_scale_set_and_rollout_read_what_they_wrote(run: Kubectl, space: str) -> None:
    here = ("-n", space)
    run("create", *here, "deployment", "web", "--image=nginx:1")
    assert "scaled" in run("scale", *here, "deploy/web", "--replicas=4")
    assert run("get", *here, "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "4"
    with pytest.raises(KubectlFailed, match="Expected replicas to be 9, was 4"):
        run("scale", *here, "deploy/web", "--current-replicas=9", "--replicas=1")
    assert "image updated" in run("set", *here, "image", "deploy/web", "nginx=nginx:2")
    assert "nginx:2" in run("get", *here, "deploy", "web", "-o", "yaml")
    assert "paused" in run("rollout", *here, "pause", "deploy/web")
    assert "restarted" in run("rollout", *here, "resume", "deploy/web") + run("rollout", *here, "restart", "deploy/web")


def test_create_generators(run: Kubectl, space: str) -> None:
    here = ("-n", space)
    run("create", *here, "configmap", "c", "--from-literal=a=b")
    run("create", *here, "secret", "generic", "s", "--from-literal=a=b")
    run("create", *here, "service", "clusterip", "svc", "--tcp=80:8080")
    run("create", *here, "job", "j", "--image=busybox", "--", "true")
    run("create", *here, "serviceaccount", "sa")
    run("create", *here, "role", "r", "--verb=get", "--resource=pods")
    run("create", *here, "rolebinding", "rb", "--role=r", "--serviceaccount=default:sa")
    run("create", *here, "quota", "q", "--hard=pods=2")
    run("run", *here, "pod", "--image=nginx", "--restart=Never")
    run("expose", *here, "pod", "pod", "--port=80", "--selector=run=pod")
    address = run("get", *here, "svc", "svc", "-o", "jsonpath={.spec.clusterIP}")
    assert address.count(".") == 3
    assert run("get", *here, "secret", "s", "-o", "jsonpath={.data.a}") == "Yg=="


def test_errors_are_worded_as_people_know_them(run: Kubectl, space: str) -> None:
    with pytest.raises(KubectlFailed, match=r'Error from server \(NotFound\): pods "nope" not found'):
        run("get", "-n", space, "pod", "nope")
    run("create", "-n", space, "configmap", "c")
    with pytest.raises(KubectlFailed, match=r'\(AlreadyExists\): .*configmaps "c" already exists'):
        run("create", "-n", space, "configmap", "c")
    with pytest.raises(KubectlFailed, match=r'namespaces "nowhere" not found'):
        run("create", "-n", "nowhere", "configmap", "c")
    with pytest.raises(KubectlFailed, match="doesn't have a resource type"):
        run("get", "gizmos")


def test_get_watch_sees_changes(run: Kubectl, space: str) -> None:
    command = [run.binary, "get", "-n", space, "configmaps", "--watch", "-o", "name"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=run.environment) as watch:
        assert watch.stdout
        run("create", "-n", space, "configmap", "first")
        seen = []
        while "configmap/first" not in seen:
            seen.append(watch.stdout.readline().strip())
        run("create", "-n", space, "configmap", "second")
        assert watch.stdout.readline().strip() == "configmap/second"
        watch.terminate()


def test_wait_for_a_condition(run: Kubectl, space: str) -> None:
    run("create", "-n", space, "deployment", "web", "--image=nginx")
    condition = {"type": "Available", "status": "True", "lastUpdateTime": None, "lastTransitionTime": None}
    raw = f"/apis/apps/v1/namespaces/{space}/deployments/web/status"
    current = json.loads(run("get", "--raw", raw))
    current["status"] = {"conditions": [condition]}
    run("replace", "--raw", raw, "-f", "-", stdin=json.dumps(current))
    assert "condition met" in run("wait", "-n", space, "deploy/web", "--for=condition=Available", "--timeout=60s")


def test_raw_paths(run: Kubectl) -> None:
    assert run("get", "--raw", "/healthz") == "ok"
    assert json.loads(run("get", "--raw", "/version"))["minor"] == "36"
    assert "apiserver_request_total" in run("get", "--raw", "/metrics")


def test_can_i_and_cluster_info(run: Kubectl) -> None:
    assert run("auth", "can-i", "create", "pods").strip() == "yes"
    assert "Kubernetes" in run("cluster-info")
    assert "v1.36" in run("version", "--short")
    assert "etcd-0" in run("get", "componentstatuses")
