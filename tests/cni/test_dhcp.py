"""Leases of pods from a real DHCP server (dnsmasq): given, renewed, given back, kept over a restart of the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import threading
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
from cni.conftest import Lab
from cni.test_more_plugins import network, runtime, with_uplink
from cni.test_plugins import runtimes

import tools
from pybernetes.cni.dhcp import message
from pybernetes.cni.dhcp.daemon import Daemon, result
from pybernetes.cni.errors import CNIError


class Daemons:
    """The daemon, in a thread that may be started again."""

    def __init__(self, folder: Path) -> None:
        self.socket, self._state = str(folder / "dhcp.sock"), folder / "leases"

    @contextlib.contextmanager
    def running(self) -> Iterator[Daemon]:
        started, done, made = threading.Event(), threading.Event(), Daemon(self._state)

        async def run() -> None:
            await made.start(self.socket)
            started.set()
            await asyncio.to_thread(done.wait)
            await made.stop()

        thread = threading.Thread(target=asyncio.run, args=(run(),))
        thread.start()
        try:
            assert started.wait(20)
            yield made
        finally:
            done.set()
            thread.join(20)


@contextlib.contextmanager
def dnsmasq(lab: Lab, folder: Path, link: str) -> Iterator[Path]:
    """A DHCP server on a link of the node; its log."""
    if shutil.which("dnsmasq", path="/usr/sbin:/usr/bin:/sbin") is None:
        pytest.skip("not installed: dnsmasq")
    lab.output(lab.node, "ip", "address", "add", "10.77.1.1/24", "dev", link)
    log = folder / "dnsmasq.log"
    argv = [
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", f"--interface={link}", "--bind-dynamic",
        "--dhcp-range=10.77.1.50,10.77.1.60,1h", "--dhcp-authoritative", "--no-ping", "--user=root",
        "--dhcp-option=option:router,10.77.1.1", "--dhcp-option=option:dns-server,10.96.0.10",
        "--dhcp-option=option:domain-name,shop.example",
        f"--dhcp-leasefile={folder / 'given'}", "--pid-file=", f"--log-facility={log}", "--log-dhcp",
    ]  # fmt: skip
    server = lab.run(lab.node, subprocess.Popen, argv)
    try:
        tools.wait_until(lambda: log.exists() and "DHCP, sockets bound" in log.read_text(), "the server runs")
        yield log
    finally:
        server.terminate()
        server.wait(10)


def with_dhcp(folder: Path, daemons: Daemons, kind: str) -> Any:
    ipam = {"type": "dhcp", "daemonSocketPath": daemons.socket}
    first: dict[str, Any] = {"type": kind, "ipam": ipam}
    first |= {"bridge": "cni0"} if kind == "bridge" else {"master": "up0"}
    return network(folder, first)


@pytest.mark.parametrize("kind", ["bridge", "macvlan"])
def test_a_pod_gets_keeps_and_gives_back_what_the_server_gave(
    lab: Lab, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # dnsmasq gives no lease that is renewed in less than a minute.
    monkeypatch.setattr(message.Answer, "times", lambda _: (0.3, 3000.0, 3600.0))
    daemons, cni = Daemons(tmp_path), runtimes(tmp_path)["process"]
    made = with_dhcp(tmp_path, daemons, kind)
    with_uplink(lab)
    for command in ("link add cni0 type bridge", "link set cni0 up"):
        lab.output(lab.node, "ip", *command.split())
    with dnsmasq(lab, tmp_path, "cni0" if kind == "bridge" else "far0") as log:
        with daemons.running():
            found = lab.run(lab.node, cni.add, made, runtime(lab))
            (ip,) = found["ips"]
            assert IPv4Address(ip["address"].split("/")[0]) in IPv4Network("10.77.1.0/24")
            assert (ip["address"].split("/")[1], ip["gateway"]) == ("24", "10.77.1.1")
            assert found["routes"] == [{"dst": "0.0.0.0/0", "gw": "10.77.1.1"}]
            assert "default via 10.77.1.1" in lab.output(lab.pods[0], "ip", "route")
            lab.run(lab.node, cni.check, made, runtime(lab))
            tools.wait_until(lambda: log.read_text().count("DHCPACK(") > 1, "it is renewed")
        renewed = log.read_text().count("DHCPACK(")
        with daemons.running():
            # The new daemon goes on with the lease, and gives it back.
            tools.wait_until(lambda: log.read_text().count("DHCPACK(") > renewed, "it is renewed again")
            lab.run(lab.node, cni.check, made, runtime(lab))
            if kind == "macvlan":  # of a bridge the link is gone when the lease is given back
                lab.run(lab.node, cni.delete, made, runtime(lab))
                tools.wait_until(lambda: "DHCPRELEASE(" in log.read_text(), "it is given back")
            lab.run(lab.node, cni.delete, made, runtime(lab))
        assert list((tmp_path / "leases").iterdir()) == []


def test_without_a_daemon_or_a_server_an_attachment_fails_in_plain_words(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemons, cni = Daemons(tmp_path), runtimes(tmp_path)["process"]
    made = with_dhcp(tmp_path, daemons, "bridge")
    with pytest.raises(CNIError, match="pyb cni dhcp-daemon") as raised:
        lab.run(lab.node, cni.add, made, runtime(lab))
    assert raised.value.code == 11
    lab.run(lab.node, cni.delete, made, runtime(lab))
    monkeypatch.setattr("pybernetes.cni.dhcp.lease.TRIES", (0.05, 0.05))
    with daemons.running():
        with pytest.raises(CNIError, match="no DHCP server answers"):
            lab.run(lab.node, cni.add, made, runtime(lab, 1))
        lab.run(lab.node, cni.delete, made, runtime(lab, 1))


def answer(options: bytes, *, op: int = 2) -> bytes:
    head = bytes([op, 1, 6, 0]) + bytes(12) + bytes([10, 0, 0, 9]) + bytes(8) + b"\2\0\0\0\0\1".ljust(16, b"\0")
    return head.ljust(236, b"\0") + b"\x63\x82\x53\x63" + options


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(300),
        answer(b"\xff"),
        answer(b"\x35\x01\x05\xff", op=1),
        answer(b"\x35\x09\x05"),
        answer(b"\x35"),
        answer(b"\x35\x02\x05\x05\xff"),
    ],
)
def test_messages_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(message.MessageError):
        message.read(data)


def test_classless_routes_replace_the_router_and_long_options_come_in_pieces() -> None:
    ack = b"\x35\x01\x05\x01\x04\xff\xff\xff\x00\x03\x04\x0a\x00\x00\x01"
    found = message.read(answer(ack + b"\x79\x05\x00\x0a\x00\x00\x02\x79\x08\x18\xc0\x00\x02\x0a\x00\x00\x03\xff"))
    assert result(found)["routes"] == [
        {"dst": "0.0.0.0/0", "gw": "10.0.0.2"},
        {"dst": "192.0.2.0/24", "gw": "10.0.0.3"},
    ]
    assert result(message.read(answer(ack + b"\xff"))) == {
        "ips": [{"address": "10.0.0.9/24", "gateway": "10.0.0.1"}],
        "routes": [{"dst": "0.0.0.0/0", "gw": "10.0.0.1"}],
    }
    with pytest.raises(message.MessageError, match="cut off"):
        result(message.read(answer(ack + b"\x79\x03\x18\xc0\x00\xff")))


def test_times_of_a_lease() -> None:
    def times(options: bytes) -> Any:
        return message.read(answer(b"\x35\x01\x05" + options + b"\xff")).times()

    assert times(b"\x33\x04\x00\x00\x0e\x10") == (1800.0, 3150.0, 3600)
    assert times(b"\x33\x04\xff\xff\xff\xff") is None
    assert times(b"\x33\x04\x00\x00\x00\x00") == (5.0, 8.75, 10)
    assert times(b"\x33\x04\x00\x00\x0e\x10\x3a\x04\x00\x00\xff\xff") == (3150.0, 3150.0, 3600)
