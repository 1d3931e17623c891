"""metrics.k8s.io, with a kubelet that says what we want: kinds, selectors, tables, `kubectl top`."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from apiserver.client import Client

import tools
from pybernetes import pki

ROOT = "/apis/metrics.k8s.io/v1beta1"


def usage(cpu: int | None, memory: int, name: str = "") -> dict[str, Any]:
    rate = {} if cpu is None else {"usageNanoCores": cpu}
    return {
        **({"name": name} if name else {}),
        "startTime": "2026-01-01T00:00:00Z",
        "cpu": {"time": "2026-01-01T00:00:04Z", **rate},
        "memory": {"time": "2026-01-01T00:00:04Z", "workingSetBytes": memory},
    }


class Kubelet(ThreadingHTTPServer):
    """A kubelet that knows one page."""

    def __init__(self, folder: Path) -> None:
        identity = pki.issue_server(pki.create_authority("ca"), "node", ["127.0.0.1"])
        (folder / "crt").write_bytes(identity.certificate_pem)
        (folder / "key").write_bytes(identity.key_pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "crt", folder / "key")
        self.paths: list[str] = []
        self.pods: list[dict[str, Any]] = []
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                kubelet.paths.append(self.path)
                node = {"nodeName": "n1", **usage(250_000_000, 512 << 20)}
                body = json.dumps({"node": node, "pods": kubelet.pods}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def pod(self, uid: str, *containers: dict[str, Any]) -> None:
        reference = {"name": "?", "namespace": "default", "uid": uid}
        self.pods.append({"podRef": reference, "containers": list(containers)})


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("metrics")
    with tools.api_server(folder, "--runtime-config=metrics.k8s.io/v1beta1=true") as server:
        yield Client(server)


@pytest.fixture(scope="module")
def kubelet(admin: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubelet]:
    """Node n1 with pods `web` (two containers), `young` (no rate yet) and `gone` (not known to the kubelet)."""
    with Kubelet(tmp_path_factory.mktemp("kubelet")) as kubelet:
        for name, port in (("n1", kubelet.server_address[1]), ("away", tools.free_port())):
            node = {"metadata": {"name": name, "labels": {"zone": name}}, "spec": {}}
            admin("POST", "/api/v1/nodes", node)
            status = {
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            }
            answer = admin.patch(f"/api/v1/nodes/{name}/status", {"status": status})
            assert answer.status == 200, answer.body
        for name in ("web", "young", "gone"):
            spec = {"nodeName": "n1", "containers": [{"name": "a", "image": "i"}]}
            pod = {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}
            made = admin("POST", "/api/v1/namespaces/default/pods", pod)
            assert made.status == 201, made.body
            uid = made.json["metadata"]["uid"]
            if name == "web":
                kubelet.pod(uid, usage(1_500_000, 3 << 20, "a"), usage(20, 1000, "b"))
            elif name == "young":
                kubelet.pod(uid, usage(1, 1, "a"), usage(None, 1, "b"))
        yield kubelet
        kubelet.shutdown()


def test_a_pods_metrics_are_those_of_its_containers(admin: Client, kubelet: Kubelet) -> None:
    found = admin("GET", f"{ROOT}/namespaces/default/pods/web").json
    made = found["metadata"].pop("creationTimestamp")
    assert made.endswith("Z")
    assert found == {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "timestamp": "2026-01-01T00:00:04Z",
        "window": "4s",
        "containers": [
            {"name": "a", "usage": {"cpu": "1500u", "memory": "3Mi"}},
            {"name": "b", "usage": {"cpu": "20n", "memory": "1k"}},
        ],
    }
    assert set(kubelet.paths) == {"/stats/summary?only_cpu_and_memory=true"}


def test_lists_leave_out_what_is_not_known_and_follow_selectors(admin: Client, kubelet: Kubelet) -> None:
    def names(path: str) -> list[str]:
        return [each["metadata"]["name"] for each in admin("GET", path).json["items"]]

    assert names(f"{ROOT}/pods") == ["web"]
    assert names(f"{ROOT}/namespaces/default/pods?labelSelector=app%3Dweb") == ["web"]
    assert names(f"{ROOT}/namespaces/default/pods?labelSelector=app%3Dyoung") == []
    assert names(f"{ROOT}/namespaces/default/pods?fieldSelector=metadata.name%3Dweb") == ["web"]
    assert names(f"{ROOT}/namespaces/other/pods") == []
    assert names(f"{ROOT}/nodes") == ["n1"]  # `away` does not answer
    assert names(f"{ROOT}/nodes?labelSelector=zone%3Daway") == []


def test_what_has_no_metrics_is_not_found(admin: Client, kubelet: Kubelet) -> None:
    for path, words in (
        ("namespaces/default/pods/young", 'podmetrics.metrics.k8s.io "default/young" not found'),
        ("namespaces/default/pods/none", 'podmetrics.metrics.k8s.io "default/none" not found'),
        ("nodes/away", 'nodemetrics.metrics.k8s.io "away" not found'),
    ):
        answer = admin("GET", f"{ROOT}/{path}")
        assert (answer.status, answer.message) == (404, words)
    assert admin("POST", f"{ROOT}/nodes", {}).status == 405


def test_the_group_is_discovered_and_its_apiservice_is_local(admin: Client) -> None:
    document = admin("GET", ROOT).json
    assert [(each["name"], each["kind"], each["namespaced"], each["verbs"]) for each in document["resources"]] == [
        ("nodes", "NodeMetrics", False, ["get", "list"]),
        ("pods", "PodMetrics", True, ["get", "list"]),
    ]
    service = admin("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io").json
    assert "service" not in service["spec"]
    assert service["status"]["conditions"][0]["reason"] == "Local"
    schema = admin("GET", "/openapi/v3/apis/metrics.k8s.io/v1beta1").json
    assert any(name.endswith("PodMetrics") for name in schema["components"]["schemas"])


def test_who_may_view_may_see_metrics(admin: Client) -> None:
    role = admin("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:aggregated-metrics-reader").json
    assert role["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert role["rules"][0]["resources"] == ["pods", "nodes"]


def test_without_the_flag_nothing_is_served(cluster: tools.ApiServer) -> None:
    assert Client(cluster)("GET", f"{ROOT}/nodes").status == 404


def test_kubectl_top_and_get(admin: Client, kubelet: Kubelet, kubectl: str) -> None:
    def run(*words: str) -> list[list[str]]:
        command = [kubectl, f"--kubeconfig={admin.server.kubeconfig}", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return [line.split() for line in done.stdout.splitlines()]

    assert run("top", "pods") == [["NAME", "CPU(cores)", "MEMORY(bytes)"], ["web", "2m", "3Mi"]]
    assert run("top", "pods", "--containers")[1:] == [["web", "a", "2m", "3Mi"], ["web", "b", "1m", "0Mi"]]
    assert run("get", "pods.metrics.k8s.io") == [
        ["NAME", "CPU", "MEMORY", "WINDOW"],
        ["web", "1500020n", "3146728", "4s"],
    ]
    assert run("top", "nodes")[1][:2] == ["n1", "250m"]
