"""A container changes the pipes that its output goes through: it holds up neither the runtime nor other containers.

Vectors: flags, size and owner of a pipe whose other end is the launcher's; a reader that takes its own output away.
"""

from __future__ import annotations

from escape.conftest import Inside
from escape.pods import Pod, interpreter, python_mounts
from escape.runtimes import ours
from node.machine import Machine

CHANGE = """
import fcntl, os, signal
for number in (1, 2):
    for operation, value in ((1031, 4096), (1031, 1 << 20), (fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC),
                             (fcntl.F_SETOWN, os.getpid()), (10, signal.SIGKILL), (1026, 1), (1024, 1)):
        try:
            fcntl.fcntl(number, operation, value)
        except OSError:
            pass
reader = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
for _ in range(2000):
    try:
        os.write(1, b"x" * 65536)
    except BlockingIOError:
        try:
            os.read(reader, 4096)
        except BlockingIOError:
            pass  # the launcher was faster
fcntl.fcntl(1, fcntl.F_SETFL, 0)
os.write(1, b"\\nlast\\n")
"""


@ours
def test_the_runtime_serves_others_meanwhile(machine: Machine, inside: Inside) -> None:
    with Pod(machine) as pod:
        id = pod.start(str(interpreter()), "-I", "-c", CHANGE, mounts=python_mounts())
        for _ in range(5):
            assert inside.sh("echo fine") == (0, "fine\n")
        assert pod.ended(id).exit_code == 0
        second = pod.start("echo", "logged")
        pod.ended(second)
        assert pod.said(2) == "logged\n"
