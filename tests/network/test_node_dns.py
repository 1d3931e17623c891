"""The address of cluster DNS on a node."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest
from network.namespace import network_namespace

import tools
from pybernetes.network import node_dns
from pybernetes.network.nftables.client import Nftables


def test_a_node_holds_the_address_and_tracks_no_lookup() -> None:
    with network_namespace("nft", "conntrack") as node:
        for _ in range(2):  # a process that was started again
            node.run(node_dns.hold, "10.96.0.10")
        assert node.output("ip", "-br", "address", "show", "lo").count("10.96.0.10/32") == 1
        shown = [line.strip() for line in node.output("nft", "list", "table", "ip", "node-dns").splitlines()]
        assert shown.count("ip daddr 10.96.0.10 th dport 53 notrack") == 2
        assert shown.count("ip saddr 10.96.0.10 th sport 53 notrack") == 2
        server = node.run(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
        client = node.run(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
        with server, client:
            server.bind(("10.96.0.10", 53))
            client.settimeout(10)
            client.sendto(b"?", ("10.96.0.10", 53))
            _, peer = server.recvfrom(10)
            server.sendto(b"!", peer)
            assert client.recv(10) == b"!"
        assert "dport=53" not in node.output("conntrack", "-L")


@pytest.mark.parametrize(
    "removed",
    [
        ["nft", "delete", "table", "ip", "node-dns"],
        ["nft", "flush", "chain", "ip", "node-dns", "output"],
        ["ip", "address", "delete", "10.96.0.10/32", "dev", "lo"],
    ],
)
async def test_what_others_take_away_is_put_back(removed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_dns, "REPAIR_INTERVAL", 0.01)
    with network_namespace("nft") as node:

        def keep() -> None:
            asyncio.run(until_done())

        async def until_done() -> None:
            task = asyncio.create_task(node_dns.keep("10.96.0.10"))
            await asyncio.to_thread(done.wait)
            task.cancel()
            await asyncio.wait([task])

        def whole() -> bool:
            with Nftables() as nftables:
                return node_dns.held(nftables, "10.96.0.10")

        done = threading.Event()
        thread = threading.Thread(target=node.run, args=(keep,))
        thread.start()
        try:
            for _ in range(2):
                await asyncio.to_thread(tools.wait_until, lambda: node.run(whole), "it is held")
                node.output(*removed)
        finally:
            done.set()
            thread.join(10)
