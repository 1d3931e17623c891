"""What a user does with a fresh cluster and kubectl: run, logs, exec, attach, cp, port-forward, top, rollout."""

from __future__ import annotations

import json
import random
import re
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from node.cluster import PROGRAMS, Cluster

import tools
from pybernetes.cluster.images import builtin, oci

BUSYBOX = "busybox:1.35"
# Ends at SIGTERM; a bare `sleep` as PID 1 does not, and each would cost its 30 s of grace.
SLEEP = "trap 'exit 0' TERM; sleep 1000 & wait"
pytestmark = pytest.mark.skipif(builtin.busybox_program() is None, reason="no static busybox")


class Kubectl:
    """kubectl in a namespace of the test's own."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def __call__(self, *words: str, stdin: str = "", check: bool = True) -> str:
        return self.cluster.kubectl("-n", self.namespace, *words, stdin=stdin, check=check)

    def run(self, name: str, *words: str, image: str = BUSYBOX, command: str = SLEEP) -> None:
        self("run", name, f"--image={image}", *words, "--", "sh", "-c", command)

    def ready(self, name: str) -> None:
        self("wait", f"pod/{name}", "--for=condition=Ready", "--timeout=110s")


@pytest.fixture
def kubectl_in(node: Cluster, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    namespace = re.sub(r"[^a-z0-9]+", "-", str(request.node.name).removeprefix("test_").lower())[:50].strip("-")
    node.kubectl("create", "namespace", namespace)
    yield Kubectl(node, namespace)
    node.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def nginx(node: Cluster) -> str:
    """The image made of the Debian package."""
    if shutil.which("nginx", path="/usr/sbin") is None:
        pytest.skip("nginx is not installed")
    said = node.pyb_image("from-package", "nginx")
    return str(re.search(r"Image ([^\s,]+)", said)[1])  # type: ignore[index]


def test_the_node_is_ready_and_says_what_it_is(node: Cluster) -> None:
    fields = node.kubectl("get", "nodes", "-o", "wide", "--no-headers").split()
    assert fields[:2] == ["node-1", "Ready"]
    name = {"containerd": "containerd", "embedded": "pybernetes"}[node.runtime]
    assert any(field.startswith(f"{name}://") for field in fields)
    status = json.loads(node.pyb("status", "--output=json"))
    assert (status["ready"], status["nodes"]) == (True, [{"name": "node-1", "ready": True, "state": "ready"}])
    running = {each["name"]: each["running"] for each in status["components"]}
    assert {"node-1", f"node-1/{PROGRAMS[node.runtime]}", "node-1/kubelet"} <= set(running)
    assert all(running.values())
    assert node.kubectl("get", "runtimeclasses", "-o", "name").split()


def test_the_log_of_the_kubelet_can_be_read_with_kubectl(node: Cluster) -> None:
    proxy = "/api/v1/nodes/node-1/proxy/logs/"
    assert "Creating Container Manager object" in node.kubectl("get", "--raw", f"{proxy}?query=kubelet")
    assert node.kubectl("get", "--raw", f"{proxy}?query=nothing") == "\nlog not found for nothing\n"


def test_images_of_the_cluster_are_pulled_by_their_plain_names(kubectl_in: Kubectl, nginx: str) -> None:
    """`latest` is always pulled: from the node's own registry, where there is no other."""
    kubectl_in.run("plain", image="busybox")
    kubectl_in("create", "deployment", "web", f"--image={nginx.rpartition(':')[0]}")
    kubectl_in.ready("plain")
    kubectl_in("rollout", "status", "deployment/web", "--timeout=110s")
    assert kubectl_in("get", "pod", "plain", "-o", "jsonpath={.spec.containers[0].imagePullPolicy}") == "Always"
    tools.wait_until(
        lambda: "Successfully pulled image" in kubectl_in("describe", "pod", "plain"), "an event tells of it"
    )


def test_run_logs_exec_and_delete(kubectl_in: Kubectl) -> None:
    kubectl_in.run("one", command=f"echo to the log; {SLEEP}")
    kubectl_in.ready("one")
    tools.wait_until(lambda: kubectl_in("logs", "one") == "to the log\n", "the log is there")
    assert kubectl_in("exec", "one", "--", "sh", "-c", "echo $((6 * 7)); hostname") == "42\none\n"
    failed = kubectl_in("exec", "one", "--", "sh", "-c", "exit 3", check=False)
    assert "exit code 3" in failed
    assert kubectl_in("exec", "-i", "one", "--", "cat", stdin="through the pipe\n") == "through the pipe\n"
    kubectl_in("delete", "pod", "one")
    assert "not found" in kubectl_in("get", "pod", "one", check=False)


def test_attach_reaches_the_process_of_a_container(kubectl_in: Kubectl) -> None:
    # Its stdin ends with the client's, and so does the container: one that is started again has another log.
    flags = ("--stdin", "--attach=false", "--restart=Never")
    kubectl_in.run("echo", *flags, command="while read line; do echo heard $line; done")
    kubectl_in.ready("echo")
    kubectl_in("attach", "-i", "echo", stdin="one\ntwo\n")
    tools.wait_until(lambda: kubectl_in("logs", "echo") == "heard one\nheard two\n", "it heard both")


def test_run_with_attach_shows_what_the_command_printed(kubectl_in: Kubectl) -> None:
    shown = kubectl_in(
        *("run", "once", f"--image={BUSYBOX}", "--restart=Never", "--rm", "-i"),
        *("--", "sh", "-c", "read line; echo got $line"),
        stdin="this\n",
    )
    assert "got this" in shown


def test_cp_brings_files_and_folders_both_ways(kubectl_in: Kubectl, tmp_path: Path) -> None:
    kubectl_in.run("files")
    kubectl_in.ready("files")
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    content = random.Random(7).randbytes(300_000)
    (source / "deep" / "data").write_bytes(content)
    kubectl_in("cp", str(source), "files:/tmp/there")
    assert kubectl_in("exec", "files", "--", "sh", "-c", "wc -c < /tmp/there/deep/data").strip() == "300000"
    kubectl_in("cp", "files:/tmp/there/deep/data", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == content


def test_a_deployment_is_scaled_rolled_out_rolled_back_and_deleted(kubectl_in: Kubectl) -> None:
    kubectl_in("create", "deployment", "web", f"--image={BUSYBOX}", "--replicas=3", "--", "sh", "-c", SLEEP)
    kubectl_in("rollout", "status", "deployment/web", "--timeout=110s")
    names = kubectl_in("get", "pods", "-l", "app=web", "-o", "name").split()
    assert len(names) == 3
    kubectl_in("scale", "deployment/web", "--replicas=2")
    kubectl_in("set", "image", "deployment/web", "busybox=busybox:1.35.0")
    kubectl_in("rollout", "status", "deployment/web", "--timeout=110s")
    images = "jsonpath={.items[*].spec.containers[0].image}"

    def running(image: str) -> bool:
        found = kubectl_in("get", "pods", "-l", "app=web", "--field-selector=status.phase=Running", "-o", images)
        return set(found.split()) == {image}

    tools.wait_until(lambda: running("busybox:1.35.0"), "all pods have the new image", timeout=120)
    kubectl_in("rollout", "undo", "deployment/web")
    kubectl_in("rollout", "status", "deployment/web", "--timeout=110s")
    kubectl_in("delete", "deployment", "web")
    tools.wait_until(lambda: not kubectl_in("get", "pods", "-o", "name"), "its pods are gone", timeout=120)


def test_port_forward_leads_to_a_server_made_of_a_debian_package(
    kubectl_in: Kubectl, nginx: str, free_port: int
) -> None:
    kubectl_in("run", "web", f"--image={nginx}", "--port=80")
    kubectl_in.ready("web")
    command = [tools.kubectl(), "-n", kubectl_in.namespace, "port-forward", "pod/web", f"{free_port}:80"]
    forward = subprocess.Popen(command, env=kubectl_in.cluster.environment, stdout=subprocess.PIPE, text=True)
    try:
        assert forward.stdout is not None
        assert "Forwarding from" in forward.stdout.readline()
        for _ in range(3):
            assert b"200 OK" in _get(free_port)
    finally:
        forward.terminate()
        forward.communicate()
    tools.wait_until(lambda: "GET / HTTP/1.0" in kubectl_in("logs", "web"), "the log tells of it")
    # The same by the proxy of the API server.
    path = f"/api/v1/namespaces/{kubectl_in.namespace}/pods/web:80/proxy/"
    assert "nginx" in kubectl_in.cluster.kubectl("get", "--raw", path)


def _get(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        received = b""
        while chunk := connection.recv(4096):
            received += chunk
    return received


def test_top_shows_nodes_and_pods(kubectl_in: Kubectl) -> None:
    kubectl_in.run("busy")
    kubectl_in.ready("busy")

    def shown(*words: str) -> str | None:
        lines = kubectl_in("top", *words, "--no-headers", check=False).splitlines()
        return next((line for line in lines if re.match(r"(node-1|busy) +\d+m ", line)), None)

    assert tools.wait_until(lambda: shown("nodes"), "top shows the node", timeout=120)
    assert tools.wait_until(lambda: shown("pods"), "top shows the pod", timeout=120)


def test_images_are_imported_listed_and_removed(node: Cluster, kubectl_in: Kubectl, tmp_path: Path) -> None:
    program = builtin.busybox_program()
    assert program is not None
    archive = tmp_path / "mine.tar"
    oci.write(
        archive, oci.Image(names=["example.org/mine:1"], entries=builtin.busybox_entries(program), command=["sh"])
    )
    assert "example.org/mine:1" in node.pyb_image("import", str(archive))
    assert "example.org/mine:1" in node.pyb_image("ls")
    kubectl_in.run("mine", image="example.org/mine:1")
    kubectl_in.ready("mine")
    kubectl_in("delete", "pod", "mine", "--grace-period=1")
    assert "Removed example.org/mine:1 from node-1" in node.pyb_image("rm", "example.org/mine:1")
    assert "example.org/mine:1" not in node.pyb_image("ls")
    kubectl_in.run("other", image=BUSYBOX)  # the same bytes under another name: they are there again when needed
    kubectl_in.ready("other")
    assert "no node has an image" in node.pyb_image("rm", "example.org/mine:1", check=False)
    assert "it stays" in node.pyb_image("rm", builtin.PAUSE, check=False)
    with tarfile.open(tmp_path / "bad.tar", "w"):
        pass
    assert "is not an archive of images" in node.pyb_image("import", str(tmp_path / "bad.tar"), check=False)
