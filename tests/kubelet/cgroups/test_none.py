"""A kubelet without cgroups: what was wanted is remembered, nothing is enforced, and usage is the runtime's."""

from __future__ import annotations

from typing import Any

from pybernetes.cri import v1 as cri
from pybernetes.kubelet.cgroups.config import CgroupConfig
from pybernetes.kubelet.cgroups.none import NoCgroups
from pybernetes.kubelet.runtime import labels
from pybernetes.kubelet.stats.runtime_usage import RuntimeUsage


def test_what_was_wanted_is_remembered_until_it_is_removed() -> None:
    none = NoCgroups()
    none.create("/kubepods/burstable/podu", CgroupConfig(cpu_shares=2, memory=100))
    none.create("/kubepods/burstable/podu2", CgroupConfig())
    none.update("/kubepods/burstable/podu", CgroupConfig(memory=200))
    assert none.read("/kubepods/burstable/podu") == CgroupConfig(cpu_shares=2, memory=200)
    assert none.children("/kubepods/burstable") == {"podu", "podu2"}
    assert none.children("/kubepods") == {"burstable"}
    none.remove("/kubepods/burstable/podu")
    assert none.children("/kubepods/burstable") == {"podu2"}
    assert not none.exists("/kubepods/burstable/podu")
    assert none.version == 0


class _Runtime:
    async def list_container_stats(self, request: Any = None) -> Any:
        def one(id: str, cpu: int, memory: int) -> Any:
            number = cri.UInt64Value
            return cri.ContainerStats(
                attributes=cri.ContainerAttributes(id=id, labels={labels.POD_UID: "u"}),
                cpu=cri.CpuUsage(usage_core_nano_seconds=number(value=cpu)),
                memory=cri.MemoryUsage(working_set_bytes=number(value=memory), usage_bytes=number(value=memory)),
            )

        ended = cri.ContainerStats(attributes=cri.ContainerAttributes(id="ended", labels={labels.POD_UID: "u"}))
        return cri.ListContainerStatsResponse(stats=[one("a", 5, 70), one("b", 6, 80), ended])


async def test_usage_is_the_runtimes_and_the_machines() -> None:
    usage = RuntimeUsage(_Runtime())
    assert usage.read("/kubepods/podu/a") is None
    await usage.refresh()
    found = {name: usage.read(name) for name in ("/kubepods/podu/a", "/kubepods/podu", "/kubepods/podu/ended", "/")}
    one, pod, machine = found["/kubepods/podu/a"], found["/kubepods/podu"], found["/"]
    assert one is not None
    assert (one.cpu, one.working_set) == (5, 70)
    assert pod is not None
    assert (pod.cpu, pod.working_set) == (11, 150)
    assert found["/kubepods/podu/ended"] is None
    assert machine is not None
    assert machine.cpu > 0
    assert 0 < machine.working_set <= machine.memory * 2
