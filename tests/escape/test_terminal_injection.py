"""A program that has a terminal pushes characters into it (TIOCSTI, TIOCLINUX), or looks for other terminals.

Vectors: CVE-2016-2568's and CVE-2017-5226's way (characters typed for the next reader of the terminal),
terminals of the node in /dev/pts, the console.
"""

from __future__ import annotations

from escape.pods import SYSTEM_CALL, Pod, interpreter, python_mounts
from node.machine import Machine

PROGRAM = """
import fcntl, os
found = []
for path in ("/dev/tty", "/dev/console", *(f"/dev/tty{n}" for n in range(4)), "/dev/ttyS0", "/dev/vcs", "/dev/kmsg"):
    try:
        found.append((path, os.major(os.fstat(os.open(path, os.O_RDWR | os.O_NOCTTY)).st_rdev)))
    except OSError:
        pass
print("terminals", found)
print("pts", sorted(os.listdir("/dev/pts")))
print("own", os.ttyname(0), os.getsid(0) == os.getpid(), os.tcgetpgrp(0) == os.getpgrp())
for number in (0x5412, 0x541C):
    try:
        fcntl.ioctl(0, number, b"x")
        print("pushed", hex(number))
    except OSError as error:
        print("refused", hex(number))
"""


def test_a_container_has_one_terminal_of_its_own_and_no_other(machine: Machine) -> None:
    with Pod(machine) as pod:
        id = pod.start(str(interpreter()), "-I", "-c", PROGRAM, mounts=python_mounts(), tty=True)
        pod.ended(id)
        lines = dict(line.split(" ", 1) for line in pod.said().replace("\r", "").splitlines() if "0x" not in line)
    assert eval(lines["pts"]) == ["0", "ptmx"]
    assert {major for _, major in eval(lines["terminals"])} <= {5, 136}  # its own, by several names
    assert lines["own"].split()[1:] == ["True", "True"]


def test_without_a_terminal_there_is_none_to_push_into(machine: Machine) -> None:
    with Pod(machine) as pod:
        id = pod.python_sleeper()
        script = "import os\nprint([os.isatty(n) for n in range(3)])\nos.open('/dev/tty', os.O_RDWR)"
        answer = pod.python(id, SYSTEM_CALL + script)
    assert "[False, False, False]" in answer.text
    assert "Error" in answer.text, "there is no controlling terminal"
