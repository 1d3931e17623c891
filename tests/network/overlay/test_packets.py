"""Pods of different nodes reach each other by every backend, on one switch and across a router; repair and removal."""

from __future__ import annotations

from functools import partial

import pytest
from network.overlay.lab import UNDERLAY, Machine, lab, node

from tools import wait_until

MTU = {"vxlan": 1450, "udp": 1462}


def reaches_all(here: Machine, others: tuple[Machine, ...], version: int) -> bool:
    return all(here.reaches(other, version=version) for other in others)


@pytest.mark.parametrize("backend", ["vxlan", "udp"])
def test_a_tunnel_carries_both_ip_versions_across_a_router_and_follows_the_nodes(backend: str) -> None:
    with lab() as (machines, nodes, _):
        a, b, c = machines.values()
        for machine in (a, b, c):
            machine.start(backend=backend)
        for version in (4, 6):
            reached = partial(reaches_all, a, (b, c), version)
            wait_until(reached, f"IPv{version} is carried", 30)
        assert a.reaches(c, size=MTU[backend] - 28)
        device = "pyb-vxlan" if backend == "vxlan" else "pyb-udp"
        assert f"mtu {MTU[backend]}" in a.host.output("ip", "link", "show", device)

        # What is removed by hand comes back.
        before = a.state()
        assert len(before["routes"]) == 3, before  # two peers and the node's own range
        a.host.output("ip", "route", "flush", "proto", "80")
        wait_until(lambda: a.state() == before, "routes are repaired", 30)
        if backend == "vxlan":
            a.host.output("ip", "neigh", "flush", "dev", "pyb-vxlan", "nud", "permanent")
            for line in before["fdb"]:
                a.host.output("bridge", "fdb", "del", line.split()[0], "dev", "pyb-vxlan")
            a.host.output("ip", "neigh", "add", "10.244.9.0", "lladdr", "0a:58:0a:f4:09:00", "dev", "pyb-vxlan")
            wait_until(lambda: a.state() == before, "neighbours and forwarding entries are repaired", 30)
        a.host.output("ip", "link", "del", device)
        wait_until(lambda: a.reaches(b) and a.reaches(c), "a device that was removed is made again", 30)

        # A node changes its address, a node goes, an agent ends and comes back.
        b.host.output("ip", "addr", "del", f"{UNDERLAY['b']}/24", "dev", "eth0")
        b.host.output("ip", "addr", "add", "10.90.1.77/24", "dev", "eth0")
        b.host.output("ip", "route", "add", "default", "via", "10.90.1.254")
        nodes.set(node("b", "10.90.1.77"))
        wait_until(lambda: a.reaches(b) and c.reaches(b), "the new address is followed", 30)
        a.stop()
        if backend == "vxlan":
            assert a.reaches(b), "routes stay when the agent ends"
        nodes.delete("c")
        a.start(backend=backend)
        wait_until(lambda: len(a.state()["routes"]) == 2, "the routes of a node that is gone are removed", 30)
        assert not any("10.90.2.3" in line or "10.244.3" in line for lines in a.state().values() for line in lines)
        assert a.reaches(b)


def test_a_route_that_the_kernel_refuses_costs_no_other() -> None:
    with lab() as (machines, _, _router):
        a, b, c = machines.values()
        # A route to the gateway of c's IPv6 range over another link: the kernel takes none through the tunnel then.
        a.host.output("ip", "-6", "route", "add", "fd00:3::/48", "dev", "eth0")
        for machine in (a, b, c):
            machine.start(backend="vxlan")
        wait_until(lambda: a.reaches(b) and a.reaches(c) and a.reaches(b, version=6), "the others are reached", 30)
        assert not any("fd00:3::/64" in line for line in a.state()["routes6"])


def test_host_gw_and_direct_routing_use_plain_routes_where_nodes_share_a_link() -> None:
    with lab() as (machines, _, router):
        a, b, c = machines.values()
        for machine in (a, b, c):
            machine.start(backend="vxlan", direct=True)
        wait_until(lambda: a.reaches(b) and a.reaches(c), "pods are reached", 30)
        routes = a.state()["routes"]
        assert any(line.startswith("10.244.2.0/24 via 10.90.1.2 dev eth0") for line in routes), routes
        assert any(line.startswith("10.244.3.0/24 via 10.244.3.0 dev pyb-vxlan") for line in routes), routes
        # Another backend takes over: nothing of the first is left.
        for machine in (a, b, c):
            machine.stop()
            machine.start(backend="host-gw")
        wait_until(lambda: not a.state()["links"] and a.reaches(b) and b.reaches(a), "plain routes", 30)
        assert not a.reaches(c), "the router knows no pods"
        assert not any("10.244.3" in line for line in a.state()["routes"])
        router.output("ip", "route", "add", "10.244.1.0/24", "via", UNDERLAY["a"])
        router.output("ip", "route", "add", "10.244.3.0/24", "via", UNDERLAY["c"])
        assert a.reaches(c), "routes of the routers are used"
        assert a.reaches(b, size=1472)
