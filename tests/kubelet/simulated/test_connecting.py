"""Logs, commands, ports and figures of simulated containers, asked for with a real kubectl."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from kubelet.simulated.cluster import NODES, Simulation, first, pod

import tools


@pytest.fixture(scope="module")
def talking(simulation: Simulation) -> Iterator[str]:
    requests = {"resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    spec = {"containers": [{"name": "c", "image": "x", **requests}]}
    simulation.apply(pod("talking", spec, cpu="300m", memory="100Mi"))
    simulation.ready("talking")
    yield "talking"
    simulation.kubectl("delete", "pod", "talking", "--wait=false")


def test_logs_have_the_lines_that_rules_say(simulation: Simulation, talking: str) -> None:
    tools.wait_until(lambda: len(simulation.kubectl("logs", talking).splitlines()) > 6, "some lines are there")
    lines = simulation.kubectl("logs", talking).splitlines()
    assert lines[:4] == ["hello 1", "world 2", "hello 3", "world 4"]
    assert len(simulation.kubectl("logs", talking, "--tail=2").splitlines()) == 2
    assert simulation.kubectl("logs", talking, "--limit-bytes=9") == "hello 1\nw"
    stamped = simulation.kubectl("logs", talking, "--timestamps").splitlines()[0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z hello 1", stamped)
    last = simulation.kubectl("logs", talking, "--since=1s").splitlines()
    assert last[0] != "hello 1" or len(last) < 25


def test_logs_are_followed_until_the_container_ends(simulation: Simulation) -> None:
    simulation.apply(pod("talking-once", {"restartPolicy": "Never"}, run_for="1s"))
    # Not until it is ready, which it may have been already.
    simulation.wait_for("talking-once", lambda s: first(s).get("state", {}).keys() - {"waiting"}, "it has started")
    lines = simulation.kubectl("logs", "-f", "talking-once").splitlines()
    assert [int(line.split()[1]) for line in lines] == list(range(1, 22))
    simulation.wait_for("talking-once", lambda status: status["phase"] == "Succeeded", "the pod ends")
    assert simulation.kubectl("logs", "talking-once").splitlines() == lines


def test_the_log_of_the_container_before_outlives_the_process_that_pretends(simulation: Simulation) -> None:
    simulation.apply(pod("talking-again", run_for="1200ms", exit_code="1"))
    simulation.wait_for(
        "talking-again", lambda s: first(s).get("restartCount") and "waiting" in first(s)["state"], "it backs off"
    )
    before = simulation.kubectl("logs", "-p", "talking-again")
    assert before.splitlines()[:3] == ["hello 1", "world 2", "hello 3"]
    assert len(before.splitlines()) <= 25
    old = simulation.pid()
    assert old is not None
    os.kill(old, 9)
    tools.wait_until(lambda: simulation.pid() not in (None, old), "the process is started again")
    again = tools.wait_until(lambda: simulation.run("logs", "-p", "talking-again").stdout, "it serves", every=0.2)
    assert again.splitlines()[:3] == before.splitlines()[:3]  # statuses know times to the second
    simulation.kubectl("delete", "pod", "talking-again", "--wait=false")


def test_what_there_is_no_log_of_is_refused_as_a_kubelet_does(simulation: Simulation, talking: str) -> None:
    assert (
        'previous terminated container "c" in pod "talking" not found' in simulation.run("logs", "-p", talking).stderr
    )
    simulation.apply(pod("never", pull_for="never"))
    simulation.wait_for("never", lambda status: status.get("containerStatuses"), "the node knows it")
    refused = simulation.run("logs", "never")
    assert 'container "c" in pod "never" is waiting to start' in refused.stderr
    simulation.kubectl("delete", "pod", "never", "--wait=false")


def test_commands_answer_by_rule_or_say_that_none_does(simulation: Simulation, talking: str) -> None:
    assert simulation.kubectl("exec", talking, "--", "cat", "/etc/hosts") == "content\n"
    failed = simulation.run("exec", talking, "--", "false")
    assert (failed.returncode, failed.stderr.splitlines()[0]) == (3, "no")
    assert simulation.run("exec", "-i", talking, "--", "cat", stdin="in and out").stdout == "in and out"
    unknown = simulation.run("exec", talking, "--", "ls", "/")
    assert unknown.returncode == 1
    assert 'nothing in simulated.pybernetes.io/exec says what "ls /" answers' in unknown.stderr


def test_attach_shows_what_is_written_from_now_on(simulation: Simulation, talking: str) -> None:
    command = [tools.kubectl(), "attach", talking]
    attached = subprocess.Popen(
        command, env=simulation.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert attached.stdout is not None
        numbers = [int(attached.stdout.readline().split()[1]) for _ in range(3)]
    finally:
        attached.kill()
        attached.wait()
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    assert numbers[0] > 1


def test_forwarded_ports_answer_by_rule(simulation: Simulation, talking: str) -> None:
    port = tools.free_port()
    command = [tools.kubectl(), "port-forward", f"pod/{talking}", f"{port}:80"]
    forwarding = subprocess.Popen(command, env=simulation.environment, stdout=subprocess.PIPE, text=True)
    try:
        assert forwarding.stdout is not None
        forwarding.stdout.readline()
        for _ in range(2):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/any") as answer:
                assert answer.read() == b"served"
    finally:
        forwarding.kill()
        forwarding.wait()


def test_top_shows_what_rules_say(simulation: Simulation, talking: str) -> None:
    def row(*words: str) -> list[str]:
        found = simulation.run("top", *words, "--no-headers").stdout.split()
        return found

    used = tools.wait_until(lambda: row("pods", talking), "there are metrics", every=0.2)
    assert used == [talking, "300m", "100Mi"]
    on = simulation.get("pod", talking)["spec"]["nodeName"]

    def nodes() -> dict[str, str]:
        lines = simulation.run("top", "nodes", "--no-headers").stdout.splitlines()
        return {line.split()[0]: line.split()[1] for line in lines if "unknown" not in line}

    shown = tools.wait_until(lambda: len(found := nodes()) == NODES and found, "there are metrics of all", every=0.2)
    assert int(shown[on].removesuffix("m")) >= 350


def test_the_proxy_of_a_node_leads_to_its_kubelet(simulation: Simulation, talking: str) -> None:
    node = simulation.get("pod", talking)["spec"]["nodeName"]

    def raw(path: str) -> str:
        return simulation.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/{path}")

    assert raw("healthz") == "ok"
    assert talking in [each["metadata"]["name"] for each in json.loads(raw("pods"))["items"]]
    assert talking in [each["metadata"]["name"] for each in json.loads(raw("runningpods"))["items"]]
    assert json.loads(raw("configz"))["kubeletconfig"]["maxPods"] == 110
    before = summary(raw("stats/summary"), talking)
    assert before["memory"]["workingSetBytes"] == 100 << 20
    used = before["cpu"]["usageCoreNanoSeconds"]
    more = lambda: summary(raw("stats/summary"), talking)["cpu"]["usageCoreNanoSeconds"] > used  # noqa: E731
    tools.wait_until(more, "the pod uses its processor")
    wanted = f'container_memory_working_set_bytes{{container="c",namespace="default",pod="{talking}"}} {100 << 20}'
    assert wanted in raw("metrics/resource")
    assert "container_cpu_usage_seconds_total" in raw("metrics/cadvisor")
    assert "kubelet_running_pods" in raw("metrics")


def summary(text: str, name: str) -> Any:
    found: Any = next(each for each in json.loads(text)["pods"] if each["podRef"]["name"] == name)
    return found


def test_kubelets_ask_who_comes(simulation: Simulation) -> None:
    node = simulation.get("nodes")["items"][0]
    address = next(each["address"] for each in node["status"]["addresses"] if each["type"] == "ExternalIP")
    port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    tls = ssl.create_default_context(cafile=simulation.folder / "data/pki/ca.crt")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"https://{address}:{port}/pods", context=tls)
