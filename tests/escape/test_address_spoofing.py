"""A pod, which may send raw packets, says that it is the gateway or another pod.

Vectors: ARP and neighbour advertisements for other addresses (CVE-2020-10749: router advertisements), packets with
another source, another hardware address, link-local addresses that no policy knows, tags of VLANs, and what bridges
say to each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from escape.pods import Pod, interpreter, python_mounts
from escape.runtimes import ours
from node.machine import Machine

pytestmark = ours

TOOLS = """
import socket, struct, sys, time
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.bind(("eth0", 0))
own = raw.getsockname()[4]
everybody, theirs = b"\\xff" * 6, bytes.fromhex("0a58deadbeef")
"""
LISTEN = (
    TOOLS
    + """
print("ready", flush=True)
raw.settimeout(30)
while True:
    frame = raw.recv(65536)
    found = frame.find(b"MARK:")
    if found >= 0 and frame[6:12] != own:
        name = frame[found + 5 : frame.index(b";", found)].decode()
        print(name, flush=True)
        if name == "last":
            break
"""
)
SEND = (
    TOOLS
    + """
me, other = socket.inet_aton(sys.argv[1]), socket.inet_aton(sys.argv[2])
def mark(name): return b"MARK:%b;" % name.encode()
def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16: total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
def ip(source, name):
    body = struct.pack(">HHHH", 9, 9, 8 + len(mark(name)), 0) + mark(name)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 9, 17, 0, source, b"\\xff" * 4)
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + body
def arp(mac, address, name, operation=2):
    return struct.pack(">HHBBH6s4s6s4s", 1, 0x800, 6, 4, operation, mac, address, everybody, address) + mark(name)
def icmp(kind, body, name, source):
    return ipv6(58, struct.pack(">BBH", kind, 0, 0) + body + mark(name), source)
def ipv6(protocol, payload, source, target=b"\\xff\\2" + bytes(13) + b"\\1"):
    return struct.pack(">IHBB", 6 << 28, len(payload), protocol, 255) + source + target + payload
def udp(name):
    return struct.pack(">HHHH", 9, 9, 8 + len(mark(name)), 0) + mark(name)
local = b"\\xfe\\x80" + bytes(13) + b"\\7"
world = b"\\xfd\\0" + bytes(13) + b"\\7"
frames = {
    "arp of the gateway": (own, 0x806, arp(own, other, "arp of the gateway")),
    "arp request of the gateway": (own, 0x806, arp(own, other, "arp request of the gateway", 1)),
    "arp with another mac": (own, 0x806, arp(theirs, me, "arp with another mac")),
    "ip of the gateway": (own, 0x800, ip(other, "ip of the gateway")),
    "ip of no host": (own, 0x800, ip(bytes(4), "ip of no host")),
    "another mac": (theirs, 0x800, ip(me, "another mac")),
    "router advertisement": (own, 0x86dd, icmp(134, bytes(12), "router advertisement", local)),
    "redirect": (own, 0x86dd, icmp(137, bytes(36), "redirect", local)),
    "neighbour advertisement": (own, 0x86dd, icmp(136, bytes(4) + world, "neighbour advertisement", local)),
    "ipv6 of somebody": (own, 0x86dd, icmp(128, bytes(4), "ipv6 of somebody", world)),
    "past policies": (own, 0x86dd, ipv6(17, udp("past policies"), local, local[:-1] + b"\\x08")),
    "to all": (own, 0x86dd, ipv6(17, udp("to all"), local)),
    "vlan": (own, 0x8100, struct.pack(">HH", 1, 0x800) + ip(other, "vlan")),
    "double tag": (own, 0x88a8, struct.pack(">HH", 1, 0x800) + ip(other, "double tag")),
    "bridge": (own, 60, b"\\x42\\x42\\3" + bytes(40) + mark("bridge")),
    "own ip": (own, 0x800, ip(me, "own ip")),
    "own arp": (own, 0x806, arp(own, me, "own arp")),
    "own neighbour": (own, 0x86dd, icmp(136, bytes(4) + local, "own neighbour", local)),
    "last": (own, 0x800, ip(me, "last")),
}
for name, (source, kind, body) in frames.items():
    raw.send(everybody + source + struct.pack(">H", kind) + body)
"""
)


OWN = {"own ip", "own arp", "own neighbour", "to all", "last"}


@dataclass
class Heard:
    """What another pod received, by name."""

    names: set[str]


@pytest.fixture(scope="module")
def heard(machine: Machine) -> Heard:
    with Pod(machine) as victim, Pod(machine) as attacker:
        listener = victim.start(str(interpreter()), "-I", "-c", LISTEN, mounts=python_mounts())
        while "ready" not in victim.said():
            pass
        id = attacker.python_sleeper()
        address = re.search(r"inet ([0-9.]+)", attacker.sh(id, "ip -4 addr show eth0").text)
        assert address
        command = [str(interpreter()), "-I", "-c", SEND, address[1], "10.200.0.1"]
        answer = attacker.exec(id, command)
        assert answer.code == 0, answer.text
        victim.ended(listener)
        return Heard(set(victim.said().splitlines()) - {"ready"})


def test_what_a_pod_sends_as_itself_arrives(heard: Heard) -> None:
    assert heard.names >= OWN


def test_packets_with_a_spoofed_source_are_dropped(heard: Heard) -> None:
    assert heard.names - OWN == set()
