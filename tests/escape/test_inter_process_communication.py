"""Shared memory, message queues, semaphores and abstract sockets of the node and of other pods are not there.

Vectors: System V and POSIX IPC, CVE-2020-15257 (containerd-shim's abstract socket on the host's network).
"""

from __future__ import annotations

import re

import pytest
from escape.conftest import Scripted
from escape.pods import SYSTEM_CALL, Pod
from escape.runtimes import ours
from node import cri_pods
from node.machine import Machine

from pybernetes.cri import v1 as cri

KEY = 0x50594245
MAKE = f"print(call(29, {KEY}, 4096, 0o1666), call(68, {KEY}, 0o1666), call(64, {KEY}, 1, 0o1666))"
FIND = f"print(call(29, {KEY}, 0, 0), call(68, {KEY}, 0), call(64, {KEY}, 0, 0))"
BIND = """
import socket, time
server = socket.socket(socket.AF_UNIX)
server.bind("\\0pybernetes-attack")
server.listen()
print(open("/proc/net/unix").read().count("pybernetes-attack"))
"""


@pytest.mark.skipif("__import__('os').uname().machine != 'x86_64'", reason="numbers of x86-64")
def test_one_pods_shared_memory_queues_and_semaphores_are_not_anothers(scripted: Scripted, machine: Machine) -> None:
    code, said = scripted.run(MAKE)
    assert code == 0, said
    assert "E" not in said, said
    assert "ENOENT" not in scripted.run(FIND)[1]
    with Pod(machine) as other:
        id = other.python_sleeper()
        answer = other.python(id, SYSTEM_CALL + FIND)
    assert answer.text.split() == ["ENOENT"] * 3, answer


def test_queues_and_memory_of_the_node_are_not_mounted(scripted: Scripted) -> None:
    scripted.run("open('/dev/shm/mine', 'w').close()")
    code, said = scripted.run("print(os.listdir('/dev/shm'), os.listdir('/dev/mqueue'))")
    assert (code, said.strip()) == (0, "['mine'] []")


@ours
def test_nothing_of_the_node_listens_where_a_pod_on_its_network_could_connect(machine: Machine) -> None:
    config = cri_pods.sandbox_config(machine)
    config.linux.security_context.namespace_options.network = cri.NODE
    with Pod(machine, config) as pod:
        linux = cri.LinuxContainerConfig(security_context={"namespace_options": {"network": cri.NODE}})
        id = pod.python_sleeper(linux=linux)
        assert pod.python(id, BIND).text.strip() == "1"
        sockets = pod.python(id, "print(open('/proc/net/unix').read())").text
    abstract = re.findall(r" (@\S+)$", sockets, re.MULTILINE)
    assert abstract == [], "a socket that has no file has no owner and no mode"
