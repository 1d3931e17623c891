"""HorizontalPodAutoscalers read metrics through the API server, from a metrics server that extends it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest
from apiserver.aggregation.conftest import Registered
from apiserver.aggregation.extension import Handler
from apiserver.client import Client

import tools

ROOT = "/apis/metrics.k8s.io/v1beta1"


def metrics(handler: Handler) -> bool:
    """A small metrics server: every pod of the namespace uses 200 Mi."""
    path = handler.path.partition("?")[0]
    if path == ROOT:
        pods = {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
        handler.answer({"kind": "APIResourceList", "groupVersion": "metrics.k8s.io/v1beta1", "resources": [pods]})
    elif path.endswith("/pods"):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        items = [
            {
                "metadata": {"name": name},
                "timestamp": now,
                "window": "30s",
                "containers": [{"name": "c", "usage": {"cpu": "10m", "memory": "200Mi"}}],
            }
            for name in ("web-0", "web-1")
        ]
        handler.answer({"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items})
    else:
        return False
    return True


@pytest.fixture
def autoscaler(admin: Client) -> Iterator[None]:
    """A controller manager with nothing but the autoscaler."""
    folder = admin.server.folder
    command = [
        *tools.PYTHON,
        "controller-manager",
        f"--kubeconfig={admin.server.kubeconfig}",
        "--controllers=horizontal-pod-autoscaler-controller",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={tools.free_port()}",
        f"--tls-cert-file={folder}/pki/controller-manager-serving.crt",
        f"--tls-private-key-file={folder}/pki/controller-manager-serving.key",
        "--horizontal-pod-autoscaler-sync-period=1s",
    ]
    with open(folder / "autoscaler.log", "ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


def test_an_autoscaler_scales_by_what_the_metrics_server_says(registered: Registered, autoscaler: None) -> None:
    admin, namespace = registered.admin, registered.namespace
    registered.server.custom = metrics
    registered.service()
    registered.slice()
    service = {
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "service": {"namespace": namespace, "name": "ext"},
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": registered.server.bundle,
        },
    }
    assert admin.post("/apis/apiregistration.k8s.io/v1/apiservices", service).status == 201
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web"}]}}
    deployment = {
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    assert admin.post(path, deployment).status == 201
    admin.patch(f"{path}/web/status", {"status": {"replicas": 2, "observedGeneration": 1}})
    for name in ("web-0", "web-1"):
        pods = f"/api/v1/namespaces/{namespace}/pods"
        assert admin.post(pods, {**template, "metadata": {**template["metadata"], "name": name}}).status == 201
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        assert admin.patch(f"{pods}/{name}/status", {"status": ready}).status == 200
    memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}
    scaler = {
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 10,
            "metrics": [{"type": "Resource", "resource": memory}],
        },
    }
    made = admin.post(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers", scaler)
    assert made.status == 201, made.body
    try:
        tools.wait_until(lambda: admin.get(f"{path}/web").json["spec"]["replicas"] == 4, "twice as many")
        asked = [headers for _, path, headers, _ in registered.server.requests if "/pods?" in path]
        assert asked[0]["x-remote-user"] == ["kubernetes-admin"]
    finally:
        admin.delete("/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io")
