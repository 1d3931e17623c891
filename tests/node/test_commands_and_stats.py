"""Commands of probes and hooks, and statistics, with a real container: its cgroup, its network, its layer."""

from __future__ import annotations

import asyncio

import pytest
from node.cri_pods import remove, run, start
from node.machine import Machine

from pybernetes.client.clock import SystemClock
from pybernetes.cri.errors import CRIError
from pybernetes.kubelet.cgroups.hierarchy import detect
from pybernetes.kubelet.cgroups.manager import CgroupManager
from pybernetes.kubelet.runtime.exec_command import CommandFailed, CommandTimedOut, run_in_container
from pybernetes.kubelet.runtime.types import ContainerState, ObservedContainer, ObservedPod, ObservedSandbox, PodRef
from pybernetes.kubelet.stats.provider import StatsProvider
from pybernetes.kubelet.stats.usage import reader


async def test_commands_end_fail_take_too_long_or_cannot_run(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await run(runtime, machine)
        container = await start(runtime, config, sandbox, "sleep", "1000")
        assert await run_in_container(runtime, container, ["sh", "-c", "echo a; echo b >&2"], 30) == b"a\nb\n"
        with pytest.raises(CommandFailed) as failed:
            await run_in_container(runtime, container, ["sh", "-c", "echo why >&2; exit 3"], 30)
        assert (failed.value.code, failed.value.output) == (3, b"why\n")
        with pytest.raises(CommandTimedOut, match='command timed out: "sleep 60" timed out after 1s'):
            await run_in_container(runtime, container, ["sleep", "60"], 1)
        with pytest.raises(CRIError, match="/none: no such file or directory"):
            await run_in_container(runtime, container, ["/none"], 30)
        await remove(runtime, sandbox)


async def test_what_a_container_uses(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await run(runtime, machine)
        uid = config.metadata.uid
        script = "dd if=/dev/zero of=/big bs=1M count=3; while :; do :; done"
        container = await start(runtime, config, sandbox, "sh", "-c", script)
        clock = SystemClock()
        observed = ObservedPod(
            PodRef(uid, "default", config.metadata.name),
            (ObservedSandbox(sandbox, True, created_at=clock.now() - 1),),
            (ObservedContainer(container, "main", ContainerState.RUNNING, started_at=clock.now() - 1),),
        )
        cgroups = CgroupManager(detect(), root=f"/{machine.cgroup}")
        stats = StatsProvider(
            node="n",
            runtime=runtime,
            clock=clock,
            root=machine.folder,
            logs=machine.folder,
            observed=lambda: [observed],
            pods=lambda: [],
            cgroups=cgroups,
            usage=reader(),
        )
        stats.sampler.sample()
        await asyncio.sleep(1.5)  # not a wait: the time over which usage is measured
        stats.sampler.sample()
        found = (await stats.summary())["pods"][0]
        (main,) = found["containers"]
        assert 100_000_000 < main["cpu"]["usageNanoCores"] < 1_300_000_000
        assert 0 < main["memory"]["workingSetBytes"] < 64 << 20
        apart = 100_000_000  # the pod and its containers are read one after another
        assert found["cpu"]["usageCoreNanoSeconds"] >= main["cpu"]["usageCoreNanoSeconds"] - apart
        assert found["process_stats"]["process_count"] >= 2
        assert main["rootfs"]["capacityBytes"] > 0
        assert f'pod="{config.metadata.name}"' in stats.resource_metrics().decode()
        await remove(runtime, sandbox)
