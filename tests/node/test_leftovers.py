"""What a runtime leaves when it is killed in the midst of its work, and who removes it: it itself, or the kubelet."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Any

from node import leaks
from node.cluster import settle
from node.containerd_machine import ContainerdMachine
from node.cri_pods import remove, run, sandbox_config, start
from node.machine import BUSYBOX, Machine
from node.runtimes import only

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime
from pybernetes.kubelet.gc.containerd_leftovers import Leftovers

SCRIPT = """
import asyncio, sys
from pybernetes.cri.remote import Runtime
from pybernetes.kubelet.gc.containerd_leftovers import Leftovers

async def main():
    async with Runtime(sys.argv[1]) as runtime:
        leftovers = Leftovers(runtime)
        print(*await leftovers.remove(), *await leftovers.remove(), sep="\\n")

asyncio.run(main())
"""


def count(machine: Machine) -> leaks.Count:
    return leaks.count(machine.init, machine.cgroup, str(machine.folder / "ipam"))


def remove_leftovers(machine: Machine) -> list[str]:
    """As a kubelet would, which is in the namespaces of its runtime."""
    return machine.run(sys.executable, "-c", SCRIPT, str(machine.socket)).split("\n")


def leaked(machine: Machine, before: leaks.Count) -> dict[str, Any]:
    found = count(machine).more_than(before)
    found.pop("cgroups", None)  # of pods: the kubelet's
    return found


async def make(runtime: Runtime, config: Any) -> None:
    with contextlib.suppress(CRIError):
        sandbox = (await runtime.run_pod_sandbox(cri.RunPodSandboxRequest(config=config))).pod_sandbox_id
        await start(runtime, config, sandbox, "sleep", "1000")


async def remove_all(runtime: Runtime) -> None:
    for each in (await runtime.list_pod_sandbox()).items:
        await remove(runtime, each.id)


async def test_nothing_is_left_of_pods_that_were_being_made_when_the_runtime_was_killed(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        await make(runtime, sandbox_config(machine))
        # What outlives a runtime because it has pods (a launcher) is a child of the machine's init from then on, and
        # counted; it stays when they are gone.
        machine.kill_runtime()
        await asyncio.to_thread(machine.start_runtime)
        await runtime.version(wait=30.0)
        await remove_all(runtime)
        before = count(machine)
        config, sandbox = await run(runtime, machine)
        steady = await start(runtime, config, sandbox, "sleep", "1000")
        for moment in (0.01, 0.03, 0.06, 0.1, 0.2, 0.3):
            makers = [asyncio.create_task(make(runtime, sandbox_config(machine))) for _ in range(4)]
            await asyncio.sleep(moment)  # not a wait for anything: another moment each time
            machine.kill_runtime()
            await asyncio.gather(*makers)
            await asyncio.to_thread(machine.start_runtime)
            await runtime.version(wait=30.0)
            for each in (await runtime.list_pod_sandbox()).items:
                if each.id != sandbox:
                    await remove(runtime, each.id)
        await asyncio.to_thread(remove_leftovers, machine)
        listed = await runtime.list_containers()
        assert {each.id: each.state for each in listed.containers} == {steady: cri.CONTAINER_RUNNING}
        await remove(runtime, sandbox)
        assert await asyncio.to_thread(settle, lambda: leaked(machine, before), 60) == {}


@only("containerd")
async def test_a_shim_that_its_own_containerd_does_not_know_is_removed_at_the_second_look(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        await make(runtime, sandbox_config(machine))
        # A process that looks like a shim: a real one without a container ends by itself.
        program = machine.folder / "containerd-shim-lookalike"
        program.symlink_to("/bin/sh")
        words = ["-namespace", "k8s.io", "-address", str(machine.socket), "-id", "nobodys"]
        command = machine.enter([str(program), "-c", "sleep 1000; :", *words])
        process = await asyncio.create_subprocess_exec(*command)
        try:
            found = await asyncio.to_thread(remove_leftovers, machine)
            assert found == ["container nobodys", ""]
            await asyncio.wait_for(process.wait(), 30)
        finally:
            program.unlink()
            if process.returncode is None:
                process.kill()
        assert [each.state for each in (await runtime.list_containers()).containers] == [cri.CONTAINER_RUNNING]
        await remove_all(runtime)


async def test_what_is_being_made_is_not_taken_for_left_over(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        configs = [sandbox_config(machine) for _ in range(6)]
        makers = [asyncio.create_task(make(runtime, config)) for config in configs]
        leftovers = Leftovers(runtime)
        removed = []
        while not all(each.done() for each in makers):
            removed += await leftovers.remove()
        assert removed == []
        listed = await runtime.list_containers()
        assert [each.state for each in listed.containers] == [cri.CONTAINER_RUNNING] * len(configs)
        await remove_all(runtime)


@only("containerd")
async def test_a_container_made_without_cri_stays(machine: ContainerdMachine) -> None:
    ctr = machine.ctr()
    machine.run(*ctr, "run", "--detach", "--null-io", BUSYBOX, "somebodys", "sleep", "1000")
    machine.kill_runtime()
    await asyncio.to_thread(machine.start_runtime)
    await asyncio.to_thread(remove_leftovers, machine)
    assert "RUNNING" in machine.run(*ctr, "tasks", "list")
    machine.run(*ctr, "tasks", "kill", "--signal", "KILL", "somebodys")
    machine.run(*ctr, "tasks", "delete", "--force", "somebodys", check=False)
    machine.run(*ctr, "containers", "delete", "somebodys")
