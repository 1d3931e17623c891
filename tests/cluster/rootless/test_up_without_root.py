"""`pyb up` by a user who is not root: in user namespaces, and where there are none. The same pods on both."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from cluster.rootless.somebody import UID, Somebody, somebody

import tools
from pybernetes.cluster import pidfile
from pybernetes.cluster.images import oci

SHELL = "shell"
LEVELS = ("user-namespaces", "none")


@pytest.fixture(scope="module", params=LEVELS)
def him(request: pytest.FixtureRequest) -> Iterator[Somebody]:
    """A user with a running cluster; `him.level` is how its pods are kept apart, `him.said` what `up` said."""
    with somebody(namespaces=request.param == "user-namespaces") as him:
        him.ingress_port = tools.free_port()
        ports = (f"--ingress-http-port={him.ingress_port}", f"--ingress-https-port={tools.free_port()}")
        family = "dual" if request.param == "user-namespaces" else "ipv4"
        him.said = him.pyb("up", "--port=0", f"--ip-family={family}", *ports)
        him.level = request.param
        yield him


def container(*command: str, **more: Any) -> dict[str, Any]:
    return {"name": "main", "image": SHELL, "command": list(command), **more}


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": list(containers), "terminationGracePeriodSeconds": 1, **spec},
    }


def wait_ready(him: Somebody, name: str) -> None:
    him.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=110s")


def reasons(him: Somebody, name: str) -> dict[str, str]:
    found = him.get("events", f"--field-selector=involvedObject.name={name}")["items"]
    return {each["reason"]: each["message"] for each in found}


def test_what_is_not_isolated_is_said_by_up_by_status_and_by_the_node(him: Somebody) -> None:
    differences = json.loads(him.pyb("status", "--output=json"))["differences"]
    assert any("limits of CPU and memory are not enforced" in each for each in differences)
    if him.level == "none":
        assert "there are no user namespaces (user.max_user_namespaces allows none)" in differences[0]
    for each in differences:
        assert him.said.count(each) == 1
        assert each in him.pyb("status")
    metadata = him.get("node", "node-1")["metadata"]
    assert metadata["labels"]["pybernetes.io/isolation"] == him.level
    assert metadata["annotations"]["pybernetes.io/not-isolated"] == "; ".join(differences)


def test_a_pod_runs_and_tells_logs_and_commands_and_goes(him: Somebody) -> None:
    him.apply(pod("hello", container("sh", "-c", "echo hello; echo error >&2; sleep 1000")))
    wait_ready(him, "hello")
    tools.wait_until(lambda: sorted(him.kubectl("logs", "hello").split()) == ["error", "hello"], "what it wrote")
    assert him.kubectl("exec", "hello", "--", "echo", "inside").strip() == "inside"
    assert "exit code 7" in him.kubectl("exec", "hello", "--", "sh", "-c", "exit 7", code=7)
    him.kubectl("delete", "pod", "hello", "--timeout=110s")
    tools.wait_until(lambda: not any("sleep 1000" in each for each in him.processes()), "its processes are gone")


def test_images_are_given_to_the_node_listed_and_removed(him: Somebody) -> None:
    archive = him.home / "own.tar"
    oci.write(archive, oci.Image(["own:1"], [oci.file("hello", b"x")]))
    archive.chmod(0o644)
    assert him.pyb("image", "import", str(archive)) == "Imported docker.io/library/own:1\n"
    rows = [line.split() for line in him.pyb("image", "ls").splitlines()]
    assert ["docker.io/library/own:1", "node-1"] in [[row[0], row[-1]] for row in rows]
    assert him.pyb("image", "rm", "own:1") == "Removed docker.io/library/own:1 from node-1\n"
    assert "own:1" not in him.pyb("image", "ls")


def test_a_container_that_fails_is_started_again(him: Somebody) -> None:
    him.apply(pod("fails", container("sh", "-c", "exit 3")))

    def restarted() -> bool:
        statuses = him.get("pod", "fails")["status"].get("containerStatuses") or [{}]
        return bool(statuses[0].get("restartCount"))

    tools.wait_until(restarted, "a restart")
    status = him.get("pod", "fails")["status"]["containerStatuses"][0]
    ended = status["lastState"].get("terminated") or status["state"].get("terminated")
    assert ended["exitCode"] == 3
    him.kubectl("delete", "pod", "fails", "--wait=false")


def test_volumes_show_config_maps_secrets_and_parts_of_them(him: Somebody) -> None:
    volumes = [
        {"name": "config", "configMap": {"name": "settings"}},
        {"name": "secret", "secret": {"secretName": "password"}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
    ]
    mounts = [
        {"name": "config", "mountPath": "/etc/config"},
        {"name": "secret", "mountPath": "/etc/secret"},
        {"name": "memory", "mountPath": "/memory"},
        {"name": "config", "mountPath": "/part/file", "subPath": "key"},
    ]
    him.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"key": "value\n"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "stringData": {"key": "secret\n"}},
        pod(
            "volumes",
            container("cat", "/etc/config/key", "/etc/secret/key", "/part/file", volumeMounts=mounts),
            volumes=volumes,
            restartPolicy="Never",
            securityContext={"fsGroup": 2000},
        ),
    )
    tools.wait_until(lambda: him.get("pod", "volumes")["status"]["phase"] == "Succeeded", "its end")
    assert him.kubectl("logs", "volumes") == "value\nsecret\nvalue\n"
    him.kubectl("delete", "pod", "volumes", "--wait=false")


def test_a_claim_keeps_its_data_over_its_pods(him: Somebody) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    him.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec})
    script = 'echo "$0" >> "${PYBERNETES_ROOT:-}/data/log"; cat "${PYBERNETES_ROOT:-}/data/log"'
    for name, written in (("first", "first\n"), ("second", "first\nsecond\n")):
        main = container("sh", "-c", script, name, volumeMounts=[{"name": "data", "mountPath": "/data"}])
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        him.apply(pod(name, main, volumes=volumes, restartPolicy="Never"))
        tools.wait_until(lambda name=name: him.get("pod", name)["status"]["phase"] == "Succeeded", "its end")
        assert him.kubectl("logs", name) == written
    him.kubectl("delete", "pod/first", "pod/second", "pvc/data", "--timeout=110s")
    tools.wait_until(lambda: not him.get("pv")["items"], "the volume is gone")


def test_ports_are_forwarded(him: Somebody) -> None:
    inside, outside = tools.free_port(), tools.free_port()
    him.apply(pod("serves", container("sh", "-c", f"while true; do echo served | nc -l -p {inside}; done")))
    wait_ready(him, "serves")
    forwarding = subprocess.Popen(
        [*him.before, tools.kubectl(), "port-forward", "pod/serves", f"{outside}:{inside}"],
        cwd=him.home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert forwarding.stdout is not None
        assert "Forwarding from" in forwarding.stdout.readline()

        def served() -> bytes:
            with (
                contextlib.suppress(OSError),  # it listens a moment after its container runs
                socket.create_connection(("127.0.0.1", outside), timeout=30) as connection,
            ):
                return connection.recv(100)
            return b""

        assert tools.wait_until(served, "an answer") == b"served\n"
    finally:
        forwarding.terminate()
        forwarding.wait()
    him.kubectl("delete", "pod", "serves", "--wait=false")


def test_an_ingress_is_served_on_this_machine(him: Somebody) -> None:
    port = tools.free_port()
    script = f"echo served > /tmp/index.html; exec httpd -f -p {port} -h /tmp"
    web = pod("web", container("sh", "-c", script))
    web["metadata"]["labels"] = {"app": "web"}
    spec: dict[str, Any] = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": port}]}
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    him.apply(
        web,
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec},
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "web"},
            "spec": {"rules": [{"http": {"paths": paths}}]},
        },
    )
    wait_ready(him, "web")
    url = f"http://127.0.0.1:{him.ingress_port}/"

    def served() -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as got:
            return bool(got.read() == b"served\n")
        return False

    tools.wait_until(served, "the Ingress is served")
    him.kubectl("delete", "ingress/web", "service/web", "pod/web", "--wait=false")


def test_limits_that_have_no_effect_are_reported_in_an_event(him: Somebody) -> None:
    him.apply(pod("limited", container("sleep", "1000", resources={"limits": {"memory": "16Mi"}})))
    wait_ready(him, "limited")
    message = tools.wait_until(lambda: reasons(him, "limited").get("LimitsNotEnforced"), "the event")
    assert "have no effect" in message
    him.kubectl("delete", "pod", "limited", "--wait=false")


def test_a_user_is_what_programs_see_or_is_said_not_to_be(him: Somebody) -> None:
    context = {"runAsUser": 1000, "runAsGroup": 3000, "runAsNonRoot": True}
    him.apply(pod("user", container("sh", "-c", "id -u; id -g; sleep 1000", securityContext=context)))
    wait_ready(him, "user")
    expected = ["1000", "3000"] if him.level == "user-namespaces" else [str(UID)] * 2
    tools.wait_until(lambda: him.kubectl("logs", "user").split() == expected, "what it sees")
    him.kubectl("delete", "pod", "user", "--wait=false")


def test_a_privileged_container_is_root_of_the_namespace_or_refused(him: Somebody) -> None:
    him.apply(pod("privileged", container("sleep", "1000", securityContext={"privileged": True})))
    if him.level == "user-namespaces":
        wait_ready(him, "privileged")
        assert "65534" in him.kubectl("exec", "privileged", "--", "stat", "-c", "%u", "/dev/null")
    else:
        message = tools.wait_until(lambda: reasons(him, "privileged").get("FailedCreatePodSandBox"), "the refusal")
        assert "containers are plain processes on this node: privileged containers need root" in message
    him.kubectl("delete", "pod", "privileged", "--wait=false")


def test_pods_have_networks_of_their_own_only_in_namespaces(him: Somebody) -> None:
    him.apply(pod("net", container("sleep", "1000")))
    wait_ready(him, "net")
    status = him.get("pod", "net")["status"]
    if him.level == "user-namespaces":
        assert status["podIP"].startswith("10.244.")
        assert [each["ip"][:4] for each in status["podIPs"]] == ["10.2", "fd00"]
        second = next(each["ip"] for each in status["hostIPs"] if ":" in each["ip"])
        him.kubectl("exec", "net", "--", "ping", "-c1", "-W2", second)
        him.kubectl("exec", "net", "--", "ping", "-c1", "-W2", status["hostIP"])
        answer = him.kubectl(
            *("exec", "net", "--", "sh", "-c"),
            r"printf 'CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n' | nc -w 5 10.245.0.1 3128",
        )
        assert answer.startswith("HTTP/1.1 403")
        connect = ["exec", "net", "--", "sh", "-c", "echo | nc -w 5 10.96.0.1 443"]
        tools.wait_until(
            lambda: "exit code" not in him.kubectl(*connect, code=None), "the Service kubernetes is reached"
        )
    else:
        assert status["podIP"] == status["hostIP"]
    him.kubectl("delete", "pod", "net", "--wait=false")


def test_a_node_that_is_killed_comes_back_and_down_finds_what_it_left(him: Somebody) -> None:
    him.apply(pod("survivor", container("sleep", "2000")))
    wait_ready(him, "survivor")
    before = pidfile.read(str(him.data / "run/node-1.pid"))
    assert before is not None
    os.kill(before.pid, signal.SIGKILL)

    def again() -> bool:
        now = pidfile.read(str(him.data / "run/node-1.pid"))
        return now is not None and now.alive and now.pid != before.pid

    tools.wait_until(again, "another process")
    restarts = 0 if him.level == "none" else 1

    def runs() -> bool:
        status = him.get("pod", "survivor")["status"]["containerStatuses"][0]
        return "running" in status["state"] and status["restartCount"] == restarts

    tools.wait_until(runs, "the pod runs")
    said = ("exec", "survivor", "--", "echo", "inside")  # the kubelet may still be about to listen
    tools.wait_until(lambda: him.kubectl(*said, code=None).strip() == "inside", "an answer")


def test_down_leaves_no_process_and_no_data(him: Somebody) -> None:
    him.apply(pod("left", container("sleep", "1000")))
    wait_ready(him, "left")
    him.pyb("down", "--purge")
    tools.wait_until(lambda: not him.processes(), "nothing is left")
    assert not him.data.exists()
