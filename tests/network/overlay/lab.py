"""Nodes as network namespaces: two on one switch, a third behind a router; agents of ours run in their namespaces.

pod (10.244.1.2) a --+                +-- c (pods 10.244.3.0/24)
                     switch -- router
pod (10.244.2.2) b --+
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from network.namespace import NetworkNamespace, network_namespace

from pybernetes.api.core.v1 import Node
from pybernetes.api.core.v1.node import NodeAddress, NodeSpec, NodeStatus
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.network.overlay.agent import Agent, Settings

NAMES = ("a", "b", "c")
UNDERLAY = {"a": "10.90.1.1", "b": "10.90.1.2", "c": "10.90.2.3"}
RANGES = {"a": "10.244.1.0/24", "b": "10.244.2.0/24", "c": "10.244.3.0/24"}
RANGES6 = {"a": "fd00:1::/64", "b": "fd00:2::/64", "c": "fd00:3::/64"}


def node(name: str, address: str = "", ranges: list[str] | None = None) -> Node:
    """A Node as its kubelet and the controllers would have made it."""
    listed = ranges if ranges is not None else [RANGES[name], RANGES6[name]]
    return Node(
        metadata=ObjectMeta(name=name),
        spec=NodeSpec(pod_cidr=listed[0] if listed else None, pod_cidrs=listed or None),
        status=NodeStatus(addresses=[NodeAddress(type="InternalIP", address=address or UNDERLAY[name])]),
    )


class Nodes:
    """Stands for the informer of Nodes: all agents see the same ones."""

    def __init__(self) -> None:
        self.found: dict[str, Node] = {}
        self._handlers: list[tuple[asyncio.AbstractEventLoop, Any, Any]] = []

    def set(self, changed: Node) -> None:
        assert changed.metadata is not None
        self.found[changed.metadata.name or ""] = changed
        for loop, change, _ in self._handlers:
            loop.call_soon_threadsafe(change, changed)

    def delete(self, name: str) -> None:
        gone = self.found.pop(name)
        for loop, _, delete in self._handlers:
            loop.call_soon_threadsafe(delete, gone)

    # What the agent uses of an InformerFactory and an Informer

    def informer(self, _: object) -> Nodes:
        return self

    def start(self) -> None:
        pass

    async def wait_synced(self) -> None:
        pass

    def items(self) -> list[Node]:
        return list(self.found.values())

    def add_handler(self, add: Callable[[Node], None], _: object, delete: Callable[[Node], None]) -> Any:
        handler = (asyncio.get_running_loop(), add, delete)
        self._handlers.append(handler)
        return handler

    def forget_handler(self, handler: Any) -> None:
        self._handlers.remove(handler)


class Machine:
    """A node: its namespace, one pod in a namespace of its own, and its agent while that runs."""

    def __init__(self, name: str, host: NetworkNamespace, pod: NetworkNamespace, nodes: Nodes) -> None:
        self.name, self.host, self.pod, self._nodes = name, host, pod, nodes
        self.ip = RANGES[name].replace("0/24", "2")
        self.ip6 = RANGES6[name].replace("/64", "2")
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] = lambda: None
        self.failure: BaseException | None = None

    def start(self, **settings: Any) -> None:
        """Runs the agent in the namespace."""
        started = threading.Event()

        async def work() -> None:
            agent: Any = Agent(self._nodes, Settings(self.name, **settings))  # type: ignore[arg-type]
            task = asyncio.ensure_future(agent.run())
            loop = asyncio.get_running_loop()
            self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
            started.set()
            try:
                await task
            except asyncio.CancelledError:
                pass
            except BaseException as error:
                self.failure = error

        self._thread = threading.Thread(target=lambda: self.host.run(lambda: asyncio.run(work())))
        self._thread.start()
        started.wait(30)

    def stop(self) -> None:
        """Ends the agent; what it set stays."""
        if self._thread is not None:
            self._stop()
            self._thread.join(30)
            self._thread = None
        assert self.failure is None, self.failure

    def reaches(self, other: Machine, size: int = 56, version: int = 4) -> bool:
        """Whether this node's pod gets an answer of the other's pod."""
        target = other.ip if version == 4 else other.ip6
        argv = ["ping", f"-{version}", "-c1", "-W1", "-q", "-M", "do", "-s", str(size), target]
        try:
            self.pod.output(*argv)
        except AssertionError:
            return False
        return True

    def state(self) -> dict[str, list[str]]:
        """What the agent has set in the kernel."""
        lines = {
            "routes": self.host.output("ip", "route", "show", "proto", "80"),
            "routes6": self.host.output("ip", "-6", "route", "show", "proto", "80"),
            "neighbours": self.host.output("ip", "neigh", "show", "nud", "permanent"),
            "fdb": self.host.output("bridge", "fdb", "show", "dynamic") + self.host.output("bridge", "fdb", "show"),
            "links": self.host.output("ip", "-o", "link", "show"),
        }
        found = {key: sorted({line.strip() for line in text.splitlines()}) for key, text in lines.items()}
        found["fdb"] = [line for line in found["fdb"] if "pyb-vxlan" in line]
        found["neighbours"] = [line for line in found["neighbours"] if "pyb-vxlan" in line]
        found["links"] = [line.split(":")[1].strip() for line in found["links"] if ": pyb-" in line]
        return found


@contextmanager
def lab() -> Iterator[tuple[dict[str, Machine], Nodes, NetworkNamespace]]:
    """The machines by name, the Nodes, and the router."""
    nodes = Nodes()
    with ExitStack() as stack:
        router = stack.enter_context(network_namespace("bridge", "ping"))
        router.output("sysctl", "-qw", "net.ipv4.ip_forward=1")
        for number in (1, 2):
            router.output("ip", "link", "add", f"sw{number}", "type", "bridge")
            router.output("ip", "link", "set", f"sw{number}", "up")
            router.output("ip", "addr", "add", f"10.90.{number}.254/24", "dev", f"sw{number}")
        machines: dict[str, Machine] = {}
        for name in NAMES:
            host, pod = (stack.enter_context(network_namespace()) for _ in range(2))
            side = UNDERLAY[name].split(".")[2]
            router.output("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", host.name)
            router.output("ip", "link", "set", f"to-{name}", "master", f"sw{side}", "up")
            host.output("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
            host.output("ip", "addr", "add", f"{UNDERLAY[name]}/24", "dev", "eth0")
            host.output("ip", "link", "set", "eth0", "up")
            host.output("ip", "route", "add", "default", "via", f"10.90.{side}.254")
            machine = Machine(name, host, pod, nodes)
            gateway, gateway6 = machine.ip[:-1] + "1", machine.ip6[:-1] + "1"
            host.output("ip", "link", "add", "cni0", "type", "veth", "peer", "name", "eth0", "netns", pod.name)
            host.output("ip", "addr", "add", f"{gateway}/24", "dev", "cni0")
            host.output("ip", "-6", "addr", "add", f"{gateway6}/64", "dev", "cni0", "nodad")
            host.output("ip", "link", "set", "cni0", "up")
            pod.output("ip", "addr", "add", f"{machine.ip}/24", "dev", "eth0")
            pod.output("ip", "-6", "addr", "add", f"{machine.ip6}/64", "dev", "eth0", "nodad")
            pod.output("ip", "link", "set", "eth0", "up")
            pod.output("ip", "route", "add", "default", "via", gateway)
            pod.output("ip", "-6", "route", "add", "default", "via", gateway6)
            machines[name] = machine
            nodes.set(node(name))
        try:
            yield machines, nodes, router
        finally:
            for machine in machines.values():
                machine.stop()
