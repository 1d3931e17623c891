"""Containers of the embedded runtime over CRI: from their start to their end, with logs, commands and limits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cri.embedded.machine import EmbeddedMachine
from node import cri_pods

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime


async def status(runtime: Runtime, id: str) -> Any:
    return (await runtime.container_status(cri.ContainerStatusRequest(container_id=id))).status


async def ended(runtime: Runtime, id: str, within: float = 20.0) -> Any:
    async with asyncio.timeout(within):
        while (found := await status(runtime, id)).state != cri.CONTAINER_EXITED:
            await asyncio.sleep(0.01)
    return found


async def execute(runtime: Runtime, id: str, *command: str, limit: int = 10) -> Any:
    return await runtime.exec_sync(cri.ExecSyncRequest(container_id=id, cmd=command, timeout=limit))


def log_lines(config: Any) -> list[str]:
    with open(f"{config.log_directory}/main.log") as file:
        return [line.rstrip("\n").split(" ", 1)[1] for line in file]


async def test_a_container_runs_in_its_sandbox_and_leaves_nothing(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        found = await runtime.pod_sandbox_status(cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox))
        assert found.status.state == cri.SANDBOX_READY
        assert found.status.network.ip.startswith("10.200.0.")
        id = await cri_pods.start(
            runtime, config, sandbox, "sh", "-c", "echo out; echo err >&2; hostname; exec sleep 1000"
        )
        answer = await execute(runtime, id, "sh", "-c", "echo hello; echo oops >&2; exit 3")
        assert (answer.stdout, answer.stderr, answer.exit_code) == (b"hello\n", b"oops\n", 3)
        assert sorted(log_lines(config))[:2] == ["stderr F err", "stdout F out"]
        address = (await execute(runtime, id, "ip", "addr", "show", "eth0")).stdout.decode()
        assert found.status.network.ip in address
        assert (await status(runtime, id)).state == cri.CONTAINER_RUNNING
        await runtime.stop_container(cri.StopContainerRequest(container_id=id, timeout=0))
        assert (await status(runtime, id)).exit_code == 137
        await cri_pods.remove(runtime, sandbox)
        with pytest.raises(CRIError, match="not found"):
            await status(runtime, id)
        assert machine.run("sh", "-c", f"mount | grep {sandbox} || true") == ""
        assert machine.run("sh", "-c", f"find /sys/fs/cgroup -name {sandbox} -o -name {id}") == ""
        assert list((machine.folder / "lib/containers").iterdir()) == []
        assert list((machine.folder / "lib/images/containers").iterdir()) == []
        assert list((machine.state / "exits").iterdir()) == []
