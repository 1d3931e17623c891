"""A runtime that is killed, or loses its launcher, at a chosen step of a pod's life.

Run inside a machine: reads a line, does what it says, and writes what came of it.

A step is anything that leaves a trace: a file, folder or cgroup made, written or taken away, a mount, a message to the
launcher or to the kernel. `die N` takes a pod through its life and kills the runtime right before its Nth step;
`clear` is the next runtime, which does what a kubelet would, and must be able to; `die_clearing N` is killed while it
does that. `lose N` kills the launcher instead, and the same runtime has to find its way.

`power ...` does any of these where all else ends with the runtime: processes, mounts, and what a machine keeps in
memory. The next one has the same pids, as programs have that start with a machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded import syscalls
from pybernetes.cri.embedded.command import CNI_BIN
from pybernetes.cri.embedded.server import EmbeddedRuntime, Settings
from pybernetes.cri.errors import CRIError

CHANGES = ("os.mkdir", "os.rmdir", "os.remove", "os.rename", "os.truncate", "socket.sendto", "socket.sendmsg")
FINISHED = 7
"""The exit code of a life that had fewer steps than that."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
MOUNTED = ("/scratch", "/var/run/secrets/kubernetes.io/serviceaccount", "/a/b/c", "/d/e/f", "/g/h/i")
"""Where something is mounted, so that the container's own files are many folders."""
BUSYBOX = cri.ImageSpec(image="docker.io/library/busybox:latest")


class Steps:
    """Counts steps from the moment on that it is made, and calls a function at one of them."""

    def __init__(self, step: int, strike: Callable[[], None]) -> None:
        self._step = step
        self._strike = strike
        self._steps = itertools.count(1)
        self.struck = False
        _hear_of_steps(self._count)

    def _count(self) -> None:
        if next(self._steps) == self._step:
            self.struck = True
            self._strike()


def _hear_of_steps(count: Callable[[], None]) -> None:

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGES or (event == "open" and arguments[2] & WRITING):
            count()

    def before(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **more: Any) -> Any:
            count()
            return function(*arguments, **more)

        return counted

    sys.addaudithook(hear)
    syscalls.mount, syscalls.umount = before(syscalls.mount), before(syscalls.umount)
    socket.send_fds = before(socket.send_fds)


def end_runtime() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def end_launcher(runtime: EmbeddedRuntime) -> None:
    line = runtime.launching._socket
    if line is not None:
        pid = struct.unpack("iII", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        os.kill(pid, signal.SIGKILL)


def sandbox_config(folder: Path, attempt: int) -> Any:
    return cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(name="crashing", uid="crashing", namespace="default", attempt=attempt),
        log_directory=str(folder / "logs/crashing"),
        port_mappings=[cri.PortMapping(container_port=80, host_port=8080)],
        linux=cri.LinuxPodSandboxConfig(cgroup_parent="/kubepods/podcrashing"),
    )


async def create(runtime: EmbeddedRuntime, sandbox: str, config: Any, attempt: int = 0) -> str:
    container = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="main", attempt=attempt),
        image=BUSYBOX,
        command=["sleep", "1000"],
        log_path=f"main-{attempt}.log",
    )
    container.linux.resources.memory_limit_in_bytes = 64 << 20
    for path in MOUNTED:
        container.mounts.add(container_path=path, host_path="/proc", readonly=True)
    request = cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=container, sandbox_config=config)
    return str((await runtime.create_container(request)).container_id)


async def start(runtime: EmbeddedRuntime, config: Any) -> tuple[str, str]:
    """A pod with a container that runs."""
    sandbox = (await runtime.run_pod_sandbox(cri.RunPodSandboxRequest(config=config))).pod_sandbox_id
    id = await create(runtime, sandbox, config)
    await runtime.start_container(cri.StartContainerRequest(container_id=id))
    return sandbox, id


async def end(runtime: EmbeddedRuntime, sandbox: str) -> None:
    await runtime.stop_pod_sandbox(cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
    await runtime.remove_pod_sandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox))


async def live(runtime: EmbeddedRuntime, folder: Path) -> None:
    """A pod's life; its second container was never started when the pod ends."""
    config = sandbox_config(folder, 0)
    sandbox, id = await start(runtime, config)
    await runtime.exec_sync(cri.ExecSyncRequest(container_id=id, cmd=["true"], timeout=30))
    resources = cri.LinuxContainerResources(memory_limit_in_bytes=128 << 20)
    await runtime.update_container_resources(cri.UpdateContainerResourcesRequest(container_id=id, linux=resources))
    await runtime.stop_container(cri.StopContainerRequest(container_id=id, timeout=0))
    await runtime.remove_container(cri.RemoveContainerRequest(container_id=id))
    await create(runtime, sandbox, config, attempt=1)
    await end(runtime, sandbox)


async def clear(runtime: EmbeddedRuntime, folder: Path) -> None:
    """What was left is what is said to be there; it can be taken away, and a new pod runs."""
    sandboxes = (await runtime.list_pod_sandbox(cri.ListPodSandboxRequest())).items
    for container in (await runtime.list_containers(cri.ListContainersRequest())).containers:
        assert container.pod_sandbox_id in {each.id for each in sandboxes}
        if container.state == cri.CONTAINER_RUNNING:
            request = cri.ExecSyncRequest(container_id=container.id, cmd=["echo", "on"], timeout=30)
            assert (await runtime.exec_sync(request)).stdout == b"on\n"
    for each in sandboxes:
        if each.state == cri.SANDBOX_READY:
            asked = cri.PodSandboxStatusRequest(pod_sandbox_id=each.id)
            assert (await runtime.pod_sandbox_status(asked)).status.network.ip
        await end(runtime, each.id)
    sandbox, _ = await start(runtime, sandbox_config(folder, 1))
    await end(runtime, sandbox)


class Program:
    """What a line may say; each answers an exit code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = Settings(
            *(folder / "lib", folder / "run", folder / "cni"),
            cni_bin_dirs=CNI_BIN,
            images=folder / "images",
            registries=(),
        )

    @contextlib.asynccontextmanager
    async def runtime(self) -> AsyncIterator[EmbeddedRuntime]:
        runtime = EmbeddedRuntime(self.settings)
        await runtime.recover()
        yield runtime
        await runtime.close()

    async def die(self, step: int) -> int:
        Steps(step, end_runtime)
        async with self.runtime() as runtime:
            await live(runtime, self.folder)
        return FINISHED

    async def clear(self) -> int:
        async with self.runtime() as runtime:
            await clear(runtime, self.folder)
        return 0

    async def die_clearing(self, step: int) -> int:
        Steps(step, end_runtime)
        await self.clear()
        return FINISHED

    async def lose(self, step: int) -> int:
        async with self.runtime() as runtime:
            steps = Steps(step, lambda: end_launcher(runtime))
            with contextlib.suppress(CRIError):
                await live(runtime, self.folder)
            async with asyncio.timeout(60):
                while True:
                    try:
                        await clear(runtime, self.folder)
                        break
                    except CRIError:  # a kubelet asks again
                        await asyncio.sleep(0.05)
        return 0 if steps.struck else FINISHED


def in_a_fork(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Does something in a process of its own; its exit code, or -9."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = asyncio.run(work())
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def with_power(memory: Path, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """The same in namespaces of its own, which end with it, and with a folder that is in memory."""

    async def first_process() -> int:
        syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
        syscalls.mount("proc", "/proc", "proc")
        syscalls.mount("tmpfs", str(memory), "tmpfs")
        return in_a_fork(work) & 0xFF

    async def outside() -> int:
        syscalls.unshare(syscalls.NEWNS | syscalls.NEWPID)
        return in_a_fork(first_process)

    code = in_a_fork(outside)
    return code - 256 if code > 128 else code


def main(folder: Path) -> None:
    program = Program(folder)
    for line in sys.stdin:
        word, *rest = line.removeprefix("power ").split()

        def work() -> Coroutine[Any, Any, int]:
            done: Coroutine[Any, Any, int] = getattr(program, word)(*map(int, rest))  # noqa: B023
            return done

        print(with_power(folder / "run", work) if line.startswith("power ") else in_a_fork(work), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
