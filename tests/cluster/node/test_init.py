"""Nodes as namespaces, without a kubelet: two of them with a real containerd, and a pod on each."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import tools
from pybernetes.cluster import certificates, pidfile
from pybernetes.cluster.images import builtin, store
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import boot, cgroups, containerd, fabric, inside, plan, prepare, teardown
from pybernetes.cluster.node.machine import Machine
from pybernetes.cluster.node.network import Network
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

pytestmark = pytest.mark.skipif(
    plan.obstacle() is not None or builtin.busybox_program() is None, reason="needs root, containerd and busybox"
)
SERVER_PORT = 16443


@dataclass
class Node:
    """A node, its holder, and the pod on it."""

    layout: Layout
    number: int
    network: Network
    process: subprocess.Popen[bytes] | None = None
    pod_ip: str = ""
    container: str = ""

    @property
    def name(self) -> str:
        return prepare.node_name(self.number)

    def start(self) -> None:
        machine = prepare.prepare(self.layout, self.network, self.number, SERVER_PORT)
        machine = replace(machine, programs=machine.programs[:1])
        log = self.layout.log(self.name)
        with open(log, "ab") as out:
            self.process = process = subprocess.Popen(
                [*tools.PYTHON, "run-node", str(machine.write())], stdout=out, stderr=out
            )
        pidfile.write(str(self.layout.pid_file(self.name)), self.process.pid)

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            init = inside.init_process(self.layout, self.name)
            return init is not None and containerd.runs(inside.path(init, containerd.SOCKET))

        tools.wait_until(answers, f"containerd of {self.name} answers")

    @property
    def init(self) -> int:
        return tools.wait_until(lambda: inside.init_process(self.layout, self.name), f"{self.name} has an init")

    @property
    def socket(self) -> str:
        return inside.path(self.init, containerd.SOCKET)

    def run(self, *words: str) -> str:
        command = ["nsenter", "-t", str(self.init), "-m", "-u", "-i", "-n", "-p", "-C", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout

    def execute(self, *words: str) -> str:
        async def call() -> str:
            async with Runtime(self.socket) as runtime:
                answer = await runtime.exec_sync(
                    cri.ExecSyncRequest(container_id=self.container, cmd=["timeout", "20", *words], timeout=30)
                )
                return str((answer.stdout + answer.stderr).decode())

        return _run(call())

    def remove_pods(self) -> int:
        async def remove() -> int:
            async with Runtime(self.socket) as runtime:
                await _initialized(runtime)
                found = (await runtime.list_pod_sandbox(cri.ListPodSandboxRequest())).items
                for each in found:
                    await runtime.stop_pod_sandbox(cri.StopPodSandboxRequest(pod_sandbox_id=each.id))
                    await runtime.remove_pod_sandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=each.id))
                return len(found)

        return int(_run(remove()))

    def start_pod(self, handler: str, attempt: int = 0) -> None:
        async def start() -> None:
            async with Runtime(self.socket) as runtime:
                cidr = ".".join(self.network.pods.split(".")[:2]) + f".{self.number}.0/24"
                network = cri.NetworkConfig(pod_cidr=cidr)
                await _initialized(runtime)
                await runtime.update_runtime_config(
                    cri.UpdateRuntimeConfigRequest(runtime_config=cri.RuntimeConfig(network_config=network))
                )
                await _network_ready(runtime)
                sandbox = cri.PodSandboxConfig(
                    metadata=cri.PodSandboxMetadata(name="web", uid="u", namespace="default", attempt=attempt),
                    hostname="web",
                    linux=cri.LinuxPodSandboxConfig(cgroup_parent="/kubepods/podu"),
                )
                made = await runtime.run_pod_sandbox(cri.RunPodSandboxRequest(config=sandbox, runtime_handler=handler))
                status = await runtime.pod_sandbox_status(
                    cri.PodSandboxStatusRequest(pod_sandbox_id=made.pod_sandbox_id)
                )
                self.pod_ip = status.status.network.ip
                config = cri.ContainerConfig(
                    metadata=cri.ContainerMetadata(name="web", attempt=attempt),
                    image=cri.ImageSpec(image=f"{builtin.BUSYBOX}:latest"),
                    command=["sh", "-c", "echo hello > /tmp/index.html; exec httpd -f -p 8080 -h /tmp"],
                )
                created = await runtime.create_container(
                    cri.CreateContainerRequest(
                        pod_sandbox_id=made.pod_sandbox_id, config=config, sandbox_config=sandbox
                    )
                )
                self.container = created.container_id
                await runtime.start_container(cri.StartContainerRequest(container_id=self.container))

        _run(start())


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def _initialized(runtime: Runtime) -> None:
    """containerd listens before it can do anything."""
    async with asyncio.timeout(tools.PATIENCE):
        while True:
            try:
                await runtime.status(cri.StatusRequest())
                return
            except CRIError as error:
                if error.code != "Unavailable":
                    raise
            await asyncio.sleep(0.01)


async def _network_ready(runtime: Runtime) -> None:
    for _ in range(3000):
        answer = await runtime.status(cri.StatusRequest())
        if {each.type: each.status for each in answer.status.conditions}.get("NetworkReady"):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the network is not ready within a minute")


@dataclass
class Pair:
    layout: Layout
    network: Network
    nodes: list[Node] = field(default_factory=list)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        layout = Layout(f"pair{os.getpid()}", Path(folder, "data"))
        layout.claim()
        layout.prepare()
        certificates.ensure(layout.pki, [])
        network = plan.claim(layout)
        pair = Pair(layout, network)
        try:
            fabric.open_way_out(network)
            store.ensure_builtin(layout)
            pair.nodes = [Node(layout, number, network) for number in (1, 2)]
            for node, handler in zip(pair.nodes, ("runc", "crun"), strict=True):
                node.start()
                for archive in boot.missing_archives(layout, node.name):
                    boot.finish_import(layout, node.name, archive, boot.import_archive(node.init, archive))
                node.start_pod(handler if handler in containerd.runtimes() else "")
            yield pair
        finally:
            for node in pair.nodes:
                if node.process is not None:
                    node.process.terminate()
                    node.process.wait(60)
            assert teardown.remove(layout) == []
    assert left_behind(folder) == {"mounts": [], "cgroups": []}


def left_behind(folder: str) -> dict[str, list[str]]:
    """What nodes could leave on the host."""
    own = f"pair{os.getpid()}-"
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if folder in line]
    groups = [str(path) for each in cgroups.hierarchies() for path in Path(each.mount).glob(f"pybernetes/{own}*")]
    return {"mounts": mounts, "cgroups": groups}


def fetch(address: str) -> str:
    with socket.create_connection((address, 8080), 5) as connection:
        connection.sendall(b"GET /index.html HTTP/1.0\r\n\r\n")
        received = b""
        while chunk := connection.recv(4096):
            received += chunk
    return received.rpartition(b"\r\n\r\n")[2].decode()


def test_host_and_pods_reach_pods_on_every_node(pair: Pair) -> None:
    one, two = pair.nodes
    for node in (one, two):
        assert tools.wait_until(lambda node=node: _try_fetch(node.pod_ip), "the pod answers") == "hello\n"
    assert one.execute("wget", "-qO-", f"http://{two.pod_ip}:8080/index.html") == "hello\n"
    assert two.execute("wget", "-qO-", f"http://{one.pod_ip}:8080/index.html") == "hello\n"


def _try_fetch(address: str) -> str | None:
    try:
        return fetch(address)
    except OSError:
        return None


def test_a_node_is_a_machine_of_its_own(pair: Pair) -> None:
    one, two = pair.nodes
    assert one.run("hostname").strip() == "node-1"
    assert one.run("cat", "/etc/hostname").strip() == "node-1"
    assert f"{pair.network.address(1)}\tnode-1" in one.run("cat", "/etc/hosts")
    assert one.run("cat", "/etc/machine-id") != two.run("cat", "/etc/machine-id")
    assert one.run("cat", "/proc/sys/kernel/random/boot_id") != two.run("cat", "/proc/sys/kernel/random/boot_id")
    assert one.run("ls", "/sys/class/net").split()[:3] == ["cni0", "eth0", "lo"]
    assert "containerd" in one.run("ps", "-e")
    assert str(os.getpid()) not in one.run("ps", "-eo", "pid").split()
    # What it writes to places of its own is not on the host.
    one.run("touch", "/var/lib/kubelet/mine", "/run/mine", "/etc/cni/net.d/mine")
    assert not Path("/var/lib/kubelet/mine").exists()
    assert not Path("/run/mine").exists()
    assert not Path("/etc/cni/net.d/mine").exists()
    assert two.run("ls", "/var/lib/kubelet") == ""


def test_cgroups_of_pods_are_below_the_nodes(pair: Pair) -> None:
    machine = Machine.read(str(pair.layout.node("node-1") / "machine.json"))
    found = cgroups.visible(cgroups.hierarchies())
    assert all(Path(each.mount, machine.cgroup, "kubepods", "podu").is_dir() for each in found)
    assert pair.nodes[0].run("cat", "/proc/1/cgroup").count(":/system\n") == len(cgroups.hierarchies())


def test_after_a_power_failure_a_node_boots_with_its_disk_and_nothing_else(pair: Pair) -> None:
    node = pair.nodes[1]
    boot_id = node.run("cat", "/proc/sys/kernel/random/boot_id")
    machine_id = node.run("cat", "/etc/machine-id")
    node.run("touch", "/var/lib/kubelet/disk")
    init, processes = node.init, list(inside.descendants(node.init))
    assert len(processes) >= 4, "containerd, a shim and the pod's processes"
    assert node.process is not None
    remembered = list((pair.layout.node("node-2") / "lib-cni/results").iterdir())
    assert remembered
    for each in remembered:
        each.write_bytes(b"")  # as when the power fails while containerd writes
    os.kill(init, signal.SIGKILL)
    assert node.process.wait(60) == 1
    for pid in processes:
        tools.wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), f"process {pid} is gone")
    node.start()
    assert node.run("cat", "/proc/sys/kernel/random/boot_id") != boot_id
    assert node.run("cat", "/etc/machine-id") == machine_id
    assert node.run("ls", "/var/lib/kubelet") == "disk\n"
    machine = Machine.read(str(pair.layout.node("node-2") / "machine.json"))
    for each in cgroups.visible(cgroups.hierarchies()):
        assert not Path(each.mount, machine.cgroup, "kubepods").exists()
    assert boot.missing_archives(pair.layout, "node-2") == [], "images are on the disk"
    assert node.remove_pods() == 1, "the old one, though nothing is known of its network"
    node.start_pod("", attempt=1)
    assert tools.wait_until(lambda: _try_fetch(node.pod_ip), "a pod runs again") == "hello\n"


def test_a_node_whose_holder_is_killed_is_off_too(pair: Pair) -> None:
    node = pair.nodes[1]
    init = node.init
    assert node.process is not None
    node.process.kill()
    node.process.wait()
    tools.wait_until(lambda: not Path(f"/proc/{init}").exists(), "the init process is gone")
    node.start()
