"""Ways out of a container that were tried and are shut: by mounts, /proc, devices, links, imports, and by force."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sysconfig
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cri.embedded.machine import EmbeddedMachine
from cri.embedded.test_containers import ended, execute, log_lines
from node import cri_pods

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.hidden import MASKED_PATHS, READONLY_PATHS
from pybernetes.cri.remote import Runtime

USUAL = {
    "seccomp": {"profile_type": 0},
    "masked_paths": MASKED_PATHS,
    "readonly_paths": READONLY_PATHS,
    "namespace_options": {"pid": cri.CONTAINER},
}


def linux(**resources: Any) -> Any:
    return cri.LinuxContainerConfig(security_context=USUAL, resources=resources)


def volume(machine: EmbeddedMachine, name: str) -> Path:
    made = machine.folder / "volumes" / name
    made.mkdir(parents=True)
    return made


@contextlib.asynccontextmanager
async def pod(machine: EmbeddedMachine) -> AsyncIterator[tuple[Runtime, Any, str]]:
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        try:
            yield runtime, config, sandbox
        finally:
            await cri_pods.remove(runtime, sandbox)


async def sleeper(runtime: Runtime, config: Any, sandbox: str, **more: Any) -> str:
    return await cri_pods.start(runtime, config, sandbox, "sleep", "1000", **({"linux": linux()} | more))


def core_pattern() -> str:
    """The node's core pattern: permission to write it is permission to run programs as the node's root."""
    return Path("/proc/sys/kernel/core_pattern").read_text()


REFUSED = ("not permitted", "permission denied", "read-only", "can't open", "no such file", "nonexistent")


FORBIDDEN = (
    "mount -t tmpfs none /mnt",
    "mount -o remount,rw /proc/sys",
    "mount -t proc none /tmp",
    "umount /proc/kcore",
    "umount -l /dev",
    "unshare -U true",
    "unshare -m true",
    "nsenter -t 1 -m true",
    "hostname other",
    "echo x > /proc/sys/kernel/core_pattern",
    "echo x > /proc/sysrq-trigger",
    "echo 1 > /proc/sys/net/ipv4/ip_forward",
    "echo +x > /sys/kernel/uevent_helper",
    "echo x > /sys/fs/cgroup/memory/release_agent || echo x > /sys/fs/cgroup/cgroup.procs",
    "mkdir /sys/fs/cgroup/memory/mine || mkdir /sys/fs/cgroup/mine",
    "cat /proc/1/root/proc/sysrq-trigger",
    "dd if=/dev/mem of=/dev/null bs=1 count=1",
    "reboot -f",
    "chroot /proc/1/root/.. ls /proc/1/root/../../tmp/../../../usr/lib/python3",
)


async def test_what_a_container_may_not_do_to_its_node(machine: EmbeddedMachine) -> None:
    before = core_pattern()
    async with pod(machine) as (runtime, config, sandbox):
        id = await sleeper(runtime, config, sandbox)
        for script in FORBIDDEN:
            answer = await execute(runtime, id, "sh", "-c", script)
            said = (answer.stdout + answer.stderr).decode().lower()
            assert answer.exit_code != 0, (script, said)
            assert any(each in said for each in REFUSED), (script, said)
            assert core_pattern() == before, script


async def test_disks_of_the_node_cannot_be_read(machine: EmbeddedMachine) -> None:
    disk = os.stat("/").st_dev
    names = {f"{os.major(disk)}:{os.minor(disk)}", *os.listdir("/sys/dev/block")[:3]}
    async with pod(machine) as (runtime, config, sandbox):
        id = await sleeper(runtime, config, sandbox)
        for name in names:
            major, minor = name.split(":")
            script = f"rm -f /tmp/disk; mknod /tmp/disk b {major} {minor} && head -c 1 /tmp/disk"
            answer = await execute(runtime, id, "sh", "-c", script)
            assert answer.exit_code != 0
            assert b"Operation not permitted" in answer.stderr


async def test_a_commands_privileges_are_its_containers(machine: EmbeddedMachine) -> None:
    async with pod(machine) as (runtime, config, sandbox):
        context = USUAL | {"no_new_privs": True, "capabilities": {"drop_capabilities": ["ALL"]}}
        confined = cri.LinuxContainerConfig(security_context=context)
        id = await sleeper(runtime, config, sandbox, linux=confined)
        wanted = "CapPrm|CapEff|CapBnd|CapInh|CapAmb|NoNewPrivs|Seccomp:"
        for path in ("/proc/1/status", "/proc/self/status"):
            said = (await execute(runtime, id, "grep", "-E", wanted, path)).stdout.decode()
            found = dict(line.split(":\t") for line in said.splitlines())
            assert {found[name] for name in found if name.startswith("Cap")} == {"0" * 16}
            assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")


async def test_containers_see_and_touch_only_their_own_processes(machine: EmbeddedMachine) -> None:
    async with pod(machine) as (runtime, config, sandbox), pod(machine) as (_, other_config, other):
        id = await sleeper(runtime, config, sandbox)
        victim = await cri_pods.start(
            runtime, other_config, other, "sh", "-c", "SECRET=hidden exec sleep 2000", linux=linux()
        )
        said = (await execute(runtime, id, "sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ")).stdout
        assert b"sleep" in said
        assert b"hidden" not in said
        assert (await execute(runtime, id, "sh", "-c", "kill -9 -1; kill -9 1; true")).exit_code in (0, 137)
        assert (await execute(runtime, victim, "true")).exit_code == 0


async def test_a_volumes_links_lead_nowhere_but_into_the_container(machine: EmbeddedMachine) -> None:
    treasure = volume(machine, "treasure")
    (treasure / "secret").write_text("hidden")
    links = volume(machine, "links")
    (links / "absolute").symlink_to(treasure)
    (links / "relative").symlink_to("../" * 20 + str(treasure)[1:])
    more = volume(machine, "more")
    data = cri.Mount(host_path=str(links), container_path="/data")
    async with pod(machine) as (runtime, config, sandbox):
        id = await sleeper(runtime, config, sandbox, mounts=[data])
        for name in ("absolute", "relative"):
            answer = await execute(runtime, id, "cat", f"/data/{name}/secret")
            assert b"No such file" in answer.stderr
            nested = cri.Mount(host_path=str(more), container_path=f"/data/{name}/inner")
            with pytest.raises(CRIError, match=f'to rootfs at "/data/{name}/inner": no such file or directory'):
                await sleeper(
                    runtime, config, sandbox, mounts=[data, nested], attempt=len(name) if name == "absolute" else 1
                )
    assert [each.name for each in treasure.iterdir()] == ["secret"]


async def test_a_volume_at_dev_does_not_turn_masks_into_doors(machine: EmbeddedMachine) -> None:
    trap = volume(machine, "dev")
    for name in ("null", "console", "ptmx"):
        (trap / name).symlink_to("/proc/sys/kernel/core_pattern")
    before = core_pattern()
    async with pod(machine) as (runtime, config, sandbox):
        mounts = [cri.Mount(host_path=str(trap), container_path="/dev")]
        doors = "/proc/kcore /proc/keys /dev/console /dev/null"
        script = f"for f in {doors}; do echo pwned > $f; cat $f; done; echo done; sleep 1000"
        id = await cri_pods.start(runtime, config, sandbox, "sh", "-c", script, linux=linux(), mounts=mounts, tty=True)
        async with asyncio.timeout(60):
            while not any("done" in line for line in log_lines(config)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert core_pattern() == before
        assert (await execute(runtime, id, "sh", "-c", "echo pwned > /proc/kcore")).exit_code in (0, 1)
    assert core_pattern() == before


async def test_nothing_of_the_containers_files_is_imported(machine: EmbeddedMachine) -> None:
    """Whatever Python would import after it has entered the container would be the container's, with our privileges."""
    trap = volume(machine, "library")
    marker = volume(machine, "marker")
    code = "open('/marker/imported', 'a').write(__name__)\n"
    for name in os.listdir(sysconfig.get_paths()["stdlib"]):
        if name.endswith(".py"):
            (trap / name).write_text(code)
    for name in ("termios", "fcntl", "array", "grp", "pwd", "_struct"):
        (trap / f"{name}.py").write_text(code)
    package = str(Path(cri.__file__).parents[2])
    mounts = [cri.Mount(host_path=str(marker), container_path="/marker")]
    targets = {sysconfig.get_paths()["stdlib"], package, "/data"}
    mounts += [cri.Mount(host_path=str(trap), container_path=each) for each in sorted(targets)]
    async with pod(machine) as (runtime, config, sandbox):
        context = USUAL | {"run_as_username": "nobody"}
        confined = cri.LinuxContainerConfig(security_context=context)
        id = await cri_pods.start(
            runtime, config, sandbox, "sleep", "1000", linux=confined, mounts=mounts, tty=True, working_dir="/data"
        )
        await execute(runtime, id, "true")
    assert list(marker.iterdir()) == []


async def test_a_fork_bomb_stays_in_its_pod(machine: EmbeddedMachine) -> None:
    async with pod(machine) as (runtime, config, sandbox), pod(machine) as (_, other_config, other):
        neighbour = await sleeper(runtime, other_config, other)
        root = Path("/sys/fs/cgroup/pids", machine.cgroup)
        (root / config.linux.cgroup_parent.strip("/") / "pids.max").write_text("30")
        bomb = 'f() { f | f & }; f; sleep 0.3; echo "still here"; sleep 1000'
        id = await cri_pods.start(runtime, config, sandbox, "sh", "-c", bomb, linux=linux())
        async with asyncio.timeout(60):
            while not any("can't fork" in line for line in log_lines(config)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await execute(runtime, neighbour, "echo", "fine")).stdout == b"fine\n"
        await runtime.stop_container(cri.StopContainerRequest(container_id=id, timeout=0))
        current = root / config.linux.cgroup_parent.strip("/") / "pids.current"
        async with asyncio.timeout(60):
            while current.read_text() != "1\n":  # noqa: ASYNC110 - the sandbox's; the dead are counted until they are reaped
                await asyncio.sleep(0.02)


async def test_who_takes_too_much_memory_is_killed_alone(machine: EmbeddedMachine) -> None:
    async with pod(machine) as (runtime, config, sandbox), pod(machine) as (_, other_config, other):
        neighbour = await sleeper(runtime, other_config, other)
        hog = "x=x; while true; do x=$x$x; done"
        limits = linux(memory_limit_in_bytes=16 << 20)
        id = await cri_pods.start(runtime, config, sandbox, "sh", "-c", hog, linux=limits)
        found = await ended(runtime, id)
        assert (found.exit_code, found.reason) == (137, "OOMKilled")
        assert (await execute(runtime, neighbour, "echo", "fine")).stdout == b"fine\n"
