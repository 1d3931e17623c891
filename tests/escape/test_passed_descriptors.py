"""Descriptors handed from one container to another (SCM_RIGHTS), or taken from a runtime's socket.

Vectors: a socket of the runtime that a container inherits or finds, memory files (memfd) as programs where nothing may
be executed, folders of another root by a descriptor.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from escape.pods import Pod, interpreter, python_mounts
from escape.runtimes import ours
from node.machine import Machine

from pybernetes.cri import v1 as cri

OPEN = """
import os, stat, socket
found = []
for name in os.listdir("/proc/self/fd"):
    try:
        kind = os.stat(int(name)).st_mode
    except OSError:
        continue
    found.append((int(name), stat.filemode(kind)[0]))
print(sorted(found))
"""
GIVE = """
import os, socket
server = socket.socket(socket.AF_UNIX)
server.bind("/data/socket")
os.chmod("/data/socket", 0o777)
server.listen()
taker, _ = server.accept()
socket.send_fds(taker, [b"x"], [os.open("/", os.O_PATH), os.open("/proc/self/ns/mnt", os.O_RDONLY)])
taker.recv(1)
"""
TAKE = """
import ctypes, os, socket, time
for _ in range(400):
    try:
        giver = socket.socket(socket.AF_UNIX); giver.connect("/data/socket"); break
    except OSError: time.sleep(0.01)
_, fds, _, _ = socket.recv_fds(giver, 10, 2)
os.chdir(f"/proc/self/fd/{fds[0]}")
for _ in range(40): os.chdir("..")
print(sorted(os.listdir(".")) == sorted(os.listdir(f"/proc/self/fd/{fds[0]}")), os.path.exists("MARK"[1:]))
print(ctypes.CDLL(None).setns(fds[1], 0))
"""


@ours
def test_a_program_has_its_streams_and_no_socket_of_the_runtime(machine: Machine) -> None:
    with Pod(machine) as pod:
        number = pod.start(str(interpreter()), "-I", "-c", OPEN, mounts=python_mounts())
        pod.ended(number)
        first = eval(pod.said())
        second = eval(pod.python(pod.python_sleeper(), OPEN).text)
    for found in (first, second):
        assert [each for each in found if each[0] > 2] in ([], [(3, "d")])
        assert not any(kind == "s" for _, kind in found)


def test_a_folder_of_another_root_leads_no_further_than_that_root(machine: Machine) -> None:
    volume = Path(tempfile.mkdtemp(dir=machine.folder))
    volume.chmod(0o777)
    (mark := machine.folder / "mark-of-the-node").touch()
    mounts = [*python_mounts(), cri.Mount(host_path=str(volume), container_path="/data")]
    with Pod(machine) as pod:
        pod.start(str(interpreter()), "-I", "-c", GIVE, mounts=mounts)
        taker = pod.start(str(interpreter()), "-I", "-c", TAKE.replace("MARK", str(mark)), mounts=mounts)
        pod.ended(taker)
        assert pod.said(2).split() == ["True", "False", "-1"]
