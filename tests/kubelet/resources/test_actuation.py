"""How containers get what was allocated: the plan, the order of its steps, and what is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubelet.pods import container, pod, resources

from pybernetes.api.core.v1 import (
    ContainerResizePolicy,
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodStatus,
)
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.kubelet.cgroups.config import CgroupConfig, pod_config
from pybernetes.kubelet.cgroups.container import ContainerSettings
from pybernetes.kubelet.cgroups.hierarchy import CgroupError
from pybernetes.kubelet.resources.actuation import ResizeActuator, ResizeError
from pybernetes.kubelet.resources.reporting import allocated_resources, container_resources, pod_resources
from pybernetes.kubelet.runtime.types import ContainerState as State
from pybernetes.kubelet.runtime.types import ObservedContainer, ObservedPod, PodRef

MI = 1 << 20
GI = 1 << 30


class Machine:
    """A runtime and the pod's cgroup, which note what is asked of them in order."""

    def __init__(self, before: Pod) -> None:
        self.now = pod_config(before)
        self.done: list[str] = []
        self.used: dict[str, int] = {}
        self.pod_used = 0
        self.fail = ""

    # the runtime

    async def update_container_resources(self, request: Any) -> None:
        if self.fail == request.container_id:
            raise CRIError("Internal", "no")
        linux = request.linux
        quota = f"{linux.cpu_quota // 1000}ms" if linux.cpu_quota else "-"
        self.done.append(f"{request.container_id}: {linux.cpu_shares} {quota} {linux.memory_limit_in_bytes // MI}Mi")

    async def container_stats(self, request: Any) -> Any:
        used = self.used.get(request.container_id, 0)
        memory = cri.MemoryUsage(usage_bytes=cri.UInt64Value(value=used))
        return cri.ContainerStatsResponse(stats=cri.ContainerStats(memory=memory))

    # the cgroups

    def config(self, pod: Pod, *, exclusive: bool = False) -> CgroupConfig:
        return pod_config(pod)

    def read(self, pod: Pod) -> CgroupConfig:
        return CgroupConfig(
            cpu_shares=self.now.cpu_shares,
            cpu_quota=self.now.cpu_quota if self.now.cpu_quota is not None else -1,
            cpu_period=100_000,
            memory=self.now.memory if self.now.memory is not None else -1,
        )

    def update(self, pod: Pod, config: CgroupConfig) -> None:
        if config.memory is not None:
            self.done.append(f"pod: {config.memory // MI}Mi")
        if config.cpu_quota is not None:
            self.done.append(f"pod: {config.cpu_quota // 1000}ms")
        if config.cpu_shares is not None:
            self.done.append(f"pod: {config.cpu_shares} shares")

    def memory_usage(self, pod: Pod) -> int:
        return self.pod_used


def _observed(*names: str, state: State = State.RUNNING) -> ObservedPod:
    containers = tuple(ObservedContainer(id=f"id-{name}", name=name, state=state) for name in names)
    return ObservedPod(PodRef("u", "ns", "p"), containers=containers)


def _actuator(root: Path, before: Pod) -> tuple[ResizeActuator, Machine]:
    machine = Machine(before)
    actuator = ResizeActuator(root, machine, machine, ContainerSettings(16 * GI))  # type: ignore[arg-type]
    actuator.pod_started(before)
    return actuator, machine


async def test_what_grows_grows_from_the_outside(tmp_path: Path) -> None:
    actuator, machine = _actuator(tmp_path, pod("u", container("a", "=100m", "=64Mi")))
    after = pod("u", container("a", "=200m", "=128Mi"))
    assert actuator.in_progress(after, _observed("a"))
    assert await actuator.resize(after, _observed("a"))
    assert machine.done == [
        "pod: 128Mi",
        "id-a: 102 10ms 128Mi",
        "pod: 20ms",
        "pod: 204 shares",
        "id-a: 204 20ms 128Mi",
    ]
    assert not actuator.in_progress(after, _observed("a"))
    assert not await actuator.resize(after, _observed("a"))


async def test_what_shrinks_shrinks_from_the_inside(tmp_path: Path) -> None:
    actuator, machine = _actuator(tmp_path, pod("u", container("a", "=200m", "=128Mi")))
    await actuator.resize(pod("u", container("a", "=100m", "=64Mi")), _observed("a"))
    assert machine.done == [
        "id-a: 204 20ms 64Mi",
        "pod: 64Mi",
        "id-a: 102 10ms 64Mi",
        "pod: 102 shares",
        "pod: 10ms",
    ]


async def test_within_a_pod_what_shrinks_makes_room_for_what_grows(tmp_path: Path) -> None:
    before = pod("u", container("a", "=100m", "=64Mi"), container("b", "=100m", "=64Mi"))
    actuator, machine = _actuator(tmp_path, before)
    after = pod("u", container("a", "=100m", "=96Mi"), container("b", "=100m", "=32Mi"))
    await actuator.resize(after, _observed("a", "b"))
    assert machine.done == ["id-b: 102 10ms 32Mi", "id-a: 102 10ms 96Mi"]


async def test_a_container_that_restarted_with_its_pods_new_limit_is_not_restarted_again(tmp_path: Path) -> None:
    """Though the pod itself could not be given it yet."""
    policy = [ContainerResizePolicy(resource_name="cpu", restart_policy="RestartContainer")]
    own = container("a", resize_policy=policy)
    actuator, _ = _actuator(tmp_path, pod("u", own, resources=resources("=100m", "=64Mi")))
    after = pod("u", own, resources=resources("=80m", "=64Mi"))
    for quota, kept in ((10_000, False), (8_000, True)):
        linux = cri.LinuxContainerResources(cpu_quota=quota, cpu_period=100_000, memory_limit_in_bytes=64 * MI)
        found = ObservedContainer(
            id="id-a", name="a", state=State.RUNNING, resources=cri.ContainerResources(linux=linux)
        )
        assert actuator.keep_as_it_is(after)(own, found) is kept


async def test_a_limit_that_the_kernel_refuses_for_a_moment_is_set_then(tmp_path: Path) -> None:
    actuator, machine = _actuator(tmp_path, pod("u", container("a", "=200m", "=64Mi")))
    refusals = iter(range(3))
    update = machine.update

    def refuse(pod: Pod, config: CgroupConfig) -> None:
        if config.cpu_quota is not None and next(refusals, None) is not None:
            raise CgroupError("Invalid argument")
        update(pod, config)

    machine.update = refuse  # type: ignore[method-assign]
    await actuator.resize(pod("u", container("a", "=100m", "=64Mi")), _observed())
    assert machine.done == ["pod: 102 shares", "pod: 10ms"]


async def test_a_policy_may_want_a_restart_and_the_pods_cgroup_is_ready_for_it(tmp_path: Path) -> None:
    policy = [ContainerResizePolicy(resource_name="memory", restart_policy="RestartContainer")]
    before = pod("u", container("a", "=100m", "=64Mi", resize_policy=policy))
    actuator, machine = _actuator(tmp_path, before)
    cpu_only = pod("u", container("a", "=200m", "=64Mi", resize_policy=policy))
    found = _observed("a").containers[0]
    assert actuator.keep_as_it_is(cpu_only)(cpu_only.spec.containers[0], found)
    both = pod("u", container("a", "=200m", "=128Mi", resize_policy=policy))
    assert not actuator.keep_as_it_is(both)(both.spec.containers[0], found)
    await actuator.resize(both, _observed("a"))
    assert machine.done == ["pod: 128Mi", "pod: 20ms", "pod: 204 shares"]
    actuator.container_started(both, both.spec.containers[0])
    assert actuator.keep_as_it_is(both)(both.spec.containers[0], found)
    assert not actuator.in_progress(both, _observed("a"))


async def test_containers_that_do_not_run_get_it_when_they_start(tmp_path: Path) -> None:
    actuator, machine = _actuator(tmp_path, pod("u", container("a", "=100m", "=64Mi")))
    after = pod("u", container("a", "=100m", "=128Mi"))
    stopped = _observed("a", state=State.EXITED)
    assert not actuator.in_progress(after, stopped)
    assert await actuator.resize(after, stopped)
    assert machine.done == ["pod: 128Mi"]
    assert not await actuator.resize(after, stopped)


async def test_a_limit_is_not_set_below_what_is_used(tmp_path: Path) -> None:
    actuator, machine = _actuator(tmp_path, pod("u", container("a", "=100m", "=128Mi")))
    machine.used, machine.pod_used = {"id-a": 100 * MI}, 101 * MI
    after = pod("u", container("a", "=100m", "=64Mi"))
    with pytest.raises(ResizeError) as error:
        await actuator.resize(after, _observed("a"))
    assert str(error.value) == (
        "cannot decrease memory limits: [attempting to set pod memory limit (67108864) below current usage "
        '(105906176), attempting to set container "a" memory limit (67108864) below current usage (104857600)]'
    )
    assert machine.done == []
    machine.used, machine.pod_used = {}, 0
    assert await actuator.resize(after, _observed("a"))


async def test_what_was_given_before_an_error_is_remembered(tmp_path: Path) -> None:
    before = pod("u", container("a", "=100m", "=64Mi"), container("b", "=100m", "=64Mi"))
    actuator, machine = _actuator(tmp_path, before)
    after = pod("u", container("a", "=100m", "=96Mi"), container("b", "=100m", "=96Mi"))
    machine.fail = "id-b"
    with pytest.raises(ResizeError, match="failed to update resources of container 'b'"):
        await actuator.resize(after, _observed("a", "b"))
    again = ResizeActuator(tmp_path, machine, machine, ContainerSettings(16 * GI))  # type: ignore[arg-type]
    assert again.in_progress(after, _observed("a", "b"))
    machine.fail, machine.done, machine.now = "", [], pod_config(after)
    await again.resize(after, _observed("a", "b"))
    assert machine.done == ["id-b: 102 10ms 96Mi"]


async def test_the_pods_own_limits_change_with_those_of_containers_without_their_own(tmp_path: Path) -> None:
    actuator, machine = _actuator(tmp_path, pod("u", container("a"), resources=resources("1/1", "64Mi/64Mi")))
    after = pod("u", container("a"), resources=resources("1/2", "64Mi/128Mi"))
    assert actuator.in_progress(after, _observed("a"))
    await actuator.resize(after, _observed("a"))
    assert machine.done == ["pod: 128Mi", "id-a: 1024 100ms 128Mi", "pod: 200ms", "id-a: 2048 200ms 128Mi"]
    assert not actuator.in_progress(after, _observed("a"))


def test_a_pod_that_is_new_needs_no_resize(tmp_path: Path) -> None:
    before = pod("u", container("a", "1"))
    actuator = ResizeActuator(tmp_path, None, None, ContainerSettings(GI))  # type: ignore[arg-type]
    assert not actuator.in_progress(before, ObservedPod(PodRef("u", "ns", "p")))


# what is reported


def _running(name: str, **linux: int) -> ObservedContainer:
    shown = cri.ContainerResources(linux=cri.LinuxContainerResources(**linux)) if linux else None
    return ObservedContainer(id="1", name=name, state=State.RUNNING, resources=shown)


def _status(subject: Any) -> ContainerStatus:
    state = ContainerState(running=ContainerStateRunning())
    return ContainerStatus(name="a", container_id="containerd://1", state=state, resources=subject)


def test_a_running_container_reports_what_the_runtime_says() -> None:
    subject = container("a", "200m/400m", "64Mi/128Mi")
    found = _running("a", cpu_shares=102, cpu_quota=20_000, cpu_period=100_000, memory_limit_in_bytes=64 * MI)
    made = container_resources(subject, found, None)
    assert (made.requests, made.limits) == ({"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "64Mi"})


def test_what_the_runtime_cannot_say_stays_as_reported_for_the_same_container() -> None:
    subject = container("a", "200m/400m", "64Mi/128Mi")
    before = _status(resources("100m/200m", "32Mi/64Mi"))
    made = container_resources(subject, _running("a"), before)
    assert made == resources("100m/200m", "32Mi/64Mi")
    before.container_id = "containerd://2"
    assert container_resources(subject, _running("a"), before) == subject.resources


def test_a_container_that_does_not_run_reports_what_is_allocated() -> None:
    subject = container("a", "200m/400m")
    found = ObservedContainer(id="1", name="a", state=State.EXITED)
    assert container_resources(subject, found, None) == subject.resources


def test_tiny_requests_are_reported_as_they_were_written() -> None:
    subject = container("a", "1m/5m")
    found = _running("a", cpu_shares=2, cpu_quota=1000, cpu_period=100_000)
    assert container_resources(subject, found, None) == subject.resources


def test_a_pods_resources_are_those_of_its_cgroup_while_it_runs() -> None:
    subject = pod("u", container("a", "1/2", "64Mi/128Mi"))
    assert allocated_resources(subject) == {"cpu": "1", "memory": "64Mi"}
    assert pod_resources(subject, None, None) == resources("1/2", "64Mi/128Mi")
    cgroup = CgroupConfig(cpu_shares=512, cpu_quota=100_000, cpu_period=100_000, memory=96 * MI)
    made = pod_resources(subject, cgroup, PodStatus(phase="Pending"))
    assert made == resources("500m/1", "64Mi/96Mi")
