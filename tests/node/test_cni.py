"""Runtimes with our network plugins, which containerd calls as programs: pods get their network, ports and peace."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cri.embedded.machine import EmbeddedMachine
from node.containerd_machine import ContainerdMachine
from node.machine import BUSYBOX, Machine

from pybernetes.cni.command import install
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime


@pytest.fixture(scope="module")
def machine(runtime_name: str) -> Iterator[Machine]:
    kind = ContainerdMachine if runtime_name == "containerd" else EmbeddedMachine
    if reason := kind.lacking():
        pytest.skip(f"no {runtime_name}: {reason}")
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        place, name = Path(folder) / "m", f"pybcni{os.getpid()}"
        plugins = install(Path(folder) / "plugins")[0].parent
        with kind(place, name, cni=plugins) if kind is ContainerdMachine else kind(place, name) as made:
            yield made


def config(machine: Machine, name: str, **more: Any) -> Any:
    return cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(name=name, uid=name, namespace="default"),
        log_directory=str(machine.folder / "logs"),
        linux=cri.LinuxPodSandboxConfig(cgroup_parent=f"/kubepods/pod{name}"),
        **more,
    )


async def run(runtime: Runtime, sandbox: Any) -> str:
    return str((await runtime.run_pod_sandbox(cri.RunPodSandboxRequest(config=sandbox))).pod_sandbox_id)


async def start(runtime: Runtime, sandbox: Any, identity: str, script: str) -> str:
    container = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="main"),
        image=cri.ImageSpec(image=BUSYBOX),
        command=["sh", "-c", script],
        log_path=f"{sandbox.metadata.name}.log",
        linux=cri.LinuxContainerConfig(),
    )
    created = await runtime.create_container(
        cri.CreateContainerRequest(pod_sandbox_id=identity, config=container, sandbox_config=sandbox)
    )
    await runtime.start_container(cri.StartContainerRequest(container_id=created.container_id))
    return str(created.container_id)


async def remove(runtime: Runtime, *identities: str) -> None:
    for identity in identities:
        await runtime.stop_pod_sandbox(cri.StopPodSandboxRequest(pod_sandbox_id=identity))
        await runtime.remove_pod_sandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=identity))


async def address(runtime: Runtime, identity: str) -> str:
    status = await runtime.pod_sandbox_status(cri.PodSandboxStatusRequest(pod_sandbox_id=identity))
    return str(status.status.network.ip)


def left(machine: Machine) -> dict[str, list[str]]:
    links = [line.split("@")[0] for line in machine.run("ip", "-br", "link").splitlines()]
    ipam = machine.folder / "ipam/pyb"
    rules = machine.run("iptables-save", "-t", "nat").splitlines()
    return {
        "links": [name for name in links if name.startswith("veth")],
        "addresses": [file.name for file in ipam.glob("10.*")],
        "rules": [line for line in rules if "CNI-DN-" in line],
    }


async def test_pods_reach_each_other_and_a_port_of_the_node_leads_to_one(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        ports = [cri.PortMapping(container_port=80, host_port=8080)]
        web, client = config(machine, "web", port_mappings=ports), config(machine, "client")
        identities = [await run(runtime, web), await run(runtime, client)]
        page = "mkdir /www; echo hello > /www/index.html; exec httpd -f -p 80 -h /www"
        await start(runtime, web, identities[0], page)
        container = await start(runtime, client, identities[1], "exec sleep 600")
        ip = await address(runtime, identities[0])
        assert ip.startswith("10.200.0.")

        async def fetched(url: str) -> str:
            for _ in range(100):  # until httpd listens
                request = cri.ExecSyncRequest(container_id=container, cmd=["wget", "-qO-", url], timeout=5)
                answer = await runtime.exec_sync(request)
                if answer.exit_code == 0:
                    return str(answer.stdout.decode())
                await asyncio.sleep(0.05)
            raise AssertionError(answer.stderr)

        assert await fetched(f"http://{ip}/") == "hello\n"
        assert await fetched("http://10.200.0.1:8080/") == "hello\n"
        assert machine.run("busybox", "wget", "-qO-", "http://127.0.0.1:8080/") == "hello\n"
        await remove(runtime, *identities)
    assert left(machine) == {"links": [], "addresses": [], "rules": []}


async def test_ten_pods_at_once_get_ten_addresses_and_leave_nothing(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        configs = [config(machine, f"many-{number}") for number in range(10)]
        identities = await asyncio.gather(*(run(runtime, each) for each in configs))
        addresses = await asyncio.gather(*(address(runtime, each) for each in identities))
        assert len(set(addresses)) == 10
        await asyncio.gather(*(remove(runtime, each) for each in identities))
    assert left(machine) == {"links": [], "addresses": [], "rules": []}


async def test_an_error_of_a_plugin_reaches_the_caller_of_the_runtime(machine: Machine) -> None:
    async with machine.runtime() as runtime:
        machine.run("ip", "link", "set", "cni0", "down")
        machine.run("ip", "link", "delete", "cni0")
        machine.run("ip", "link", "add", "cni0", "type", "veth", "peer", "name", "other")
        try:
            with pytest.raises(CRIError, match='"cni0" already exists but is not a bridge'):
                await run(runtime, config(machine, "unlucky"))
        finally:
            machine.run("ip", "link", "delete", "cni0")
        identity = await run(runtime, config(machine, "lucky"))  # the bridge is made again
        assert (await address(runtime, identity)).startswith("10.200.0.")
        await remove(runtime, identity)
    assert left(machine) == {"links": [], "addresses": [], "rules": []}
