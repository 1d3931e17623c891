"""Container runtimes by CRI, without a kubelet: a pod's whole life, errors, events."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from node.cri_pods import remove, run, start
from node.machine import BUSYBOX, Machine
from node.runtimes import only

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.events import ContainerEvent, EventType, container_events
from pybernetes.cri.remote import Runtime

NAMES = {"containerd": "containerd", "embedded": "pybernetes"}
"""What each says that it is."""


async def test_a_pods_whole_life(machine: Machine, runtime_name: str) -> None:
    async with machine.runtime() as runtime:
        version = await runtime.version()
        assert (version.runtime_name, version.runtime_api_version) == (NAMES[runtime_name], "v1")
        status = await runtime.status()
        assert {each.type: each.status for each in status.status.conditions} == {
            "RuntimeReady": True,
            "NetworkReady": True,
        }
        config, sandbox = await run(runtime, machine)
        state = (await runtime.pod_sandbox_status(cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox))).status
        assert state.state == cri.SANDBOX_READY
        assert state.network.ip.startswith("10.200.0.")
        container = await start(
            runtime, config, sandbox, "sh", "-c", "trap 'exit 3' TERM; echo hello; while :; do sleep 0.01; done"
        )
        done = await runtime.exec_sync(
            cri.ExecSyncRequest(container_id=container, cmd=["sh", "-c", "echo out; echo err >&2; exit 7"], timeout=60)
        )
        assert (done.stdout, done.stderr, done.exit_code) == (b"out\n", b"err\n", 7)
        await runtime.stop_container(cri.StopContainerRequest(container_id=container, timeout=10))
        ended = (await runtime.container_status(cri.ContainerStatusRequest(container_id=container))).status
        assert (ended.state, ended.exit_code) == (cri.CONTAINER_EXITED, 3)
        assert (Path(config.log_directory) / "main.log").read_text().endswith("stdout F hello\n")
        await remove(runtime, sandbox)
        with pytest.raises(CRIError) as gone:
            await runtime.pod_sandbox_status(cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox))
        assert gone.value.not_found


async def test_errors_read_as_upstreams_kubelet_prints_them(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        with pytest.raises(CRIError) as error:
            await runtime.pull_image(cri.PullImageRequest(image=cri.ImageSpec(image="Not A Name")))
        words = r"rpc error: code = (Unknown|InvalidArgument) desc = failed to parse image reference.*"
        assert re.fullmatch(words, str(error.value))


async def test_a_runtime_that_is_away_is_unavailable_at_once(tmp_path: Path) -> None:
    async with Runtime(tmp_path / "none.sock") as runtime:
        with pytest.raises(CRIError) as error:
            await asyncio.wait_for(runtime.version(), 30)
    assert error.value.code == "Unavailable"


async def test_events_come_when_cri_tells_the_same(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        events = container_events(runtime)
        assert await anext(events) == ContainerEvent(EventType.RESYNC)
        config, sandbox = await run(runtime, machine)
        uid = config.metadata.uid
        for number in range(5):
            container = await start(runtime, config, sandbox, "sh", "-c", f"exit {number}")
            async with asyncio.timeout(30):
                async for event in events:
                    if event == ContainerEvent(EventType.STOPPED, container, uid):
                        break
            ended = (await runtime.container_status(cri.ContainerStatusRequest(container_id=container))).status
            assert (ended.state, ended.exit_code) == (cri.CONTAINER_EXITED, number)
            await runtime.remove_container(cri.RemoveContainerRequest(container_id=container))
        await remove(runtime, sandbox)
        seen = set()
        async with asyncio.timeout(30):
            async for event in events:
                seen.add(event)
                if event == ContainerEvent(EventType.DELETED, sandbox, uid):
                    break
        assert ContainerEvent(EventType.STOPPED, sandbox, uid) in seen


async def test_a_command_that_ends_in_a_container_is_no_event(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await run(runtime, machine)
        container = await start(runtime, config, sandbox, "sleep", "1000")
        events = container_events(runtime)
        assert await anext(events) == ContainerEvent(EventType.RESYNC)
        await runtime.exec_sync(cri.ExecSyncRequest(container_id=container, cmd=["true"], timeout=60))
        await runtime.stop_container(cri.StopContainerRequest(container_id=container, timeout=0))
        async with asyncio.timeout(30):
            assert await anext(events) == ContainerEvent(EventType.STOPPED, container, config.metadata.uid)
        await remove(runtime, sandbox)


@only("containerd")  # CRI has no such event: it is one of containerd's own
async def test_the_kernel_killing_a_process_for_memory_is_an_event(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        events = container_events(runtime)
        assert await anext(events) == ContainerEvent(EventType.RESYNC)
        config, sandbox = await run(runtime, machine)
        limits = cri.LinuxContainerConfig(resources=cri.LinuxContainerResources(memory_limit_in_bytes=16 << 20))
        eat = "x=a; while :; do x=$x$x; done"
        created = await runtime.create_container(
            cri.CreateContainerRequest(
                pod_sandbox_id=sandbox,
                config=cri.ContainerConfig(
                    metadata=cri.ContainerMetadata(name="main"),
                    image=cri.ImageSpec(image=BUSYBOX),
                    command=["sh", "-c", eat],
                    log_path="main.log",
                    linux=limits,
                ),
                sandbox_config=config,
            )
        )
        await runtime.start_container(cri.StartContainerRequest(container_id=created.container_id))
        async with asyncio.timeout(30):
            async for event in events:
                if (event.type, event.container_id) == (EventType.OOM, created.container_id):
                    break
        status = (await runtime.container_status(cri.ContainerStatusRequest(container_id=created.container_id))).status
        assert status.reason == "OOMKilled"
        await remove(runtime, sandbox)


async def test_events_go_on_after_a_restart_of_the_runtime(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await run(runtime, machine)
        container = await start(runtime, config, sandbox, "sleep", "1000")
        events = container_events(runtime)
        assert await anext(events) == ContainerEvent(EventType.RESYNC)
        machine.kill_runtime()
        await asyncio.to_thread(machine.start_runtime)
        async with asyncio.timeout(30):
            for _ in range(2):  # it is lost, and it is back
                while (await anext(events)).type is not EventType.RESYNC:
                    pass
        listed = await runtime.list_containers()
        assert {each.id: each.state for each in listed.containers}[container] == cri.CONTAINER_RUNNING
        await runtime.stop_container(cri.StopContainerRequest(container_id=container, timeout=0))
        async with asyncio.timeout(30):
            while await anext(events) != ContainerEvent(EventType.STOPPED, container, config.metadata.uid):
                pass
        await remove(runtime, sandbox)


async def test_a_containers_end_is_reported_before_its_removal_and_each_once(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        events = container_events(runtime)
        assert await anext(events) == ContainerEvent(EventType.RESYNC)
        config, sandbox = await run(runtime, machine)
        ids = [await start(runtime, config, sandbox, "true", attempt=number) for number in range(3)]
        await remove(runtime, sandbox)
        told: dict[str, list[EventType]] = {}
        async with asyncio.timeout(30):
            async for event in events:
                told.setdefault(event.container_id, []).append(event.type)
                if all(EventType.DELETED in told.get(id, ()) for id in (*ids, sandbox)):
                    break
        whole = [EventType.STOPPED, EventType.DELETED]
        for id in (*ids, sandbox):
            assert [each for each in told[id] if each in whole] == whole


async def test_a_name_is_given_once_and_free_again_when_its_container_is_gone(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await run(runtime, machine)
        first = await start(runtime, config, sandbox, "sleep", "1000")
        pod = config.metadata
        name = f"main_{pod.name}_{pod.namespace}_{pod.uid}_0"
        with pytest.raises(CRIError, match=f'failed to reserve container name "{name}": .* is reserved for "{first}"'):
            await start(runtime, config, sandbox, "sleep", "1000")
        with pytest.raises(CRIError, match=f'is reserved for "{sandbox}"'):
            await runtime.run_pod_sandbox(cri.RunPodSandboxRequest(config=config))
        await runtime.remove_container(cri.RemoveContainerRequest(container_id=first))
        assert await start(runtime, config, sandbox, "true") != first
        await remove(runtime, sandbox)
        again = (await runtime.run_pod_sandbox(cri.RunPodSandboxRequest(config=config))).pod_sandbox_id
        await remove(runtime, again)


@only("embedded")  # containerd may cut a line in two
async def test_no_line_is_lost_when_a_busy_log_is_moved_away_again_and_again(machine: Machine) -> None:
    lines = 20_000
    async with machine.runtime() as runtime:
        config, sandbox = await run(runtime, machine)
        container = await start(runtime, config, sandbox, "sh", "-c", f"sleep 0.2; seq {lines}; sleep 1000")
        path = Path(config.log_directory) / "main.log"

        def written() -> list[str]:
            files = sorted(path.parent.iterdir(), key=lambda each: (each == path, each.name))
            return [line.split(" ", 3)[3] for file in files for line in file.read_text().splitlines()]

        async with asyncio.timeout(60):
            pieces = 0
            while pieces < 8 or len(written()) < lines:
                await asyncio.sleep(0.03)
                if pieces < 8 and path.exists() and path.stat().st_size:
                    path.rename(path.with_name(f"{pieces:02}.log"))
                    await runtime.reopen_container_log(cri.ReopenContainerLogRequest(container_id=container))
                    pieces += 1
                elif pieces and len(written()) >= lines:
                    break
        assert written() == [str(number) for number in range(1, lines + 1)]
        await remove(runtime, sandbox)


async def test_a_container_may_be_removed_by_force_while_another_waits_for_its_end(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await run(runtime, machine)
        deaf = await start(runtime, config, sandbox, "sh", "-c", "trap '' TERM; while :; do sleep 0.05; done")
        request = cri.StopContainerRequest(container_id=deaf, timeout=60)
        stopping = [asyncio.create_task(runtime.stop_container(request)) for _ in range(3)]
        await asyncio.sleep(0.1)  # all of them wait
        async with asyncio.timeout(30):
            await runtime.stop_container(cri.StopContainerRequest(container_id=deaf, timeout=0))
            await asyncio.gather(*stopping)
            await runtime.remove_container(cri.RemoveContainerRequest(container_id=deaf))
        await remove(runtime, sandbox)
