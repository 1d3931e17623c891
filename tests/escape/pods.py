"""Pods of attackers."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from node import cri_pods
from node.machine import BUSYBOX, Machine

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.hidden import MASKED_PATHS, READONLY_PATHS
from pybernetes.cri.remote import Runtime

SYSTEM_CALL = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    words = [each if isinstance(each, bytes) else ctypes.c_long(each) for each in words]
    found = libc.syscall(ctypes.c_long(number), *words)
    return found if found >= 0 else errno.errorcode[ctypes.get_errno()]
"""
"""For a program of `Pod.python`: `call` makes a system call, and answers its result or the name of its error."""


def confined(*capabilities: str, pid: int = cri.CONTAINER, **more: Any) -> Any:
    """An ordinary container, with a few capabilities more."""
    context = {
        "seccomp": {"profile_type": 1},  # unconfined: the filter must not be what holds
        "masked_paths": MASKED_PATHS,
        "readonly_paths": READONLY_PATHS,
        "namespace_options": {"pid": pid},
        "capabilities": {"add_capabilities": list(capabilities)},
        **more,
    }
    return cri.LinuxContainerConfig(security_context=context)


@functools.cache
def interpreter() -> Path:
    """A world-executable Python: an attacker's tool for system calls."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (f"/usr/bin/{version}", f"/usr/local/bin/{version}", os.path.realpath(sys.executable)):
        found = Path(path)
        if found.exists() and all(each.stat().st_mode & 0o005 == 0o005 for each in (found, *found.parents)):
            return found
    pytest.skip("there is no world-executable Python")


def python_mounts() -> list[Any]:
    """What a container needs to run it: the node's programs and libraries, read-only."""
    libraries = [path for path in ("/lib", "/lib64") if os.path.exists(path)]
    return [cri.Mount(host_path=each, container_path=each, readonly=True) for each in ("/usr", *libraries)]


@contextlib.asynccontextmanager
async def attacker(
    machine: Machine, script: str, linux: Any, **more: Any
) -> AsyncIterator[tuple[Runtime, Any, str, str]]:
    """A pod with a container that runs a script; the runtime, the pod's configuration, sandbox and container."""
    async with machine.runtime() as runtime:
        config, sandbox = await cri_pods.run(runtime, machine)
        try:
            id = await cri_pods.start(runtime, config, sandbox, "sh", "-c", script, linux=linux, **more)
            yield runtime, config, sandbox, id
        finally:
            await cri_pods.remove(runtime, sandbox)


@dataclass(frozen=True)
class Answer:
    """How a command in a container ended; code -1 if it could not be started."""

    code: int
    text: str


class Pod:
    """A pod of an attacker for tests that are not async: `start` adds a container, `sh` runs a script in it."""

    def __init__(self, machine: Machine, sandbox: Any = None) -> None:
        self.machine = machine
        self.config = sandbox or cri_pods.sandbox_config(machine)
        self.id = ""
        self._attempts = 0

    def __enter__(self) -> Pod:
        request = cri.RunPodSandboxRequest(config=self.config)
        self.id = self._call(lambda runtime: runtime.run_pod_sandbox(request)).pod_sandbox_id
        return self

    def __exit__(self, *_: object) -> None:
        self._call(lambda runtime: cri_pods.remove(runtime, self.id))

    def start(self, *command: str, linux: Any = None, image: str = BUSYBOX, **more: Any) -> str:
        """A container that has been started; CRIError if it could not be."""
        self._attempts += 1
        config = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name="main", attempt=self._attempts),
            image=cri.ImageSpec(image=image),
            command=command,
            log_path=f"{self._attempts}.log",
            linux=confined() if linux is None else linux,
            **more,
        )

        async def made(runtime: Runtime) -> str:
            asked = cri.CreateContainerRequest(pod_sandbox_id=self.id, config=config, sandbox_config=self.config)
            id = str((await runtime.create_container(asked)).container_id)
            await runtime.start_container(cri.StartContainerRequest(container_id=id))
            return id

        return str(self._call(made))

    def sleeper(self, **more: Any) -> str:
        """A container that does nothing."""
        return self.start("sleep", "1000", **more)

    def python_sleeper(self, **more: Any) -> str:
        """A container that does nothing, in which `python` runs."""
        return self.sleeper(mounts=[*python_mounts(), *more.pop("mounts", ())], **more)

    def python(self, id: str, program: str, timeout: int = 20) -> Answer:
        """A Python program in such a container."""
        return self.exec(id, [str(interpreter()), "-I", "-c", program], timeout)

    def sh(self, id: str, script: str, timeout: int = 20) -> Answer:
        """A script in a container."""
        return self.exec(id, ["sh", "-c", script], timeout)

    def exec(self, id: str, command: list[str], timeout: int = 20) -> Answer:
        """A command in a container."""
        request = cri.ExecSyncRequest(container_id=id, cmd=command, timeout=timeout)
        try:
            done = self._call(lambda runtime: runtime.exec_sync(request))
        except CRIError as error:
            return Answer(-1, str(error))
        return Answer(done.exit_code, (done.stdout + done.stderr).decode(errors="replace"))

    def said(self, number: int = 1) -> str:
        """The log of its n-th container, without times."""
        with open(f"{self.config.log_directory}/{number}.log") as file:
            return "".join(line.split(" ", 3)[3] for line in file)

    def ended(self, id: str) -> Any:
        """The status of a container, as soon as it has ended."""

        async def wait(runtime: Runtime) -> Any:
            async with asyncio.timeout(60):
                while True:
                    found = await runtime.container_status(cri.ContainerStatusRequest(container_id=id))
                    if found.status.state == cri.CONTAINER_EXITED:
                        return found.status
                    await asyncio.sleep(0.02)

        return self._call(wait)

    def _call(self, work: Any) -> Any:
        async def call() -> Any:
            async with self.machine.runtime() as runtime:
                return await work(runtime)

        return asyncio.run(call())
