"""ARP and neighbour solicitations for load balancer addresses, asked by a real kernel on the other end of a cable."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from network.namespace import NetworkNamespace, network_namespace

from pybernetes.cni.netlink.rtnl import Link, Netlink
from pybernetes.network.loadbalancer import neighbors
from pybernetes.network.loadbalancer.responder import Responder

V4, OTHER = ipaddress.ip_address("192.0.2.100"), ipaddress.ip_address("192.0.2.101")
V6 = ipaddress.ip_address("fd00:2::100")


@pytest.fixture
def pair() -> Iterator[tuple[NetworkNamespace, NetworkNamespace]]:
    """A node and a client, with a cable between them."""
    with ExitStack() as stack:
        node, client = (stack.enter_context(network_namespace()) for _ in range(2))
        for each in (node, client):
            each.run(_write, "/proc/sys/net/ipv6/conf/default/accept_dad", "0")
        node.output("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", client.name)
        for each, number in ((node, 1), (client, 2)):
            each.output("ip", "link", "set", "eth0", "up")
            each.output("ip", "address", "add", f"192.0.2.{number}/24", "dev", "eth0")
            each.output("ip", "address", "add", f"fd00:2::{number}/64", "dev", "eth0", "nodad")
        yield node, client


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _link() -> Link:
    with Netlink() as netlink:
        return netlink.link("eth0")


async def neighbour(client: NetworkNamespace, address: object) -> str:
    """The MAC that the client's kernel finds for an address; empty without an answer."""
    family = socket.AF_INET6 if ":" in str(address) else socket.AF_INET
    with client.run(socket.socket, family, socket.SOCK_DGRAM) as probe:
        probe.sendto(b"?", (str(address), 9))
    for _ in range(500):
        shown = client.output("ip", "neigh", "show", str(address)).split()
        if "lladdr" in shown:
            return shown[shown.index("lladdr") + 1]
        if "FAILED" in shown:
            return ""
        await asyncio.sleep(0.02)
    return ""


@pytest.mark.parametrize("address", [V4, V6], ids=str)
async def test_a_client_finds_the_node_at_an_announced_address_and_only_there(
    pair: tuple[NetworkNamespace, NetworkNamespace], address: ipaddress.IPv4Address | ipaddress.IPv6Address
) -> None:
    node, client = pair
    link = node.run(_link)
    responder = Responder(link)
    try:
        node.run(responder.set, {address})
        assert await neighbour(client, address) == link.mac
        for version in ("ipv4", "ipv6"):  # the kernel asks three times before it gives up
            client.run(_write, f"/proc/sys/net/{version}/neigh/eth0/retrans_time_ms", "50")
        assert await neighbour(client, address + 1) == ""
        node.run(responder.set, set())
        client.output("ip", "neigh", "flush", "all")
        assert await neighbour(client, address) == ""
    finally:
        responder.close()


@pytest.mark.parametrize("address", [V4, V6], ids=str)
async def test_a_client_that_knew_another_node_follows_the_announcement(
    pair: tuple[NetworkNamespace, NetworkNamespace], address: ipaddress.IPv4Address | ipaddress.IPv6Address
) -> None:
    node, client = pair
    old = ("ip", "neigh", "replace", str(address), "lladdr", "02:00:00:00:00:09", "dev", "eth0", "nud", "stale")
    client.output(*old)
    link = node.run(_link)
    responder = Responder(link)
    try:
        node.run(responder.set, {address})
        for _ in range(500):
            if link.mac in client.output("ip", "neigh", "show", str(address)):
                break
            await asyncio.sleep(0.02)
        else:
            pytest.fail(client.output("ip", "neigh"))
    finally:
        responder.close()


def test_garbage_is_no_request() -> None:
    asked = bytes(12) + b"\x08\x06" + bytes.fromhex("0001080006040001") + b"\x02\0\0\0\0\x01\xc0\0\x02\x02" + bytes(6)
    good = asked + V4.packed
    request = neighbors.parse_arp(good)
    assert request is not None
    assert request.target == V4.packed
    assert neighbors.parse_arp(neighbors.arp_reply(bytes(6), request)) is None
    for cut in range(len(good)):
        assert neighbors.parse_arp(good[:cut]) is None
    assert neighbors.solicited_target(bytes([135, 0]) + bytes(22)) == bytes(16)
    for message in (b"", bytes([135]), bytes([136, 0]) + bytes(22), bytes([135, 0, 0, 0, 0, 0, 0, 0]) + b"\xff" * 16):
        assert neighbors.solicited_target(message) is None


def test_the_group_of_an_address_is_the_kernels() -> None:
    assert neighbors.solicited_node(V6.packed) == ipaddress.ip_address("ff02::1:ff00:100").packed
