"""Pods made by CRI alone, without a kubelet."""

from __future__ import annotations

import itertools
import os
from typing import Any

from node.machine import BUSYBOX, Machine

from pybernetes.cri import v1 as cri
from pybernetes.cri.remote import Runtime

numbers = itertools.count()


def sandbox_config(machine: Machine) -> Any:
    number = next(numbers)
    uid = f"uid-{number}"
    logs = machine.folder / "logs" / uid
    logs.mkdir(parents=True)
    above = logs.parent.stat()
    os.chown(logs, above.st_uid, above.st_gid)  # the runtime's, which need not be root
    return cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(name=f"pod-{number}", uid=uid, namespace="default"),
        log_directory=str(logs),
        labels={"io.kubernetes.pod.uid": uid},
        linux=cri.LinuxPodSandboxConfig(cgroup_parent=f"/kubepods/pod{uid}"),
    )


async def create(runtime: Runtime, config: Any, sandbox: str, *command: str, attempt: int = 0, **more: Any) -> str:
    config_of_container = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="main", attempt=attempt),
        image=cri.ImageSpec(image=BUSYBOX),
        command=command,
        log_path="main.log",
        labels={"io.kubernetes.pod.uid": config.metadata.uid},
        **({"linux": cri.LinuxContainerConfig()} | more),
    )
    created = await runtime.create_container(
        cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=config_of_container, sandbox_config=config)
    )
    return str(created.container_id)


async def start(runtime: Runtime, config: Any, sandbox: str, *command: str, attempt: int = 0, **more: Any) -> str:
    id = await create(runtime, config, sandbox, *command, attempt=attempt, **more)
    await runtime.start_container(cri.StartContainerRequest(container_id=id))
    return id


async def run(runtime: Runtime, machine: Machine) -> tuple[Any, str]:
    config = sandbox_config(machine)
    return config, (await runtime.run_pod_sandbox(cri.RunPodSandboxRequest(config=config))).pod_sandbox_id


async def remove(runtime: Runtime, sandbox: str) -> None:
    await runtime.stop_pod_sandbox(cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
    await runtime.remove_pod_sandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox))
