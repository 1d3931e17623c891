"""CPUs of their own: who gets them, who shares, and what a restart remembers."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from kubelet.pods import container, pod, resources

from pybernetes.kubelet.checkpoints import CorruptCheckpoint
from pybernetes.kubelet.cpumanager.cpuset import parse_cpus
from pybernetes.kubelet.cpumanager.manager import CPUManager
from pybernetes.kubelet.cpumanager.topology import CPU, Topology
from pybernetes.kubelet.pod.refusal import PodRefused

MACHINE = Topology({cpu: CPU(cpu % 4) for cpu in range(8)})


def _manager(root: Path, **more: Any) -> CPUManager:
    more.setdefault("reserved_milli", 500)
    return CPUManager("static", root, topology=MACHINE, **more)


def _guaranteed(uid: str, cpu: str, **more: Any) -> Any:
    return pod(uid, container("c", f"={cpu}", "=1Gi"), **more)


def test_whole_cpus_of_guaranteed_pods_are_their_own_and_all_others_share_the_rest(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    assert manager.cpuset("x", "c") == "0-7"
    manager.admit(_guaranteed("a", "2"))
    assert (manager.cpuset("a", "c"), manager.cpuset("x", "c")) == ("1,5", "0,2-4,6-7")
    assert manager.exclusive("a", "c")
    assert manager.exclusive("a")
    assert not manager.exclusive("x")


@pytest.mark.parametrize(
    "subject",
    [
        pod("a", container("c", "=1500m", "=1Gi")),
        pod("a", container("c", "2/4", "=1Gi")),
        pod("a", container("c")),
        pod("a", container("c", "=1", "=1Gi"), resources=resources("=2", "=2Gi")),
    ],
    ids=["part of a CPU", "burstable", "best effort", "resources of the pod"],
)
def test_all_others_have_none(tmp_path: Path, subject: Any) -> None:
    manager = _manager(tmp_path)
    manager.admit(subject)
    assert not manager.exclusive("a")


def test_what_is_reserved_is_never_given_away(tmp_path: Path) -> None:
    manager = _manager(tmp_path, reserved_cpus="7")
    manager.admit(_guaranteed("a", "7"))
    assert manager.cpuset("a", "c") == "0-6"
    with pytest.raises(PodRefused) as refused:
        manager.admit(_guaranteed("b", "1"))
    assert refused.value.reason == "UnexpectedAdmissionError"
    assert refused.value.message == (
        "Allocate failed due to not enough cpus available to satisfy request: requested=1, available=0, "
        "which is unexpected"
    )


def test_init_containers_lend_their_cpus_and_sidecars_keep_them(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    subject = pod(
        "a",
        container("main", "=2", "=1Gi"),
        init_containers=[
            container("init", "=4", "=1Gi"),
            container("sidecar", "=1", "=1Gi", restart_policy="Always"),
        ],
    )
    manager.admit(subject)
    cpus = {name: parse_cpus(manager.cpuset("a", name)) for name in ("init", "sidecar", "main")}
    assert [len(cpus[name]) for name in ("init", "sidecar", "main")] == [4, 1, 2]
    assert cpus["main"] <= cpus["init"]
    assert not cpus["main"] & cpus["sidecar"]
    manager.remove("a")
    assert manager.cpuset("x", "c") == "0-7"


def test_a_pod_that_does_not_fit_gets_nothing_at_all(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    with pytest.raises(PodRefused):
        manager.admit(pod("a", container("b", "=4", "=1Gi"), container("c", "=4", "=1Gi")))
    assert manager.cpuset("x", "c") == "0-7"


def test_whole_cores_only_where_that_is_wanted(tmp_path: Path) -> None:
    manager = _manager(tmp_path, options={"full-pcpus-only": "true"}, reserved_cpus="0")
    with pytest.raises(PodRefused) as refused:
        manager.admit(_guaranteed("a", "3"))
    assert refused.value.reason == "SMTAlignmentError"
    assert refused.value.message == "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"
    with pytest.raises(PodRefused, match="available physical CPUs = 6, requested CPUs = 8, CPUs per core = 2"):
        manager.admit(_guaranteed("a", "8"))
    manager.admit(_guaranteed("a", "6"))
    assert manager.cpuset("a", "c") == "1-3,5-7"


def test_strictly_reserved_cpus_are_not_shared_either(tmp_path: Path) -> None:
    manager = _manager(tmp_path, options={"strict-cpu-reservation": "true"}, reserved_cpus="0,4")
    assert manager.cpuset("x", "c") == "1-3,5-7"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"reserved_milli": 0}, "requires systemreserved.cpu"),
        ({"reserved_milli": 9000}, "unable to reserve the required amount of CPUs"),
        ({"options": {"align-by-socket": "true"}}, 'option "align-by-socket" is not supported'),
        ({"options": {"nonsense": "true"}}, 'unknown CPU Manager Policy option: "nonsense"'),
        ({"options": {"full-pcpus-only": "maybe"}}, 'bad value for option "full-pcpus-only"'),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _manager(tmp_path, **more)


def test_an_unknown_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='unknown policy: "dynamic"'):
        CPUManager("dynamic", tmp_path)


def test_without_a_policy_there_is_nothing_to_say(tmp_path: Path) -> None:
    manager = CPUManager("none", tmp_path)
    manager.admit(_guaranteed("a", "1"))
    assert manager.cpuset("a", "c") == ""
    assert not (tmp_path / "cpu_manager_state").exists()


async def test_the_runtime_is_updated_when_the_shared_pool_changes(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []

    async def set_cpuset(id: str, cpus: str) -> None:
        if id == "broken":
            raise OSError("no")
        told.append((id, cpus))

    manager = _manager(tmp_path, set_cpuset=set_cpuset)
    running = [("x", "c", "id-x"), ("y", "c", "broken")]
    await manager.reconcile(running)
    await manager.reconcile(running)
    assert told == [("id-x", "0-7")]
    manager.admit(_guaranteed("a", "2"))
    await manager.reconcile([*running, ("a", "c", "id-a")])
    assert told[1:] == [("id-x", "0,2-4,6-7"), ("id-a", "1,5")]


# the checkpoint


def test_a_restart_remembers_who_has_what(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    manager.admit(_guaranteed("a", "2"))
    again = _manager(tmp_path)
    assert again.cpuset("a", "c") == "1,5"
    again.admit(_guaranteed("a", "2"))
    assert again.cpuset("x", "c") == "0,2-4,6-7"
    again.remove_orphans(set())
    assert _manager(tmp_path).cpuset("x", "c") == "0-7"


def test_the_file_is_upstreams(tmp_path: Path) -> None:
    """The checksums are those of upstream's own tests."""
    for entries, shared, checksum in (
        ({}, "4-6", 354655845),
        ({"pod": {"container1": "4-6", "container2": "1-3"}}, "1-3", 3610638499),
    ):
        content = {"policyName": "none", "defaultCPUSet": shared, "entries": entries, "checksum": checksum}
        (tmp_path / "cpu_manager_state").write_text(json.dumps(content))
        CPUManager("none", tmp_path)
    (tmp_path / "cpu_manager_state").write_text('{"policyName":"none","defaultCPUSet":"1-3","checksum":1694838852}')
    CPUManager("none", tmp_path)


def test_what_is_written_is_read_by_upstream(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    manager.admit(_guaranteed("a", "1"))
    written = json.loads((tmp_path / "cpu_manager_state").read_text())
    assert list(written) == ["policyName", "defaultCpuSet", "entries", "checksum"]
    assert (written["policyName"], written["defaultCpuSet"], written["entries"]) == (
        "static",
        "0-3,5-7",
        {"a": {"c": "4"}},
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"policyName":"none","defaultCPUSet":"4-6","entries":{},"checksum":1337}', "checkpoint is corrupted"),
        ("{", "Input data was truncated"),
        (
            '{"policyName":"none","defaultCPUSet":"1.3","entries":{},"checksum":3021697696}',
            'strconv.Atoi: parsing "1.3": invalid syntax',
        ),
        (
            '{"policyName":"none","defaultCPUSet":"1-3","entries":{"pod":{"container1":"4-6","container2":"asd"}},'
            '"checksum":962272150}',
            'parsing "asd": invalid syntax',
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_set_aside(
    tmp_path: Path, content: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cpu_manager_state").write_text(content)
    manager = _manager(tmp_path)
    assert message in caplog.text
    assert (tmp_path / "cpu_manager_state.unreadable-1").read_text() == content
    manager.admit(_guaranteed("a", "2"))
    assert _manager(tmp_path).cpuset("a", "c") == "1,5"


def test_a_file_of_another_policy_stops_the_start(tmp_path: Path) -> None:
    content = '{"policyName":"other","defaultCPUSet":"1-3","entries":{},"checksum":1394507217}'
    (tmp_path / "cpu_manager_state").write_text(content)
    message = 'configured policy "none" differs from state checkpoint policy "other"'
    with pytest.raises(CorruptCheckpoint, match=message):
        CPUManager("none", tmp_path)


def test_a_full_disk_takes_no_cpus_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_space(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    manager = _manager(tmp_path)
    monkeypatch.setattr(os, "fsync", no_space)
    manager.admit(_guaranteed("a", "2"))
    assert manager.cpuset("a", "c") == "1,5"
    assert "No space left on device" in caplog.text


@pytest.mark.parametrize(
    ("shared", "entries", "message"),
    [
        ("", {"a": {"c": "0-7"}}, "default cpuset cannot be empty"),
        ("1-3,5-7", {"a": {"c": "0,4"}}, 'not all reserved cpus: "0" are present in defaultCpuSet: "1-3,5-7"'),
        ("0-7", {"a": {"c": "3"}}, "overlaps with default cpuset"),
        ("0-6", {}, "doesn't match with CPUs in state"),
        ("0-8", {}, "doesn't match with CPUs in state"),
    ],
)
def test_a_state_that_cannot_be_stops_the_start(
    tmp_path: Path, shared: str, entries: dict[str, dict[str, str]], message: str
) -> None:
    content = {"policyName": "static", "defaultCpuSet": shared, "entries": entries, "checksum": 0}
    (tmp_path / "cpu_manager_state").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        _manager(tmp_path)
