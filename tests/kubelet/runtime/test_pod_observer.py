"""From the runtime's messages to observed pods, with the last words of containers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pybernetes.cri import v1 as cri
from pybernetes.kubelet.container.termination_message import last_log_lines, read_message
from pybernetes.kubelet.pod.restored import restored_pod
from pybernetes.kubelet.runtime import labels
from pybernetes.kubelet.runtime.pod_observer import has_last_words, last_words, observed_container, observed_sandbox
from pybernetes.kubelet.runtime.types import ContainerState, ObservedPod, PodRef


def status(folder: Path, **more: Any) -> Any:
    notes = {
        labels.HASH: "abc",
        labels.RESTART_COUNT: "2",
        labels.TERMINATION_MESSAGE_PATH: "/dev/termination-log",
        labels.TERMINATION_MESSAGE_POLICY: more.pop("policy", "File"),
        labels.TERMINATION_GRACE_PERIOD: "7",
        labels.PRE_STOP_HANDLER: '{"exec":{"command":["x"]}}',
        labels.PORTS: '[{"name":"http","containerPort":80}]',
    }
    fields = {
        "id": "c1",
        "metadata": cri.ContainerMetadata(name="web", attempt=2),
        "state": cri.CONTAINER_EXITED,
        "created_at": 1_000_000_000,
        "started_at": 2_000_000_000,
        "finished_at": 3_500_000_000,
        "exit_code": 3,
        "image": cri.ImageSpec(image="docker.io/library/nginx:1"),
        "image_ref": "docker.io/library/nginx@sha256:1",
        "reason": "Error",
        "labels": {labels.CONTAINER_NAME: "web"},
        "annotations": notes,
        "mounts": [cri.Mount(container_path="/dev/termination-log", host_path=str(folder / "message"))],
        "log_path": str(folder / "0.log"),
    }
    return cri.ContainerStatus(**{**fields, **more})


def test_a_container_that_ended(tmp_path: Path) -> None:
    (tmp_path / "message").write_text("bye")
    found = observed_container(status(tmp_path), "s1", last_words(status(tmp_path)))
    assert (found.id, found.name, found.state, found.hash, found.restart_count) == (
        "c1",
        "web",
        ContainerState.EXITED,
        "abc",
        2,
    )
    assert (found.started_at, found.finished_at, found.exit_code, found.reason) == (2.0, 3.5, 3, "Error")
    assert (found.message, found.sandbox_id) == ("bye", "s1")
    with_words = observed_container(status(tmp_path, message="runtime says"), "s1", "bye")
    assert with_words.message == "runtime says: bye"


def test_a_container_that_runs_has_no_end(tmp_path: Path) -> None:
    found = observed_container(status(tmp_path, state=cri.CONTAINER_RUNNING), "s1")
    assert (found.state, found.exit_code, found.finished_at, found.reason) == (ContainerState.RUNNING, 0, 0.0, "")
    created = observed_container(status(tmp_path, state=cri.CONTAINER_CREATED), "s1")
    assert created.started_at == 0.0


def test_the_log_speaks_for_a_container_that_said_nothing(tmp_path: Path) -> None:
    (tmp_path / "message").write_text("")
    lines = "".join(f"2026-01-01T00:00:00Z stdout F line {number}\n" for number in range(100))
    (tmp_path / "0.log").write_text(lines + "2026-01-01T00:00:00Z stderr P half")
    fallback = last_words(status(tmp_path, policy="FallbackToLogsOnError"))
    assert fallback.startswith("line 21\n")
    assert fallback.endswith("line 99\nhalf")
    assert last_words(status(tmp_path)) == ""
    well = status(tmp_path, policy="FallbackToLogsOnError", exit_code=0, reason="Completed")
    assert last_words(well) == ""
    assert not has_last_words(status(tmp_path, state=cri.CONTAINER_RUNNING))


def test_last_words_are_bounded_and_whatever_is_there_is_no_trap(tmp_path: Path) -> None:
    file = tmp_path / "message"
    assert read_message(file) == ""
    file.write_bytes(b"x" * 10_000 + b"\xff end")
    words = read_message(file)
    assert len(words) == 4096
    assert words.endswith("\ufffd end")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert "Error on reading termination log" in read_message(fifo) or read_message(fifo) == ""
    link = tmp_path / "link"
    link.symlink_to("/etc/passwd")
    assert "Error on reading termination log" in read_message(link)
    log = tmp_path / "long.log"
    log.write_text("2026-01-01T00:00:00Z stdout F " + "y" * 5000 + "\n")
    assert len(last_log_lines(log)) == 2048
    assert "Error on reading termination message from logs" in last_log_lines(tmp_path / "none")


@pytest.mark.parametrize(
    ("network", "ips", "host"),
    [
        (cri.POD, ("10.0.0.5", "fd00::5"), False),
        (cri.NODE, (), True),
    ],
)
def test_a_sandbox(network: int, ips: tuple[str, ...], host: bool) -> None:
    addresses = cri.PodSandboxNetworkStatus()
    if ips:
        addresses = cri.PodSandboxNetworkStatus(ip=ips[0], additional_ips=[cri.PodIP(ip=ips[1])])
    options = cri.NamespaceOption(network=network)
    found = observed_sandbox(
        cri.PodSandboxStatus(
            id="s1",
            metadata=cri.PodSandboxMetadata(attempt=3),
            state=cri.SANDBOX_READY,
            created_at=5_000_000_000,
            network=addresses,
            linux=cri.LinuxPodSandboxStatus(namespaces=cri.Namespace(options=options)),
        )
    )
    assert (found.ready, found.attempt, found.ips, found.host_network) == (True, 3, ips, host)


def test_a_pod_without_a_source_is_known_by_its_containers(tmp_path: Path) -> None:
    container = observed_container(status(tmp_path, state=cri.CONTAINER_RUNNING), "s1")
    found = restored_pod(ObservedPod(PodRef("u", "ns", "p"), (), (container,)))
    assert found.metadata is not None
    assert found.spec is not None
    assert (found.metadata.name, found.spec.termination_grace_period_seconds) == ("p", 7)
    (web,) = found.spec.containers or ()
    assert web.lifecycle is not None
    assert web.lifecycle.pre_stop is not None
    assert web.lifecycle.pre_stop.exec is not None
    assert web.lifecycle.pre_stop.exec.command == ["x"]
    assert [port.name for port in web.ports or ()] == ["http"]
