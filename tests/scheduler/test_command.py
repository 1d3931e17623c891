"""`pyb scheduler`: flags over files, health and metrics, one of several at work."""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tools
from pybernetes.scheduler import command
from pybernetes.scheduler.options import Options, parse


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tools.ApiServer]:
    off = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"
    with tools.api_server(tmp_path_factory.mktemp("command"), off, "--authorization-mode=RBAC") as running:
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": amounts}}
        call(running, "POST", "/api/v1/nodes", node)
        yield running


@pytest.fixture(autouse=True)
def no_pods_are_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """The next test counts its own pods only."""
    yield
    if "server" in request.fixturenames:
        call(request.getfixturevalue("server"), "DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0")


class Running:
    """A scheduler process."""

    def __init__(self, server: tools.ApiServer, folder: Path, *flags: str) -> None:
        self.server = server
        self.port = tools.free_port()
        self.log = folder / f"scheduler-{self.port}.log"
        words = [f"--kubeconfig={server.kubeconfig}", "--bind-address=127.0.0.1", f"--secure-port={self.port}", *flags]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen([*tools.PYTHON, "scheduler", *words], stdout=output, stderr=output)

    def get(self, path: str, token: str = "") -> tuple[int, str]:
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return self.get("/readyz") == (200, "ok")


@contextlib.contextmanager
def scheduler(server: tools.ApiServer, folder: Path, *flags: str) -> Iterator[Running]:
    running = Running(server, folder, *flags)
    try:
        yield running
    finally:
        running.process.terminate()
        assert running.process.wait(20) == 0, running.log.read_text()


def call(server: tools.ApiServer, method: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(server.url + path, json.dumps(body).encode() if body else None, method=method)
    request.add_header("Authorization", f"Bearer {server.token}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
        return json.load(answer)


def make_pod(server: tools.ApiServer, name: str) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    call(server, "POST", "/api/v1/namespaces/default/pods", body)


def node_of(server: tools.ApiServer, name: str) -> str | None:
    found: str | None = call(server, "GET", f"/api/v1/namespaces/default/pods/{name}")["spec"].get("nodeName")
    return found


def test_it_is_ready_places_pods_and_counts_them(server: tools.ApiServer, tmp_path: Path) -> None:
    with scheduler(server, tmp_path, "--leader-elect=false") as running:
        tools.wait_until(running.ready, "it is ready")
        assert running.get("/healthz") == (200, "ok")
        make_pod(server, "p")
        tools.wait_until(lambda: node_of(server, "p") == "n", "the pod is bound")
        for path in ("/metrics", "/metrics/slis", "/configz", "/flagz", "/statusz"):
            status, text = running.get(path)  # not public
            told = f'forbidden: User "system:anonymous" cannot get path "{path}"'
            assert (status, json.loads(text)["message"]) == (403, told)
        wanted = 'scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"} 1'
        tools.wait_until(lambda: wanted in running.get("/metrics", server.token)[1], "it is counted")
        text = running.get("/metrics", server.token)[1]
        for name in (
            'scheduler_pending_pods{queue="active"} 0',
            'scheduler_cache_size{type="nodes"} 1',
            "scheduler_scheduling_algorithm_duration_seconds_count 1",
            'scheduler_queue_incoming_pods_total{queue="active",event="PodAdd"} 1',
            'scheduler_framework_extension_point_duration_seconds_count{extension_point="Bind",status="Success"',
            'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1',
        ):
            assert name in text, name


def test_it_tells_of_itself_as_upstreams_does(server: tools.ApiServer, tmp_path: Path) -> None:
    with scheduler(server, tmp_path, "--leader-elect-resource-name=telling", "--kube-api-burst=7") as running:
        tools.wait_until(running.ready, "it is ready")
        assert running.get("/healthz?verbose") == (200, "[+]leaderElection ok\nhealthz check passed\n")
        assert running.get("/livez?verbose") == (200, "[+]ping ok\nlivez check passed\n")
        well = "[+]leaderElection ok\n[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n"
        tools.wait_until(lambda: running.get("/readyz?verbose") == (200, well), "it leads, and is ready")
        config = json.loads(running.get("/configz", server.token)[1])["componentconfig"]
        assert (config["kind"], config["apiVersion"]) == (
            "KubeSchedulerConfiguration",
            "kubescheduler.config.k8s.io/v1",
        )
        assert config["leaderElection"]["resourceName"] == "telling"
        assert config["profiles"][0]["schedulerName"] == "default-scheduler"
        flags = running.get("/flagz", server.token)[1]
        assert flags.startswith("\nkube-scheduler flagz\n")
        for name, value in (
            ("leader-elect", "true"),
            ("leader-elect-lease-duration", "15s"),
            ("leader-elect-resource-name", "telling"),
            ("kube-api-burst", "7"),
            ("kube-api-qps", "50"),
            ("pod-max-in-unschedulable-pods-duration", "5m0s"),
        ):
            assert re.search(rf"^{name}(: |:|=| ){re.escape(value)}$", flags, re.MULTILINE), name
        status = running.get("/statusz", server.token)[1]
        assert "/configz /flagz /healthz /livez /metrics /readyz\n" in status
        assert 'kubernetes_healthcheck{name="ping",type="livez"} 1\n' in running.get("/metrics/slis", server.token)[1]


def test_of_two_one_works_and_the_other_takes_over(server: tools.ApiServer, tmp_path: Path) -> None:
    # The leader keeps its Lease on a busy machine; candidates check often.
    patient = (
        "--leader-elect-lease-duration=60s",
        "--leader-elect-renew-deadline=50s",
        "--leader-elect-retry-period=200ms",
    )
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"

    def holder() -> str:
        with contextlib.suppress(urllib.error.HTTPError):
            return str(call(server, "GET", path)["spec"].get("holderIdentity") or "")
        return ""

    with scheduler(server, tmp_path, *patient) as first:
        tools.wait_until(first.ready, "the first is ready")
        leader = tools.wait_until(holder, "there is a leader")
        with scheduler(server, tmp_path, *patient) as second:
            tools.wait_until(second.ready, "who waits is ready too")
            assert holder() == leader
            first.process.kill()
            first.process.wait()
            lease = call(server, "GET", path)
            lease["spec"]["leaseDurationSeconds"] = 1  # a minute is long
            call(server, "PUT", path, lease)
            tools.wait_until(lambda: holder() not in ("", leader), "the second leads")
            make_pod(server, "later")
            tools.wait_until(lambda: node_of(server, "later"), "the second places pods")
            first.process = second.process  # it is what both `with` end


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--config=/nowhere"], "No such file or directory: '/nowhere'"),
        (["--leader-elect-resource-lock=endpoints"], "resourceLock"),
        (["--config=a", "--policy-config-file=b"], "two ways to say the same"),
    ],
)
def test_what_cannot_work_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(words) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("pyb scheduler: ")
    assert said.count("\n") == 1


def test_a_file_with_a_mistake_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 0\n")
    assert command.main([f"--config={file}"]) == 1
    assert "parallelism" in capsys.readouterr().err


def test_flags_win_over_the_file_and_the_whole_can_be_written(tmp_path: Path) -> None:
    import yaml

    file, written = tmp_path / "config.yaml", tmp_path / "written.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: true, leaseDuration: 30s}\npodMaxBackoffSeconds: 20\n"
    )
    assert command.main([f"--config={file}", "--leader-elect=false", f"--write-config-to={written}"]) == 0
    found = yaml.safe_load(written.read_text())
    assert (found["leaderElection"]["leaderElect"], found["leaderElection"]["leaseDuration"]) == (False, "30s")
    assert (found["podMaxBackoffSeconds"], found["podInitialBackoffSeconds"]) == (20, 1)
    assert [each["schedulerName"] for each in found["profiles"]] == ["default-scheduler"]


def test_durations_and_flags_without_effect(capsys: pytest.CaptureFixture[str]) -> None:
    found = parse(["--leader-elect", "--leader-elect-retry-period=1m30s", "--profiling=false", "-v", "2"])
    assert found == Options(leader_elect=True, leader_elect_retry_period=90.0, v=2)
    assert capsys.readouterr().err == "pyb scheduler: --profiling has no effect\n"
