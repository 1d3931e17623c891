"""The address of cluster DNS on a node."""

from __future__ import annotations

import socket

from network.namespace import network_namespace

from pybernetes.network import node_dns


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
