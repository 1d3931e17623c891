"""With host-gw, nodes behind a router are reached by routes of a routing daemon: Debian's BIRD speaks BGP there."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

from network.namespace import NetworkNamespace, network_namespace
from network.overlay.lab import UNDERLAY, lab

from tools import wait_until

_COMMON = """
router id {id};
protocol device {{ scan time 1; }}
protocol kernel {{ learn; scan time 1; ipv4 {{ import all; export where source = RTS_BGP; }}; }}
"""
_BGP = """
protocol bgp {{ local {local} as {own}; neighbor {neighbour} as {other};
  connect retry time 1; connect delay time 1; error wait time 1, 2;
  ipv4 {{ import all; export where net ~ 10.244.0.0/16; next hop self; }}; }}
"""


def bird(stack: ExitStack, namespace: NetworkNamespace, folder: Path, text: str) -> None:
    config = folder / f"{namespace.name}.conf"
    config.write_text(text)
    argv = ["/usr/sbin/bird", "-f", "-c", str(config), "-s", f"{config}.ctl", "-P", f"{config}.pid"]
    process = namespace.run(lambda: subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    stack.callback(process.wait)
    stack.callback(process.kill)


def test_bird_carries_the_ranges_of_nodes_across_a_router(tmp_path: Path) -> None:
    with network_namespace("bird"), lab() as (machines, _, router), ExitStack() as stack:
        a, b, c = machines.values()
        for machine in (a, b, c):
            machine.start(backend="host-gw")
        wait_until(lambda: a.reaches(b), "nodes on one link need no daemon", 30)
        assert not a.reaches(c)
        sides = {"a": ("10.90.1.254", 65001), "c": ("10.90.2.254", 65003)}
        text = _COMMON.format(id="10.90.1.254")
        for name, (local, number) in sides.items():
            text += _BGP.format(local=local, own=65000, neighbour=UNDERLAY[name], other=number)
            own = _BGP.format(local=UNDERLAY[name], own=number, neighbour=local, other=65000)
            bird(stack, machines[name].host, tmp_path, _COMMON.format(id=UNDERLAY[name]) + own)
        bird(stack, router, tmp_path, text)
        wait_until(lambda: a.reaches(c) and c.reaches(a), "BGP has carried the ranges", 60)
        assert "proto bird" in a.host.output("ip", "route", "show", "10.244.3.0/24")
        assert a.reaches(b), "our own routes are as they were"
