"""The launcher: who may enter what it starts, and its processes when it or the runtime is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cri.embedded.machine import EmbeddedMachine
from cri.embedded.test_containers import ALONE, ended, execute, status
from cri.embedded.test_faults import launcher, until
from damage import DAMAGES, damage
from node import cri_pods

from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded.launcher import READY, Launcher
from pybernetes.cri.embedded.launching import LauncherError, Launching
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime


@contextlib.asynccontextmanager
async def held_at_its_start(machine: EmbeddedMachine, runtime: Runtime, id: str) -> AsyncIterator[None]:
    """A container is being started, but its process gets no further than into its cgroup, until this is left."""
    (folder,) = [each for each in machine.cgroups(id) if each.startswith("/sys/fs/cgroup/freezer/")]
    state = f"{folder}/freezer.state"
    machine.run("sh", "-c", f"echo FROZEN > {state}")
    starting = asyncio.create_task(runtime.start_container(cri.StartContainerRequest(container_id=id)))
    try:

        async def entered() -> bool:
            return bool(machine.run("cat", f"{folder}/tasks"))

        await until(entered)
        yield
    finally:
        starting.cancel()
        machine.run("sh", "-c", f"echo THAWED > {state}")


async def test_no_command_enters_a_container_whose_program_does_not_run_yet(machine: EmbeddedMachine) -> None:
    """Its process is still in the node's namespaces then: the command would see the node's files."""
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.create(runtime, config, sandbox, "sleep", "1000", linux=ALONE)
        async with held_at_its_start(machine, runtime, id):
            found = await status(runtime, id)
            assert (found.state, found.started_at) == (cri.CONTAINER_CREATED, 0)
            with pytest.raises(CRIError, match="is not running"):
                await execute(runtime, id, "ls", "/")
            await asyncio.to_thread(machine.kill_runtime)
            await asyncio.to_thread(machine.start_runtime)
            async with machine.runtime() as next_runtime:  # it cannot know how far the process is, but the launcher can
                with pytest.raises(CRIError, match=f"container {id} does not run"):
                    await execute(next_runtime, id, "ls", "/")

        async def works() -> bool:
            with contextlib.suppress(CRIError):
                return bool((await execute(runtime, id, "test", "-e", str(machine.folder))).exit_code == 1)
            return False

        await until(works)
        await cri_pods.remove(runtime, sandbox)


async def test_a_program_that_cannot_run_is_reported_though_its_runtime_was_killed_meanwhile(
    machine: EmbeddedMachine,
) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.create(runtime, config, sandbox, "/" + "x" * 100_000, linux=ALONE)
        async with held_at_its_start(machine, runtime, id):
            await asyncio.to_thread(machine.kill_runtime)
            await asyncio.to_thread(machine.start_runtime)
        found = await ended(runtime, id)
        assert (found.exit_code, found.reason) == (128, "StartError")
        assert found.message.startswith('exec: "/xxx')
        await cri_pods.remove(runtime, sandbox)


async def test_a_killed_launcher_takes_its_processes_along_even_if_no_runtime_is_there_to_see_it(
    machine: EmbeddedMachine,
) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        unprivileged = cri.LinuxContainerSecurityContext(run_as_user=cri.Int64Value(value=65534))
        for attempt, linux in enumerate((ALONE, cri.LinuxContainerConfig(security_context=unprivileged))):
            await cri_pods.start(runtime, config, sandbox, "sleep", "54321", attempt=attempt, linux=linux)
        assert machine.run("sh", "-c", "pgrep -f 'sleep 5432[1]' | wc -l").strip() == "2"
        parent = launcher(machine)
        await asyncio.to_thread(machine.kill_runtime)
        os.kill(parent, signal.SIGKILL)

        async def nothing_runs() -> bool:
            return machine.run("sh", "-c", "pgrep -f 'sleep 5432[1]|^/pause' | wc -l").strip() == "0"

        await until(nothing_runs)
    await asyncio.to_thread(machine.start_runtime)
    async with machine.runtime() as runtime:
        await cri_pods.remove(runtime, sandbox)


async def test_a_launcher_that_a_killed_runtime_had_begun_to_start_is_the_only_one(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=ALONE)
        before = launcher(machine)
        machine.run(*words(before), check=False)  # it ends
        assert launcher(machine) == before
        assert (await execute(runtime, id, "echo", "on")).stdout == b"on\n"
        await asyncio.to_thread(machine.kill_runtime)
    await asyncio.to_thread(machine.start_runtime)
    async with machine.runtime() as runtime:
        assert (await execute(runtime, id, "echo", "on")).stdout == b"on\n"
        await cri_pods.remove(runtime, sandbox)


def words(pid: int) -> list[str]:
    """A process's command."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]


async def test_programs_have_the_usual_signals(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=ALONE)
        for pid in ("1", "self"):
            found = (await execute(runtime, id, "grep", "SigIgn", f"/proc/{pid}/status")).stdout
            assert found.split() == [b"SigIgn:", b"0000000000000000"]
        await cri_pods.remove(runtime, sandbox)


MANY = """
import sys
from pybernetes.cri.embedded.launcher import Launcher, Process
launcher = Launcher(sys.argv[1])
launcher._processes = {f"{number:064}": Process("", number, 0) for number in range(1300)}
for _ in range(5):
    launcher._watching.wait()
"""


async def test_more_processes_than_fit_into_a_packet_are_all_found(tmp_path: Path) -> None:
    serving = await asyncio.create_subprocess_exec(sys.executable, "-c", MANY, str(tmp_path))
    launching = Launching(tmp_path, lambda _: None, lambda: None)

    async def connects() -> bool:
        with contextlib.suppress(OSError):
            launching._open()
            return True
        return False

    await until(connects)
    assert list(await launching.running()) == [f"{number:064}" for number in range(1300)]
    launching.close()
    assert await serving.wait() == 0


OLDER = """
import sys
from pybernetes.cri.embedded import launcher
if {version!r} is None:
    del launcher.Launcher._do_version
launcher.PROTOCOL = {version!r}
launcher.main({state!r})
"""


async def test_a_runtime_goes_on_with_the_launcher_of_an_earlier_version_as_far_as_it_can(tmp_path: Path) -> None:
    """Its pods run on; where the protocols differ nothing is started any more, and the last end replaces it."""
    program = tmp_path / "pause"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    spec = {"id": "a", "kind": "sandbox", "plain": True, "pid": ["node", ""], "rootfs": str(tmp_path)}
    for version, supported in ((None, True), (99, False)):
        state = tmp_path / str(version)
        state.mkdir()
        start = OLDER.format(version=version, state=str(state))
        serving = await asyncio.create_subprocess_exec(sys.executable, "-c", start, stdout=subprocess.PIPE)
        assert serving.stdout is not None
        assert await serving.stdout.read(len(READY)) == READY
        ended: list[str] = []
        launching = Launching(state, lambda end, names=ended: names.append(end["name"]), lambda: None)  # type: ignore[misc]
        await launching.connect()
        (state / "spec.json").write_text(json.dumps(spec))
        if supported:
            assert not launching.problem
            await launching.start(state / "spec.json")
        else:
            with pytest.raises(LauncherError, match="protocol version 99, this runtime supports 0, 1: no container"):
                await launching.start(state / "spec.json")
            await launching._ask({"do": "start", "spec": str(state / "spec.json")})  # as an earlier runtime did
        assert list(await launching.running()) == ["a"]
        assert await launching.signal("a", signal.SIGKILL)

        async def has_ended(names: list[str] = ended) -> bool:
            return names == ["a"]

        await until(has_ended)
        if not supported:

            async def replaced(launching: Launching = launching) -> bool:
                with contextlib.suppress(LauncherError, OSError):
                    await launching.replace()
                return not launching.problem

            await until(replaced)
            await launching.start(state / "spec.json")
            await launching.signal("a", signal.SIGKILL)
        launching.close()
        await serving.wait()


async def test_the_launcher_may_open_more_files_than_its_programs(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_text("#!/bin/sh\nulimit -Sn > $0.soft\nexec sleep 1000\n")
    program.chmod(0o755)
    start = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 2000)); from {} import main; main({!r})"
    )
    command = [sys.executable, "-c", start.format(Launcher.__module__, str(tmp_path))]
    serving = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert serving.stdout is not None
    assert await serving.stdout.read(len(READY)) == READY
    assert resource.prlimit(serving.pid, resource.RLIMIT_NOFILE) == (2000, 2000)
    launching = Launching(tmp_path, lambda _: None, lambda: None)
    await launching.connect()
    spec = tmp_path / "spec.json"
    spec.write_text(
        json.dumps({"id": "a", "kind": "sandbox", "plain": True, "pid": ["node", ""], "rootfs": str(tmp_path)})
    )
    await launching.start(spec)

    async def written() -> bool:
        return (tmp_path / "pause.soft").exists() and (tmp_path / "pause.soft").read_text() == "100\n"

    await until(written)
    await launching.signal("a", signal.SIGKILL)
    launching.close()
    await serving.wait()


async def test_an_end_that_was_half_written_when_a_launcher_was_killed_is_taken_away_by_the_next(
    tmp_path: Path,
) -> None:
    (tmp_path / "exits").mkdir()
    (tmp_path / "exits/.half").write_text('{"name": "ha')
    (tmp_path / "exits/whole").write_text('{"name": "whole", "code": 7, "at": 1}')
    launching = Launching(tmp_path, lambda _: None, lambda: None)
    await launching.connect()
    try:
        assert os.listdir(tmp_path / "exits") == ["whole"]
        assert launching.exits()["whole"]["code"] == 7
    finally:
        launching.close()


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_end_is_taken_away_and_the_others_are_read(tmp_path: Path, how: str) -> None:
    (tmp_path / "exits").mkdir()
    (tmp_path / "exits/whole").write_text('{"name": "whole", "code": 7, "at": 1}')
    damage(tmp_path / "exits/damaged", how)
    launching = Launching(tmp_path, lambda _: None, lambda: None)
    assert launching.exits() == {"whole": {"name": "whole", "code": 7, "at": 1}}
    assert os.listdir(tmp_path / "exits") == ["whole"]


POLL = ("7", "73", "271")
"""System calls of x86 and ARM with which Python waits for an answer: poll and ppoll."""


def seed_of(parent: int) -> int:
    """The process that a launcher's processes are forked from: its only child with the launcher's own command."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    command = Path(f"/proc/{parent}/cmdline").read_bytes()
    (found,) = [int(each) for each in children if Path(f"/proc/{each}/cmdline").read_bytes() == command]
    return found


async def test_a_launcher_whose_seed_is_killed_gets_another_one(machine: EmbeddedMachine) -> None:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        id = await cri_pods.start(runtime, config, sandbox, "sleep", "1000", linux=ALONE)
        parent = launcher(machine)
        os.kill(seed_of(parent), signal.SIGKILL)
        assert (await execute(runtime, id, "echo", "fine")).stdout == b"fine\n"
        seed = seed_of(parent)
        os.kill(seed, signal.SIGSTOP)
        asking = asyncio.create_task(execute(runtime, id, "true"))

        async def asked() -> bool:
            with open(f"/proc/{parent}/syscall") as file:  # noqa: ASYNC230 - of the kernel
                return file.read().split()[0] in POLL

        await until(asked)
        os.kill(seed, signal.SIGKILL)  # what it may have forked is not known: no other is forked in its place
        with pytest.raises(CRIError, match="forked from was killed"):
            await asking
        assert (await execute(runtime, id, "echo", "fine")).stdout == b"fine\n"
        await cri_pods.remove(runtime, sandbox)
