"""The address of cluster DNS on a node."""

from __future__ import annotations

import socket
from collections import Counter

import pytest
from network.namespace import network_namespace
from proxy.lab import make_lab

from pybernetes.network import node_dns
from pybernetes.network.nftables.batch import Batch
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


def test_a_pod_that_asks_without_end_is_limited_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_dns, "RATE", 1)
    monkeypatch.setattr(node_dns, "BURST", 10)
    with make_lab(pods=2) as lab:
        lab.node.run(node_dns.hold, "10.96.0.10")
        with lab.node.run(socket.socket, socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("10.96.0.10", 53))
            server.settimeout(10)
            for sender, count in ((lab.pods[0], 200), (lab.pods[1], 1), (lab.node, 30)):
                with sender.run(socket.socket, socket.AF_INET, socket.SOCK_DGRAM) as client:
                    for _ in range(count):
                        client.sendto(b"?", ("10.96.0.10", 53))
            asked: Counter[str] = Counter()
            while asked.total() - asked["10.1.0.2"] < 31:
                asked[server.recvfrom(10)[1][0]] += 1
        assert 10 <= asked["10.1.0.2"] < 100
        assert asked["10.1.0.3"] == 1


def test_a_kernel_without_limits_has_the_rules_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Nftables.commit

    def refuse(self: Nftables, batch: Batch, generation: int | None = None) -> None:
        if any(b"limit" in each for each in batch.messages()):
            raise FileNotFoundError("limit")
        real(self, batch, generation)

    monkeypatch.setattr(Nftables, "commit", refuse)
    with network_namespace("nft") as node:
        node.run(node_dns.hold, "10.96.0.10")
        with node.run(Nftables) as nftables:
            assert node.run(node_dns.held, nftables, "10.96.0.10")
