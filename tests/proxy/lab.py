"""A node with pods and a machine outside, as network namespaces, and servers in them that say who they are.

world 192.0.2.2 -- 192.0.2.1 node 10.1.0.1 (bridge) -- pods 10.1.0.2, 10.1.0.3, ...; IPv6 likewise with fd00::
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from network.namespace import NetworkNamespace, network_namespace

from pybernetes.net.netlink.conntrack import Conntrack
from pybernetes.network.nftables.client import Nftables
from pybernetes.proxy.chains import TableFacts
from pybernetes.proxy.endpoints import NodeFacts
from pybernetes.proxy.frontends import FAMILIES, Compiled, compile_service
from pybernetes.proxy.kernel import Kernel
from pybernetes.proxy.ruleset import Ruleset

PATIENCE = 10.0
DROPPED_AFTER = 0.5
"""Seconds after which a packet counts as dropped, where that is expected."""
NODE = NodeFacts("here")


class Lab:
    """`ask` says what a client gets: a server's name, `refused` or `dropped`."""

    def __init__(self, node: NetworkNamespace, world: NetworkNamespace, pods: list[NetworkNamespace]) -> None:
        self.node, self.world, self.pods = node, world, pods
        self._stack = ExitStack()
        self.peers: list[str] = []
        """Who the servers were asked by."""

    def close(self) -> None:
        self._stack.close()

    def serve(self, where: NetworkNamespace, name: str, port: int = 8080, kind: str = "tcp") -> None:
        """Starts a server that answers its name."""
        server = where.run(_listen, port, kind)
        self._stack.callback(server.close)
        threading.Thread(target=self._answer, args=(server, name.encode(), kind), daemon=True).start()

    def _answer(self, server: socket.socket, name: bytes, kind: str) -> None:
        with contextlib.suppress(OSError):
            while True:
                if kind == "udp":
                    _, peer = server.recvfrom(100)
                    self.peers.append(_plain(peer[0]))
                    server.sendto(name, peer)
                    continue
                connection, peer = server.accept()
                self.peers.append(_plain(peer[0]))
                with connection:
                    connection.sendall(name)

    def ask(
        self, where: NetworkNamespace, address: str, port: int = 80, kind: str = "tcp", wait: float = PATIENCE
    ) -> str:
        """What answers at an address."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        types = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM, "sctp": socket.SOCK_STREAM}
        protocol = socket.IPPROTO_SCTP if kind == "sctp" else 0
        with where.run(socket.socket, family, types[kind], protocol) as client:
            client.settimeout(wait)
            try:
                client.connect((address, port))
                if kind == "udp":
                    client.send(b"?")
                return client.recv(100).decode()
            except TimeoutError:
                return "dropped"
            except OSError:
                return "refused"

    def drops(self, where: NetworkNamespace, address: str, port: int = 80) -> bool:
        """Whether nothing answers."""
        return self.ask(where, address, port, wait=DROPPED_AFTER) == "dropped"

    def ask_often(self, where: NetworkNamespace, address: str, port: int = 80, times: int = 40) -> set[str]:
        return {self.ask(where, address, port) for _ in range(times)}


class Proxy:
    """The proxy's core without its shell."""

    def __init__(self, nftables: Nftables, tracked: Conntrack, facts: TableFacts) -> None:
        self.kernel = Kernel(nftables, tracked, FAMILIES)
        self.rulesets = {family.name: Ruleset() for family in FAMILIES}
        self.facts = facts
        self.compiled: dict[str, Compiled] = {}
        self.kernel.replace(self.rulesets, facts)

    def put(self, service, *slices) -> int:  # type: ignore[no-untyped-def]
        """Makes a Service so; how many elements that changed."""
        for family in FAMILIES:
            made = compile_service(service, slices, NODE, family)
            self.compiled[family.name] = made
            self.rulesets[family.name].replace(service.metadata.name, made.entries)
        return self.kernel.update(self.rulesets, self.facts)

    def delete(self, name: str) -> None:
        for ruleset in self.rulesets.values():
            ruleset.replace(name, {})
        self.kernel.update(self.rulesets, self.facts)


@contextmanager
def make_lab(pods: int = 3) -> Iterator[Lab]:
    with ExitStack() as stack:
        node, world = (stack.enter_context(network_namespace()) for _ in range(2))
        made = [stack.enter_context(network_namespace()) for _ in range(pods)]
        for each in (node, world, *made):  # no duplicate address detection
            each.run(_write, "/proc/sys/net/ipv6/conf/default/accept_dad", "0")
        for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            node.run(_write, f"/proc/sys/net/{name}", "1")
        _connect(node, "eth0", "192.0.2.1/24", "fd00:2::1/64", world, "192.0.2.2/24", "fd00:2::2/64", "192.0.2.1")
        node.output("ip", "route", "add", "default", "via", "192.0.2.2")
        node.output("ip", "-6", "route", "add", "default", "via", "fd00:2::2")
        node.output("ip", "link", "add", "cni0", "type", "bridge")
        node.output("ip", "link", "set", "cni0", "up")
        for name in ("cni0", "eth0"):
            node.run(_write, f"/proc/sys/net/ipv4/conf/{name}/send_redirects", "0")
        node.output("ip", "address", "add", "10.1.0.1/24", "dev", "cni0")
        node.output("ip", "address", "add", "fd00:1::1/64", "dev", "cni0", "nodad")
        for number, pod in enumerate(made, 2):
            link = f"veth{number}"
            node.output("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", pod.name)
            node.output("ip", "link", "set", link, "master", "cni0", "up")
            node.output("bridge", "link", "set", "dev", link, "hairpin", "on")
            _address(pod, "eth0", f"10.1.0.{number}/24", f"fd00:1::{number}/64")
            pod.output("ip", "route", "add", "default", "via", "10.1.0.1")
            pod.output("ip", "-6", "route", "add", "default", "via", "fd00:1::1")
        world.output("ip", "route", "add", "10.96.0.0/12", "via", "192.0.2.1")
        lab = Lab(node, world, made)
        try:
            yield lab
        finally:
            lab.close()


def _connect(
    node: NetworkNamespace, name: str, v4: str, v6: str, other: NetworkNamespace, far4: str, far6: str, gateway: str
) -> None:
    node.output("ip", "link", "add", name, "type", "veth", "peer", "name", name, "netns", other.name)
    _address(node, name, v4, v6)
    _address(other, name, far4, far6)
    other.output("ip", "route", "add", "default", "via", gateway)
    other.output("ip", "-6", "route", "add", "default", "via", v6.partition("/")[0])


def _address(where: NetworkNamespace, link: str, v4: str, v6: str) -> None:
    where.output("ip", "link", "set", link, "up")
    where.output("ip", "address", "add", v4, "dev", link)
    where.output("ip", "address", "add", v6, "dev", link, "nodad")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _listen(port: int, kind: str) -> socket.socket:
    """A socket of both IP versions."""
    types = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM, "sctp": socket.SOCK_STREAM}
    made = socket.socket(socket.AF_INET6, types[kind], socket.IPPROTO_SCTP if kind == "sctp" else 0)
    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("::", port))
    if kind != "udp":
        made.listen(100)
    return made


def _plain(address: str) -> str:
    return address.removeprefix("::ffff:")
