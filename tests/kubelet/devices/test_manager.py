"""Device plugins over their sockets: registration, devices, allocation, and what a restart remembers."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubelet.devices.sample_plugin import SamplePlugin
from kubelet.pods import container, pod

from pybernetes.api.core.v1 import ContainerStatus, Pod
from pybernetes.client.clock import JumpingClock
from pybernetes.kubelet.devices import v1beta1
from pybernetes.kubelet.devices.checkpoint import FILE, Entry, load, save
from pybernetes.kubelet.devices.manager import DeviceManager
from pybernetes.kubelet.devices.plugin import PluginError
from pybernetes.kubelet.pod.refusal import PodRefused

GPU = "example.com/gpu"


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pyb-") as name:  # paths of sockets are short
        yield Path(name) / "dp"


class Kubelet:
    """A device manager, and a way to wait for what it tells."""

    def __init__(self, folder: Path) -> None:
        self.clock = JumpingClock()
        self.manager = DeviceManager(folder, self.clock, self._changed)
        self._news = asyncio.Event()

    def _changed(self) -> None:
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def has(self, capacity: int, allocatable: int, resource: str = GPU) -> None:
        def there() -> bool:
            everything, healthy, _ = self.manager.capacity()
            return (everything.get(resource), healthy.get(resource)) == (capacity, allocatable)

        await self.until(there)


@asynccontextmanager
async def _kubelet(folder: Path, running: tuple[tuple[str, str], ...] = ()) -> AsyncIterator[Kubelet]:
    kubelet = Kubelet(folder)
    await kubelet.manager.start(running)
    try:
        yield kubelet
    finally:
        await kubelet.manager.stop()


def _pod(uid: str, count: int, **more: Any) -> Pod:
    return pod(uid, container("c", limits={GPU: str(count)}), **more)


async def test_devices_of_a_plugin_are_the_nodes_capacity_and_healthy_ones_can_be_allocated(folder: Path) -> None:
    async with _kubelet(folder) as kubelet, SamplePlugin(folder, GPU, "g0", "g1", "g2") as plugin:
        await kubelet.has(3, 3)
        plugin.set_health(g1="Unhealthy")
        await kubelet.has(3, 2)


async def test_a_container_gets_its_devices_with_what_the_plugin_says(folder: Path) -> None:
    async with _kubelet(folder) as kubelet, SamplePlugin(folder, GPU, "g0", "g1") as plugin:
        await kubelet.has(2, 2)
        subject = _pod("a", 2)
        await kubelet.manager.admit(subject, [])
        options = await kubelet.manager.options(subject, subject.spec.containers[0])
        assert options is not None
        assert options.envs == {"SAMPLE_DEVICES": "g0,g1"}
        assert options.annotations == {"sample.example.com/devices": "g0,g1"}
        assert options.devices == [("/dev/null", "/dev/g0", "rw"), ("/dev/null", "/dev/g1", "rw")]
        assert (plugin.allocated, plugin.started) == ([["g0", "g1"]], [])
        await kubelet.manager.admit(subject, [])  # again, after a restart: nothing is allocated anew
        assert len(plugin.allocated) == 1
        assert kubelet.manager.allocated() == {GPU: 2}


async def test_a_pod_without_devices_is_no_matter_of_plugins(folder: Path) -> None:
    async with _kubelet(folder) as kubelet:
        subject = pod("a", container("c", "1", limits={"example.com/other": "1"}))
        await kubelet.manager.admit(subject, [])
        assert await kubelet.manager.options(subject, subject.spec.containers[0]) is None


async def test_no_device_is_given_twice_until_its_pod_has_ended(folder: Path) -> None:
    async with _kubelet(folder) as kubelet, SamplePlugin(folder, GPU, "g0", "g1"):
        await kubelet.has(2, 2)
        await kubelet.manager.admit(_pod("a", 1), ["a"])
        with pytest.raises(PodRefused) as refused:
            await kubelet.manager.admit(_pod("b", 2), ["a", "b"])
        assert refused.value.reason == "UnexpectedAdmissionError"
        assert refused.value.message == (
            "Allocate failed due to requested number of devices unavailable for example.com/gpu. "
            "Requested: 2, Available: 1, which is unexpected"
        )
        await kubelet.manager.admit(_pod("b", 2), ["b"])
        assert kubelet.manager.allocated() == {GPU: 2}
        kubelet.manager.remove("b")
        await kubelet.manager.admit(_pod("c", 2), ["c"])


async def test_init_containers_lend_their_devices(folder: Path) -> None:
    async with _kubelet(folder) as kubelet, SamplePlugin(folder, GPU, "g0", "g1") as plugin:
        await kubelet.has(2, 2)
        init = [
            container("init", limits={GPU: "2"}),
            container("side", limits={GPU: "1"}, restart_policy="Always"),
        ]
        await kubelet.manager.admit(_pod("a", 1, init_containers=init), [])
        assert sorted(plugin.allocated) == [["g0"], ["g0", "g1"], ["g1"]]


async def test_a_plugin_may_prefer_devices_and_want_to_know_of_starts(folder: Path) -> None:
    plugin = SamplePlugin(folder, GPU, "g0", "g1", "g2")
    plugin.options = v1beta1.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)
    plugin.preferences = ["g2", "g1"]
    async with _kubelet(folder) as kubelet, plugin:
        await kubelet.has(3, 3)
        subject = _pod("a", 2)
        await kubelet.manager.admit(subject, [])
        await kubelet.manager.options(subject, subject.spec.containers[0])
        assert (plugin.allocated, plugin.started) == ([["g1", "g2"]], [["g1", "g2"]])


async def test_a_plugins_error_is_reported_in_its_words(folder: Path) -> None:
    async with _kubelet(folder) as kubelet, SamplePlugin(folder, GPU, "g0") as plugin:
        await kubelet.has(1, 1)
        plugin.refuse = "out of luck"
        with pytest.raises(PodRefused, match="rpc error: code = Internal desc = out of luck"):
            await kubelet.manager.admit(_pod("a", 1), [])
        assert kubelet.manager.allocated() == {}


async def test_health_is_reported_in_the_statuses_of_containers(folder: Path) -> None:
    async with _kubelet(folder) as kubelet, SamplePlugin(folder, GPU, "g0") as plugin:
        await kubelet.has(1, 1)
        subject = _pod("a", 1)
        await kubelet.manager.admit(subject, [])
        for health in ("Healthy", "Unhealthy"):
            plugin.set_health(g0=health)
            await kubelet.has(1, 1 if health == "Healthy" else 0)
            statuses = [ContainerStatus(name="c"), ContainerStatus(name="other")]
            kubelet.manager.status(subject, statuses)
            (found,) = statuses[0].allocated_resources_status or ()
            assert (found.name, [(each.resource_id, each.health) for each in found.resources or ()]) == (
                GPU,
                [("g0", health)],
            )
            assert statuses[1].allocated_resources_status is None


async def test_a_plugin_that_goes_leaves_unhealthy_devices_and_then_nothing(folder: Path) -> None:
    async with _kubelet(folder) as kubelet:
        plugin = SamplePlugin(folder, GPU, "g0", "g1")
        async with plugin:
            await kubelet.has(2, 2)
        await kubelet.has(2, 0)
        with pytest.raises(PodRefused, match="no healthy devices present; cannot allocate unhealthy devices"):
            await kubelet.manager.admit(_pod("a", 1), [])
        kubelet.clock.advance(300)
        await kubelet.until(lambda: kubelet.manager.capacity() == ({}, {}, {GPU}))
        async with plugin:
            await kubelet.has(2, 2)
        assert kubelet.manager.capacity()[2] == set()


async def test_a_plugin_that_registers_again_takes_the_place_of_its_former_self(folder: Path) -> None:
    async with _kubelet(folder) as kubelet, SamplePlugin(folder, GPU, "g0") as plugin:
        await kubelet.has(1, 1)
        plugin.health["g1"] = "Healthy"
        await plugin.register()
        await kubelet.has(2, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "v1alpha"}, 'requested API version "v1alpha" is not supported by kubelet. Supported version is'),
        ({"resource": "cpu"}, 'the ResourceName "cpu" is invalid'),
        ({"resource": "kubernetes.io/x"}, 'the ResourceName "kubernetes.io/x" is invalid'),
        ({"endpoint": "../evil.sock"}, "is not the name of a socket in the plugin folder"),
        ({"endpoint": ""}, "is not the name of a socket in the plugin folder"),
    ],
)
async def test_a_bad_registration_is_refused(folder: Path, change: dict[str, str], message: str) -> None:
    async with _kubelet(folder) as kubelet:
        plugin = SamplePlugin(folder, GPU, "g0")
        for name, value in change.items():
            setattr(plugin, name, value)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await plugin.register()
        assert message in (error.value.details() or "")
        assert kubelet.manager.capacity() == ({}, {}, set())


async def test_a_plugin_that_does_not_answer_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybernetes.kubelet.devices.plugin.CONNECT_SECONDS", 0.1)
    async with _kubelet(folder):
        with pytest.raises(grpc.aio.AioRpcError, match="failed to dial device plugin"):
            await SamplePlugin(folder, GPU, "g0").register()


async def test_a_plugin_that_never_answers_refuses_the_pod(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybernetes.kubelet.devices.plugin.ALLOCATE_SECONDS", 0.1)
    async with _kubelet(folder) as kubelet, SamplePlugin(folder, GPU, "g0") as plugin:
        await kubelet.has(1, 1)
        plugin.hangs = True
        async with asyncio.timeout(20):
            with pytest.raises(PodRefused, match="DeadlineExceeded"):
                await kubelet.manager.admit(_pod("a", 1), [])
        plugin.hangs = False
        await kubelet.manager.admit(_pod("b", 1), [])


async def test_a_restarted_kubelet_knows_who_has_what_before_plugins_are_back(folder: Path) -> None:
    subject, other = _pod("a", 1), _pod("b", 1)
    async with _kubelet(folder) as kubelet, SamplePlugin(folder, GPU, "g0", "g1"):
        await kubelet.has(2, 2)
        await kubelet.manager.admit(subject, [])
    async with _kubelet(folder, running=(("a", "c"),)) as kubelet:
        assert kubelet.manager.capacity() == ({GPU: 0}, {GPU: 0}, set())
        await kubelet.manager.admit(subject, ["a"])  # it runs, so it has its device
        options = await kubelet.manager.options(subject, subject.spec.containers[0])
        assert options is not None
        assert options.envs == {"SAMPLE_DEVICES": "g0"}
        with pytest.raises(PodRefused, match="no healthy devices present"):
            await kubelet.manager.admit(other, ["a"])
        async with SamplePlugin(folder, GPU, "g0", "g1") as plugin:
            await kubelet.has(2, 2)
            await kubelet.manager.admit(other, ["a"])
            assert plugin.allocated == [["g1"]]


async def test_a_rebooted_node_waits_for_its_plugin(folder: Path) -> None:
    subject = _pod("a", 1)
    async with _kubelet(folder) as kubelet, SamplePlugin(folder, GPU, "g0"):
        await kubelet.has(1, 1)
        await kubelet.manager.admit(subject, [])
    async with _kubelet(folder) as kubelet:
        with pytest.raises(PodRefused, match="cannot allocate unhealthy devices"):
            await kubelet.manager.admit(subject, ["a"])
        async with SamplePlugin(folder, GPU, "g9"):
            await kubelet.has(1, 1)
            with pytest.raises(PodRefused, match="previously allocated devices are no longer healthy"):
                await kubelet.manager.admit(subject, ["a"])


async def test_sockets_of_former_times_are_removed_and_the_checkpoint_stays(folder: Path) -> None:
    _prepare(folder)
    async with _kubelet(folder):
        assert _names(folder) == [v1beta1.KUBELET_SOCKET, FILE]


def _prepare(folder: Path) -> None:
    folder.mkdir()
    (folder / "old.sock").write_text("")
    save(folder, [], {})


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def test_a_checkpoint_that_was_changed_is_not_believed(folder: Path) -> None:
    _prepare(folder)
    _write(folder, '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"a.com/b":[]}},"Checksum":1}')
    async with _kubelet(folder) as kubelet:
        assert kubelet.manager.capacity() == ({}, {}, set())


def _write(folder: Path, text: str) -> None:
    (folder / FILE).write_text(text)


def test_the_checkpoint_has_upstreams_form(tmp_path: Path) -> None:
    entries = [Entry("u", "c", GPU, {-1: ["a", "b"], 0: ["z"]}, b"\n\xc8\x03"), Entry("u2", "c", GPU, None, None)]
    save(tmp_path, entries, {GPU: {"b", "a"}, "a.com/q": set()})
    assert load(tmp_path) == (entries, {"a.com/q": [], GPU: ["a", "b"]})
    written = json.loads((tmp_path / FILE).read_text())
    assert written["Data"]["PodDeviceEntries"][0] == {
        "PodUID": "u",
        "ContainerName": "c",
        "ResourceName": GPU,
        "DeviceIDs": {"-1": ["a", "b"], "0": ["z"]},
        "AllocResp": "CsgD",
    }


async def test_a_call_to_a_plugin_that_is_gone_fails(folder: Path) -> None:
    async with _kubelet(folder) as kubelet:
        async with SamplePlugin(folder, GPU, "g0") as plugin:
            plugin.options = v1beta1.DevicePluginOptions(pre_start_required=True)
            await plugin.register()
            await kubelet.has(1, 1)
            subject = _pod("a", 1)
            await kubelet.manager.admit(subject, [])
            resource = kubelet.manager._resources[GPU].plugin
        assert resource is not None
        with pytest.raises(PluginError):
            await resource.allocate(["g0"])
