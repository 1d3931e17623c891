"""Services that listen on the node's loopback alone, reached from a pod by a packet to 127.0.0.1 on the bridge.

Vector: CVE-2020-8558 (`route_localnet`, which hostPorts switch on).
"""

from __future__ import annotations

import re
import subprocess
import sys

from escape.pods import Pod, interpreter
from node.machine import Machine

PORT = 9999
LISTEN = f"""
import socket, sys
listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("0.0.0.0", {PORT}))
print("ready", flush=True)
listener.settimeout(30)
while True:
    data, _ = listener.recvfrom(100)
    print(data.decode(), flush=True)
    if data == b"last":
        break
"""
SEND = f"""
import socket, struct, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind(("eth0", 0))
def checksum(data):
    total = sum(struct.unpack(f">{{len(data) // 2}}H", data))
    while total >> 16: total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
for target, word in (("127.0.0.1", b"loopback"), ("127.9.9.9", b"loopback too"), ("10.200.0.1", b"last")):
    body = struct.pack(">HHHH", 9, {PORT}, 8 + len(word), 0) + word
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 9, 17, 0,
                       socket.inet_aton(sys.argv[1]), socket.inet_aton(target))
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    raw.send(bytes.fromhex("0a580ac80001") + raw.getsockname()[4] + b"\\x08\\x00" + head + body)
"""


def test_a_pod_does_not_reach_the_nodes_loopback(machine: Machine, runtime_name: str) -> None:
    if runtime_name == "containerd":  # whose plugin checks no addresses; nodes of `up` have this on both runtimes
        machine.run(sys.executable, "-c", "from pybernetes.network import loopback; loopback.protect()")
    machine.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/cni0/route_localnet")
    command = machine.enter([str(interpreter()), "-I", "-c", LISTEN])
    with Pod(machine) as pod, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listener:
        try:
            assert listener.stdout is not None
            assert listener.stdout.readline() == "ready\n"
            id = pod.python_sleeper()
            address = re.search(r"inet ([0-9.]+)", pod.sh(id, "ip -4 addr show eth0").text)
            assert address
            assert pod.exec(id, [str(interpreter()), "-I", "-c", SEND, address[1]]).code == 0
            assert listener.stdout.read() == "last\n"
        finally:
            listener.kill()
            machine.run("sh", "-c", "echo 0 > /proc/sys/net/ipv4/conf/cni0/route_localnet")
