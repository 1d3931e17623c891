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

OWN_PIDS = cri.LinuxContainerSecurityContext(namespace_options=cri.NamespaceOption(pid=cri.CONTAINER))
ALONE = cri.LinuxContainerConfig(security_context=OWN_PIDS)


async def status(runtime: Runtime, id: str) -> Any:
    return (await runtime.container_status(cri.ContainerStatusRequest(container_id=id))).status


async def ended(runtime: Runtime, id: str, within: float = 60.0) -> Any:
    async with asyncio.timeout(within):
        while True:
            found = await status(runtime, id)
            if found.state == cri.CONTAINER_EXITED:
                return found
            await asyncio.sleep(0.01)


async def execute(runtime: Runtime, id: str, *command: str, limit: int = 30) -> Any:
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
        for line in ("stderr F err", "stdout F out"):
            await until_logged(config, line)
        address = (await execute(runtime, id, "ip", "addr", "show", "eth0")).stdout.decode()
        assert found.status.network.ip in address
        assert (await status(runtime, id)).state == cri.CONTAINER_RUNNING
        await runtime.stop_container(cri.StopContainerRequest(container_id=id, timeout=0))
        assert (await status(runtime, id)).exit_code == 137
        await cri_pods.remove(runtime, sandbox)
        with pytest.raises(CRIError, match="not found"):
            await status(runtime, id)
        assert machine.run("sh", "-c", f"mount | grep {sandbox} || true") == ""
        assert machine.cgroups(sandbox, id) == []
        assert list((machine.folder / "lib/containers").iterdir()) == []
        assert list((machine.folder / "lib/images/containers").iterdir()) == []
        assert list((machine.state / "exits").iterdir()) == []


async def test_ends_are_reported_with_their_codes_and_reasons(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        cases = [
            ("exit 0", 0, "Completed"),
            ("exit 42", 42, "Error"),
            ("sh -c 'kill -9 $$'", 137, "Error"),
        ]
        for number, (script, code, reason) in enumerate(cases):
            id = await cri_pods.start(runtime, config, sandbox, "sh", "-c", script, attempt=number)
            found = await ended(runtime, id)
            assert (found.exit_code, found.reason) == (code, reason), script
            assert found.created_at <= found.started_at <= found.finished_at
        await cri_pods.remove(runtime, sandbox)


async def test_what_cannot_be_run_is_a_start_error_that_names_it(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        for number, (program, complaint) in enumerate(
            [
                ("/nope", 'exec: "/nope": stat /nope: no such file or directory'),
                ("nope", 'exec: "nope": executable file not found in $PATH'),
                ("/etc", 'exec: "/etc": is a directory'),
            ]
        ):
            with pytest.raises(CRIError) as refused:
                await cri_pods.start(runtime, config, sandbox, program, attempt=number)
            assert complaint in refused.value.message
        listed = await runtime.list_containers(
            cri.ListContainersRequest(filter=cri.ContainerFilter(pod_sandbox_id=sandbox))
        )
        found = await status(runtime, listed.containers[0].id)
        assert (found.state, found.exit_code, found.reason) == (cri.CONTAINER_EXITED, 128, "StartError")
        await cri_pods.remove(runtime, sandbox)


def _memory(machine: EmbeddedMachine) -> int:
    """Bytes that the runtime has in memory."""
    pid = machine.run("sh", "-c", f"pgrep -of 'runtime --root {machine.folder}/lib'").split()[0]
    found = machine.run("sh", "-c", f"grep VmRSS /proc/{pid}/status").split()
    return int(found[1]) << 10


async def test_a_probe_that_writes_without_end_leaves_neither_process_nor_memory(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=ALONE)

        async def probe() -> None:
            with pytest.raises(CRIError, match="timeout 1s exceeded"):
                await execute(runtime, id, "cat", "/dev/zero", limit=1)

        await probe()
        before = _memory(machine)
        for _ in range(3):
            await probe()
        assert _memory(machine) - before < 12 << 20
        async with asyncio.timeout(30):
            while b"/dev/zero" in (await execute(runtime, id, "ps")).stdout:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await cri_pods.remove(runtime, sandbox)


async def test_a_container_is_asked_to_stop_and_killed_after_its_grace(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 1000 & wait; done"
        polite = await cri_pods.start(runtime, config, sandbox, "sh", "-c", script)
        await until_logged(config, "stdout F ready")
        await runtime.stop_container(cri.StopContainerRequest(container_id=polite, timeout=20))
        assert (await status(runtime, polite)).exit_code == 5
        assert log_lines(config)[-1] == "stdout F bye"
        deaf = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", attempt=1, linux=ALONE)
        assert (await execute(runtime, deaf, "ps")).stdout.count(b"sleep 1000") == 1
        begun = asyncio.get_running_loop().time()
        await runtime.stop_container(cri.StopContainerRequest(container_id=deaf, timeout=1))
        assert asyncio.get_running_loop().time() - begun > 0.9
        assert (await status(runtime, deaf)).exit_code == 137
        await runtime.stop_container(cri.StopContainerRequest(container_id=deaf, timeout=1))
        await runtime.stop_container(cri.StopContainerRequest(container_id="none", timeout=1))
        await cri_pods.remove(runtime, sandbox)


async def test_one_that_takes_too_much_memory_is_reported_as_oom_killed(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        limits = cri.LinuxContainerConfig(
            resources=cri.LinuxContainerResources(memory_limit_in_bytes=16 << 20, cpu_shares=100)
        )
        id = await cri_pods.start(runtime, config, sandbox, "sh", "-c", "exec tail /dev/zero", linux=limits)
        found = await ended(runtime, id)
        assert (found.exit_code, found.reason) == (137, "OOMKilled")
        await cri_pods.remove(runtime, sandbox)


async def test_limits_can_be_changed_while_it_runs(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        limits = cri.LinuxContainerConfig(resources=cri.LinuxContainerResources(memory_limit_in_bytes=64 << 20))
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=limits)
        wanted = cri.LinuxContainerResources(memory_limit_in_bytes=32 << 20, cpu_quota=20000, cpu_period=100000)
        await runtime.update_container_resources(cri.UpdateContainerResourcesRequest(container_id=id, linux=wanted))
        shown = await execute(runtime, id, "cat", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
        assert shown.stdout == b"33554432\n"
        assert (await status(runtime, id)).resources.linux.cpu_quota == 20000
        stats = await runtime.container_stats(cri.ContainerStatsRequest(container_id=id))
        assert stats.stats.memory.available_bytes.value < 32 << 20
        assert stats.stats.cpu.usage_core_nano_seconds.value > 0
        await cri_pods.remove(runtime, sandbox)


async def test_a_command_that_takes_too_long_is_ended(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000")
        with pytest.raises(CRIError, match="timeout 1s exceeded") as refused:
            await execute(runtime, id, "sleep", "500", limit=1)
        assert refused.value.code == "DeadlineExceeded"
        assert b"sleep 500" not in (await execute(runtime, id, "ps")).stdout
        with pytest.raises(CRIError, match="executable file not found"):
            await execute(runtime, id, "nope")
        # A child that keeps the output open does not hold the answer.
        assert (await execute(runtime, id, "sh", "-c", "sleep 300 & echo done")).stdout == b"done\n"
        big = await execute(runtime, id, "sh", "-c", "head -c 3000000 /dev/zero")
        assert len(big.stdout) == 3_000_000
        await cri_pods.remove(runtime, sandbox)


async def test_a_log_is_written_to_a_new_file_when_it_was_moved_away(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        script = "head -c 20000 /dev/zero | tr '\\0' x; echo; exec sleep 1000"
        id = await cri_pods.start(runtime, config, sandbox, "sh", "-c", script, linux=ALONE)
        lines = await until_logged(config, "stdout F " + "x" * (20000 - 16384))
        assert lines == ["stdout P " + "x" * 16384, "stdout F " + "x" * (20000 - 16384)]
        path = machine.folder / "logs" / config.metadata.uid / "main.log"
        path.rename(path.with_name("old.log"))
        await runtime.reopen_container_log(cri.ReopenContainerLogRequest(container_id=id))
        wrote = await execute(runtime, id, "sh", "-c", "echo more > /proc/1/fd/1; printf end > /proc/1/fd/1")
        assert wrote.exit_code == 0, wrote
        assert "stdout F more" in await until_logged(config, "stdout F more")
        await runtime.stop_container(cri.StopContainerRequest(container_id=id, timeout=0))
        assert log_lines(config) == ["stdout F more", "stdout P end"]  # a line without an end is a part
        await cri_pods.remove(runtime, sandbox)


async def until_logged(config: Any, line: str) -> list[str]:
    async with asyncio.timeout(60):
        while True:
            try:
                found = log_lines(config)
            except FileNotFoundError:
                found = []
            if line in found:
                return found
            await asyncio.sleep(0.01)


async def test_pods_and_their_ends_survive_a_killed_runtime(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        runs = await cri_pods.start(runtime, config, sandbox, "sh", "-c", "echo begun; exec sleep 1000")
        script = "while [ ! -e /tmp/go ]; do sleep 0.05; done; echo late; exit 9"
        other, other_sandbox = await cri_pods.run(runtime, machine)
        ends = await cri_pods.start(runtime, other, other_sandbox, "sh", "-c", script)
        pid = (await runtime.container_status(cri.ContainerStatusRequest(container_id=ends, verbose=True))).info["pid"]
    machine.kill_runtime()
    machine.run("touch", f"/proc/{pid}/root/tmp/go")
    await until_logged(other, "stdout F late")
    await asyncio.to_thread(machine.start_runtime)
    async with machine.runtime() as runtime:
        assert (await status(runtime, runs)).state == cri.CONTAINER_RUNNING
        assert (await execute(runtime, runs, "echo", "still")).stdout == b"still\n"
        found = await ended(runtime, ends)
        assert (found.exit_code, found.reason) == (9, "Error")
        network = await runtime.pod_sandbox_status(cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox))
        assert network.status.state == cri.SANDBOX_READY
        assert network.status.network.ip
        await runtime.stop_container(cri.StopContainerRequest(container_id=runs, timeout=0))
        assert (await status(runtime, runs)).exit_code == 137
        await cri_pods.remove(runtime, sandbox)
        await cri_pods.remove(runtime, other_sandbox)
        assert not (await runtime.list_pod_sandbox()).items
        assert not (await runtime.list_containers()).containers


async def test_changes_are_reported_as_they_happen(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        seen: list[int] = []
        done = asyncio.Event()

        async def listen() -> None:
            async for event in runtime.get_container_events():
                seen.append(event.container_event_type)
                if seen.count(cri.CONTAINER_DELETED_EVENT) == 2:
                    done.set()

        listening = asyncio.create_task(listen())
        await asyncio.sleep(0.1)  # an open stream says nothing before the first event
        await runtime.version()  # who answers this has come to what was asked before it
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.start(runtime, config, sandbox, "true")
        await ended(runtime, id)
        await cri_pods.remove(runtime, sandbox)
        await asyncio.wait_for(done.wait(), 60)
        listening.cancel()
        assert sorted(seen) == sorted(
            2
            * [
                cri.CONTAINER_CREATED_EVENT,
                cri.CONTAINER_STARTED_EVENT,
                cri.CONTAINER_STOPPED_EVENT,
                cri.CONTAINER_DELETED_EVENT,
            ]
        )


async def test_when_the_launcher_is_killed_its_containers_end_and_new_ones_can_be_started(
    machine: EmbeddedMachine,
) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=ALONE)
        (launcher,) = machine.run("pgrep", "-o", "-f", f"main.sys.argv.1.. {machine.state}").split()
        machine.run("kill", "-9", launcher)
        found = await ended(runtime, id)
        assert (found.exit_code, found.reason) == (255, "Unknown")
        listed = await runtime.pod_sandbox_status(cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox))
        assert listed.status.state == cri.SANDBOX_NOTREADY
        await cri_pods.remove(runtime, sandbox)
        async with asyncio.timeout(60):
            while True:
                try:
                    config, sandbox = await cri_pods.run(runtime, machine)
                    break
                except CRIError as error:  # who asks in that very moment asks again, as a kubelet does
                    if "the launcher is gone" not in str(error):
                        raise
        id = await cri_pods.start(runtime, config, sandbox, "true")
        assert (await ended(runtime, id)).exit_code == 0
        await cri_pods.remove(runtime, sandbox)
        assert machine.run("sh", "-c", f"mount | grep {sandbox} || true") == ""
