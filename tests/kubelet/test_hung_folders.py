"""Something that never answers is mounted over a pod's folders on the node: it costs that pod alone."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hung_mount import hung_mount
from kubelet.devices.sample_plugin import SamplePlugin

from pybernetes.client.clock import FakeClock, SystemClock
from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded.logs import LogFile
from pybernetes.cri.mounting import mounts
from pybernetes.kubelet.container.log_rotation import LogRotator
from pybernetes.kubelet.csi.volume_data import Layout, VolumeData
from pybernetes.kubelet.devices.manager import DeviceManager
from pybernetes.kubelet.gc.written_files import MOST, WrittenFiles
from pybernetes.kubelet.plugins.registry import _sockets
from pybernetes.kubelet.pod.syncer import _remove_logs
from pybernetes.kubelet.runtime import labels
from pybernetes.kubelet.runtime.pod_observer import Observing
from pybernetes.kubelet.runtime.types import PodRef
from pybernetes.kubelet.server.log_reader import LogError, open_log

PATIENCE = 10.0
"""Seconds after which a file system answers after all, so that a test fails instead of hanging."""


@contextmanager
def hung(path: Path) -> Iterator[None]:
    """A hung mount at a path; nothing may wait for it."""
    with hung_mount(path) as mount:
        timer = threading.Timer(PATIENCE, mount.release)
        timer.start()
        begin = time.monotonic()
        try:
            yield
        finally:
            timer.cancel()
        assert time.monotonic() - begin < PATIENCE


@pytest.fixture(params=["pod's folder", "container's folder"])
def bad(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The path of a log that a pod has mounted something over."""
    log = tmp_path / "ns_bad_u1" / "main" / "0.log"
    log.parent.mkdir(parents=True)
    log.write_text("x" * 10)
    with hung(log.parent if request.param.startswith("container") else log.parent.parent):
        yield log


async def test_logs_of_others_are_rotated(bad: Path, tmp_path: Path) -> None:
    good = tmp_path / "ns_good_u2" / "main" / "0.log"
    good.parent.mkdir(parents=True)
    good.write_text("x" * 10)

    async def reopen(_: str) -> None:
        good.write_text("")

    rotator = LogRotator(
        max_size="10", running=lambda: [("1", str(bad)), ("2", str(good))], reopen=reopen, clock=FakeClock(1.0)
    )
    await rotator.rotate_all()
    assert sorted(os.listdir(good.parent)) == ["0.log", "0.log.19700101-000001"]


def test_neither_kubectl_logs_nor_the_launcher_enters_it(bad: Path) -> None:
    with pytest.raises(LogError, match="cross-device"):
        open_log(str(bad))
    with pytest.raises(OSError, match="cross-device"):
        LogFile(str(bad))


def test_it_goes_with_the_logs_of_its_pod(bad: Path) -> None:
    folder = bad.parent.parent
    _remove_logs(folder, [])
    assert not mounts(folder.parent)
    assert not os.path.lexists(folder)


async def test_a_message_on_a_volume_that_hangs_is_an_error_of_its_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pybernetes.kubelet.runtime.pod_observer.READ_WITHIN", 0.1)
    statuses = {
        name: cri.ContainerStatus(
            id=name,
            state=cri.CONTAINER_EXITED,
            labels={labels.CONTAINER_NAME: name, labels.POD_UID: "u"},
            annotations={labels.TERMINATION_MESSAGE_PATH: "/words"},
            mounts=[cri.Mount(container_path="/words", host_path=str(path))],
        )
        for name, path in (("bad", tmp_path / "hung" / "words"), ("good", tmp_path / "words"))
    }
    (tmp_path / "words").write_text("bye")
    items = [cri.Container(id=name, state=cri.CONTAINER_EXITED, pod_sandbox_id="s") for name in statuses]

    async def list_pod_sandbox(_: Any) -> Any:
        return cri.ListPodSandboxResponse()

    async def list_containers(_: Any) -> Any:
        return cri.ListContainersResponse(containers=items)

    async def container_status(request: Any) -> Any:
        return cri.ContainerStatusResponse(status=statuses[request.container_id])

    runtime = SimpleNamespace(
        list_pod_sandbox=list_pod_sandbox, list_containers=list_containers, container_status=container_status
    )
    with hung(tmp_path / "hung"):
        found = await Observing(cast(Any, runtime)).pod(PodRef("u", "ns", "p"))
        words = {each.name: each.message for each in found.containers}
    assert words["good"] == "bye"
    assert words["bad"].startswith("Error on reading termination log: pod u: last_words did not return")


async def test_files_of_other_pods_are_kept_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybernetes.kubelet.gc.written_files.LOOK_WITHIN", 0.2)
    for name in ("bad", "good"):
        (tmp_path / name / "containers" / "main").mkdir(parents=True)
    (tmp_path / "good" / "etc-hosts").write_bytes(b"x" * (2 * MOST))
    with hung(tmp_path / "bad"):
        await WrittenFiles(folders=lambda: [tmp_path / "bad", tmp_path / "good"], clock=FakeClock(0.0)).look()
        assert (tmp_path / "good" / "etc-hosts").stat().st_blocks * 512 < MOST


def test_plugins_and_volumes_beside_it_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(tmp_path)
    volume = VolumeData("d", "h", "pv")
    for uid in ("bad", "good"):
        layout.note_published(uid, volume)
    with socket.socket(socket.AF_UNIX) as plugin, hung(tmp_path / "pods" / "bad"), hung(tmp_path / "r" / "hung"):
        monkeypatch.chdir(tmp_path)  # paths of sockets are short
        plugin.bind("r/x.sock")
        assert [uid for uid, _ in layout.find_published()] == ["good"]
        assert list(_sockets(tmp_path / "r")) == [f"{tmp_path}/r/x.sock"]


async def test_device_plugins_register_beside_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("d")
    (folder / "old.sock").touch()
    changed = asyncio.Event()
    manager = DeviceManager(folder, SystemClock(), changed.set)
    with hung(folder / "hung"):
        await manager.start()
        try:
            async with SamplePlugin(folder, "example.com/gpu", "g0"):
                async with asyncio.timeout(PATIENCE):
                    await changed.wait()
                assert manager.capacity()[0] == {"example.com/gpu": 1}
        finally:
            await manager.stop()
    assert not (folder / "old.sock").exists()
