"""Shutdowns that logind announces, over a real message bus."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from kubelet.logind.fake_logind import FakeLogind
from kubelet.pods import container, pod

import tools
from pybernetes.api.core.v1 import Pod, PodCondition
from pybernetes.client.clock import SystemClock
from pybernetes.kubelet.logind.bus import Bus, BusError
from pybernetes.kubelet.logind.watch import LOGIND, LogindWatch
from pybernetes.kubelet.node.shutdown import ShutdownManager

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>
<policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
</policy>
</busconfig>"""


@pytest.fixture
def bus() -> Iterator[Path]:
    """The socket of a message bus of the test's own."""
    program = shutil.which("dbus-daemon")
    if program is None:
        pytest.skip("no dbus-daemon")
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        path, config = Path(folder) / "bus", Path(folder) / "config"
        config.write_text(CONFIG.format(path))
        command = [program, f"--config-file={config}", "--nofork", "--print-address=1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as daemon:
            assert daemon.stdout is not None
            assert daemon.stdout.readline()
            yield path
            daemon.terminate()


class Node:
    """A node with one pod, whose end the test decides."""

    def __init__(self, folder: Path, seconds: int = 20) -> None:
        self.killed = asyncio.Event()
        self.ended = asyncio.Event()
        self.manager = ShutdownManager(
            folder,
            periods=[(0, seconds)] if seconds else [],
            active_pods=lambda: [pod("a", container("c"))],
            kill=self._kill,
            clock=SystemClock(),
        )

    async def _kill(self, pod: Pod, grace: float, reason: str, message: str, condition: PodCondition) -> None:
        self.killed.set()
        await self.ended.wait()


@asynccontextmanager
async def _watching(node: Node, bus: Path, config: Path) -> AsyncIterator[None]:
    watch = LogindWatch(node.manager, SystemClock(), path=bus, config=config)
    task = asyncio.create_task(watch.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(tools.wait_until, condition, "it comes to that", 30.0)


async def test_a_shutdown_is_held_up_until_the_pods_have_ended(bus: Path, tmp_path: Path) -> None:
    node, config = Node(tmp_path), tmp_path / "conf.d/99-kubelet.conf"
    logind = await FakeLogind.start(bus, config)
    async with _watching(node, bus, config):
        await _until(lambda: len(logind.locks) == 1)
        assert logind.inhibitors == [("shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay")]
        assert config.read_text() == "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=20\n"
        assert logind.killed == [("systemd-logind.service", "all", 1)]
        await logind.announce(True)
        async with asyncio.timeout(30):
            await node.killed.wait()
        assert (logind.held(), node.manager.message()) == (1, "node is shutting down")
        node.ended.set()
        await _until(lambda: logind.held() == 0)
        await logind.announce(False)
        await _until(lambda: logind.held() == 1)
        assert node.manager.message() == ""
    logind.stop()


async def test_a_logind_that_waits_long_enough_is_left_alone(bus: Path, tmp_path: Path) -> None:
    node, config = Node(tmp_path, 4), tmp_path / "conf.d/99-kubelet.conf"
    logind = await FakeLogind.start(bus, config)
    async with _watching(node, bus, config):
        await _until(lambda: len(logind.locks) == 1)
    assert (config.exists(), logind.killed) == (False, [])
    await _until(lambda: logind.held() == 0)  # a kubelet that ends holds nothing up
    logind.stop()


async def test_a_logind_that_comes_later_is_found(bus: Path, tmp_path: Path) -> None:
    node, config = Node(tmp_path, 4), tmp_path / "c"
    async with _watching(node, bus, config):
        await asyncio.sleep(0.1)
        logind = await FakeLogind.start(bus, config)
        await _until(lambda: logind.held() == 1)
        logind.stop()


async def test_a_bus_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    await LogindWatch(Node(tmp_path).manager, SystemClock(), path=tmp_path / "none").run()
    await LogindWatch(Node(tmp_path, 0).manager, SystemClock(), path=tmp_path).run()


async def test_errors_of_the_bus_are_reported(bus: Path, tmp_path: Path) -> None:
    client = await Bus.connect(bus)
    with pytest.raises(BusError, match=r"org\.freedesktop\.login1") as error:
        await client.call(*LOGIND, "Inhibit")
    assert error.value.name == "org.freedesktop.DBus.Error.ServiceUnknown"
    logind = await FakeLogind.start(bus, tmp_path)
    with pytest.raises(BusError, match="no Nonsense"):
        await client.call(*LOGIND, "Nonsense")
    client.close()
    logind.stop()
