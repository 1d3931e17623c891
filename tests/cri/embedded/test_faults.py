"""What goes wrong around the embedded runtime: lost connections, callers that go, ends in the wrong moment."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from cri.embedded.machine import EmbeddedMachine
from cri.embedded.test_containers import ALONE, ended, execute, status
from node import cri_pods, leaks

from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded import propagation
from pybernetes.cri.embedded.launcher import PROTOCOL
from pybernetes.cri.embedded.launching import LauncherError
from pybernetes.cri.embedded.logs import LogFile
from pybernetes.cri.embedded.server import RELAUNCH, EmbeddedRuntime, Settings
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime


def launcher(machine: EmbeddedMachine) -> int:
    """The launcher's pid, as this side of the machine's namespaces counts."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace")
            if "cri.embedded.launcher" in words and str(machine.state) in words:
                return int(path.parent.name)
    raise AssertionError("no launcher")


def descriptors(machine: EmbeddedMachine) -> int:
    return len(os.listdir(f"/proc/{launcher(machine)}/fd"))


async def until(condition: Any, within: float = 60.0) -> None:
    async with asyncio.timeout(within):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.02)


async def test_a_sandbox_starts_in_a_cgroup_whose_maker_was_killed_before_it_had_any_cpu(
    machine: EmbeddedMachine,
) -> None:
    config = cri_pods.sandbox_config(machine)
    for folder in leaks.cgroup_folders(machine.cgroup):
        (folder / config.linux.cgroup_parent.strip("/")).mkdir(parents=True)
    async with machine.runtime() as runtime:
        answer = await runtime.run_pod_sandbox(cri.RunPodSandboxRequest(config=config))
        await cri_pods.start(runtime, config, answer.pod_sandbox_id, "sleep", "1000", linux=ALONE)
        await cri_pods.remove(runtime, answer.pod_sandbox_id)


async def test_a_launcher_that_hung_up_and_lives_is_found_again_and_no_pod_notices(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=ALONE)
        short = await cri_pods.start(runtime, config, sandbox, "sh", "-c", "sleep 0.2; exit 7", attempt=1, linux=ALONE)
        before = launcher(machine)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
            other.connect(str(machine.state / "launcher.sock"))  # it has time for one runtime, the newest

            async def answers() -> bool:
                with contextlib.suppress(CRIError):
                    return bool((await execute(runtime, id, "echo", "on")).stdout == b"on\n")
                return False

            await until(answers)
        assert launcher(machine) == before
        assert (await status(runtime, id)).state == cri.CONTAINER_RUNNING
        found = await ended(runtime, short)
        assert (found.exit_code, found.reason) == (7, "Error")
        await cri_pods.remove(runtime, sandbox)


class FlakyLauncher:
    """A launcher without processes that hangs up instead of answering, as often as configured."""

    def __init__(self, state: Path) -> None:
        self.hang_ups = 0
        self.connections = 0
        self._now: socket.socket | None = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(state / "launcher.sock"))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            self.connections += 1
            if self._now is not None:
                self.hang_up()
            self._now = connection
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                if self.hang_ups:
                    self.hang_ups -= 1
                    return
                answer = {"id": json.loads(data)["id"], "version": PROTOCOL, "processes": {}}
                connection.send(json.dumps(answer).encode())

    def hang_up(self) -> None:
        assert self._now is not None
        with contextlib.suppress(OSError):  # it was closed before
            self._now.shutdown(socket.SHUT_RDWR)


async def test_a_launcher_that_is_lost_again_while_it_is_asked_what_runs_is_heard_of_ever_after(tmp_path: Path) -> None:
    folders = {"root": tmp_path / "lib", "state": tmp_path / "run", "images": tmp_path, "cni_conf_dir": tmp_path}
    folders["state"].mkdir()
    flaky = FlakyLauncher(folders["state"])
    runtime = EmbeddedRuntime(Settings(**folders, cni_bin_dirs=(), cgroups=False))
    await runtime.recover()

    async def answers() -> bool:
        with contextlib.suppress(LauncherError):
            return await runtime.launching.running() == {}
        return False

    for _ in range(3):
        flaky.hang_ups = 1
        before = flaky.connections
        flaky.hang_up()

        async def again(before: int = before) -> bool:
            return flaky.connections >= before + 2

        await until(again)
        await asyncio.sleep(RELAUNCH + 0.1)  # not a wait for an event: others have connected by now
        await until(answers)
    await runtime.close()


async def test_launchers_that_are_killed_as_soon_as_they_start_leave_a_runtime_that_starts_pods(
    machine: EmbeddedMachine,
) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=ALONE)
        for pause in [0.0, 0.05, 0.1, 0.2, 0.0, 0.01, 0.02, 0.3] * 2:
            killed: set[int] = set()

            async def kill(killed: set[int] = killed) -> bool:
                with contextlib.suppress(AssertionError, ProcessLookupError):
                    pid = launcher(machine)
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
                return bool(killed)

            await until(kill)
            await asyncio.sleep(pause)  # what is tried is each moment of its start
        await cri_pods.remove(runtime, sandbox)

        async def starts() -> bool:
            with contextlib.suppress(CRIError):
                config, sandbox = await cri_pods.run(runtime, machine)
                id = await cri_pods.start(runtime, config, sandbox, "true")
                assert (await ended(runtime, id)).exit_code == 0
                await cri_pods.remove(runtime, sandbox)
                return True
            return False

        await until(starts)


async def test_a_command_ends_when_who_asked_for_it_has_gone(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=ALONE)
        asking = asyncio.create_task(execute(runtime, id, "sleep", "777", limit=0))

        async def runs() -> bool:
            return b"sleep 777" in (await execute(runtime, id, "ps")).stdout

        async def has_gone() -> bool:
            return not await runs()

        await until(runs)
        asking.cancel()
        await until(has_gone)
        await cri_pods.remove(runtime, sandbox)


async def test_commands_in_a_container_that_is_just_ending_fail_and_leave_nothing(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        await _ask_while_ending(runtime, config, sandbox, 0)
        before = descriptors(machine)
        for attempt in range(1, 6):
            await _ask_while_ending(runtime, config, sandbox, attempt)
        assert descriptors(machine) <= before
        await cri_pods.remove(runtime, sandbox)


async def _ask_while_ending(runtime: Runtime, config: Any, sandbox: str, attempt: int) -> None:
    id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", attempt=attempt, linux=ALONE)
    asking = [asyncio.create_task(execute(runtime, id, "true")) for _ in range(20)]
    await runtime.stop_container(cri.StopContainerRequest(container_id=id, timeout=0))
    for each in await asyncio.gather(*asking, return_exceptions=True):
        # 137: it was killed with the container.
        assert isinstance(each, CRIError) or each.exit_code in (0, 137), each
    with pytest.raises(CRIError, match="is not running"):
        await execute(runtime, id, "true")


async def test_a_container_that_cannot_join_its_targets_processes_leaves_nothing(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        target = await cri_pods.start(runtime, config, sandbox, "true", linux=ALONE)
        await ended(runtime, target)
        options = cri.NamespaceOption(pid=cri.TARGET, target_id=target)
        joined = cri.LinuxContainerConfig(security_context=cri.LinuxContainerSecurityContext(namespace_options=options))
        before = descriptors(machine)
        for attempt in range(1, 4):
            with pytest.raises(CRIError, match=f"container {target} does not run"):
                await cri_pods.start(runtime, config, sandbox, "true", attempt=attempt, linux=joined)
        assert descriptors(machine) <= before
        await cri_pods.remove(runtime, sandbox)


async def test_a_sandbox_is_stopped_and_removed_by_several_at_once(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        for _ in range(3):
            config, sandbox = await cri_pods.run(runtime, machine)
            await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=ALONE)
            stop, remove = cri.StopPodSandboxRequest, cri.RemovePodSandboxRequest
            await asyncio.gather(
                *(runtime.remove_pod_sandbox(remove(pod_sandbox_id=sandbox)) for _ in range(2)),
                *(runtime.stop_pod_sandbox(stop(pod_sandbox_id=sandbox)) for _ in range(3)),
            )


async def test_an_end_that_cannot_be_written_down_is_reported_and_not_lost(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.start(runtime, config, sandbox, "sh", "-c", "sleep 0.5; exit 9", linux=ALONE)
        records = machine.folder / "lib/containers" / id
        (records / "state.json").rename(records / "saved")
        (records / "state.json").mkdir()  # as good as a full disk
        assert (await ended(runtime, id)).exit_code == 9
        (records / "state.json").rmdir()
        (records / "saved").rename(records / "state.json")
        await asyncio.to_thread(machine.kill_runtime)
        await asyncio.to_thread(machine.start_runtime)
        found = await ended(runtime, id)
        assert (found.exit_code, found.reason) == (9, "Error")
        await cri_pods.remove(runtime, sandbox)


async def test_a_container_is_removed_while_it_starts(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        for attempt in range(5):
            wanted = cri.ContainerConfig(
                metadata=cri.ContainerMetadata(name="main", attempt=attempt),
                image=cri.ImageSpec(image="busybox"),
                command=["sleep", "1000"],
                linux=ALONE,
            )
            request = cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=wanted, sandbox_config=config)
            id = (await runtime.create_container(request)).container_id
            starting = asyncio.create_task(runtime.start_container(cri.StartContainerRequest(container_id=id)))
            await asyncio.sleep(0.001 * attempt)  # another moment each time
            await runtime.remove_container(cri.RemoveContainerRequest(container_id=id))
            await asyncio.gather(starting, return_exceptions=True)
            listed = (await runtime.list_containers()).containers
            assert id not in {each.id for each in listed}
            assert machine.cgroups(id) == []
        await cri_pods.remove(runtime, sandbox)


async def test_processes_in_cgroups_that_a_container_made_itself_end_with_it(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config = cri_pods.sandbox_config(machine)
        config.linux.security_context.privileged = True
        config.linux.security_context.namespace_options.pid = cri.POD
        request = cri.RunPodSandboxRequest(config=config)
        sandbox = (await runtime.run_pod_sandbox(request)).pod_sandbox_id
        context = cri.LinuxContainerSecurityContext(privileged=True, namespace_options=cri.NamespaceOption(pid=cri.POD))
        script = (
            "cd /sys/fs/cgroup; [ -d pids ] && cd pids; mkdir mine; (echo 0 > mine/cgroup.procs; exec sleep 888) &"
            "until [ -s mine/cgroup.procs ]; do sleep 0.01; done; echo ready; exec sleep 1000"
        )
        linux = cri.LinuxContainerConfig(security_context=context)
        id = await cri_pods.start(runtime, config, sandbox, "sh", "-c", script, linux=linux)

        async def ready() -> bool:
            return b"sleep 888" in (await execute(runtime, id, "ps")).stdout

        await until(ready)
        await runtime.stop_container(cri.StopContainerRequest(container_id=id, timeout=0))
        await runtime.remove_container(cri.RemoveContainerRequest(container_id=id))
        other = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", attempt=1, linux=linux)
        assert b"sleep 888" not in (await execute(runtime, other, "ps")).stdout
        await cri_pods.remove(runtime, sandbox)


def test_a_log_that_cannot_be_opened_again_goes_on_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "pod"
    log = LogFile(str(folder / "0.log"))
    folder.rename(tmp_path / "moved")
    folder.write_text("in the way")
    with pytest.raises(OSError, match="Not a directory"):
        log.reopen()
    log.write(b"line\n")
    log.close()
    assert (tmp_path / "moved/0.log").read_bytes() == b"line\n"


MOUNTINFO = """\
1 0 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
2 1 8:2 / /private rw - ext4 /dev/sdb1 rw
3 1 8:3 / /slave rw master:1 - ext4 /dev/sdc1 rw
4 1 8:4 / /with\\040space rw - ext4 /dev/sdd1 rw
5 2 8:5 / /private/over rw - ext4 /dev/sde1 rw
6 5 8:6 / /private/over rw shared:9 - ext4 /dev/sde1 rw
"""
SHARED = 'path "{0}" is mounted on "{1}" but it is not a shared mount'
EITHER = 'path "{0}" is mounted on "{1}" but it is not a shared or slave mount'


@pytest.mark.parametrize(
    ("path", "kind", "refusal"),
    [
        ("/data", cri.PROPAGATION_BIDIRECTIONAL, ""),
        ("/privately", cri.PROPAGATION_BIDIRECTIONAL, ""),
        ("/private/data", cri.PROPAGATION_PRIVATE, ""),
        ("/private/data", cri.PROPAGATION_BIDIRECTIONAL, SHARED.format("/private/data", "/private")),
        ("/private", cri.PROPAGATION_HOST_TO_CONTAINER, EITHER.format("/private", "/private")),
        ("/slave/a", cri.PROPAGATION_HOST_TO_CONTAINER, ""),
        ("/slave/a", cri.PROPAGATION_BIDIRECTIONAL, SHARED.format("/slave/a", "/slave")),
        ("/with space/a", cri.PROPAGATION_HOST_TO_CONTAINER, EITHER.format("/with space/a", "/with space")),
        ("/private/over/a", cri.PROPAGATION_BIDIRECTIONAL, ""),
    ],
)
def test_mounts_that_could_not_pass_are_refused(path: str, kind: int, refusal: str, tmp_path: Path) -> None:
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(MOUNTINFO)
    if not refusal:
        propagation.check(path, kind, mountinfo)
        return
    with pytest.raises(CRIError) as refused:
        propagation.check(path, kind, mountinfo)
    assert refused.value.message == refusal


async def test_what_was_made_for_a_caller_that_hung_up_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = EmbeddedRuntime(
        Settings(tmp_path / "root", tmp_path / "state", tmp_path / "cni", cni_bin_dirs=(), cgroups=False)
    )
    begun, go, removed = asyncio.Event(), asyncio.Event(), asyncio.Queue[str]()

    async def make(*_: object) -> str:
        begun.set()
        await go.wait()
        return "made"

    monkeypatch.setattr(runtime.sandboxes, "run", make)
    monkeypatch.setattr(runtime.sandboxes, "remove", removed.put)
    monkeypatch.setattr(runtime.containers, "create", make)
    monkeypatch.setattr(runtime.containers, "remove", removed.put)
    for call, request in (
        (runtime.run_pod_sandbox, cri.RunPodSandboxRequest()),
        (runtime.create_container, cri.CreateContainerRequest()),
    ):
        begun.clear()
        go.clear()
        caller = asyncio.create_task(call(request))
        await begun.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert removed.empty()
        go.set()
        assert await asyncio.wait_for(removed.get(), 30.0) == "made"
