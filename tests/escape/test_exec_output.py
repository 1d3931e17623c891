"""A command of a probe that writes without an end: the runtime keeps a part of it, and ends the command in time.

Vector: CVE-2022-31030 (all output of ExecSync was kept in memory).
"""

from __future__ import annotations

from pathlib import Path

from cri.embedded.machine import EmbeddedMachine
from escape.conftest import Inside
from escape.runtimes import ours
from node.machine import child_of

pytestmark = ours
MOST = 100 << 20


def memory(machine: EmbeddedMachine) -> int:
    """The most that the runtime ever had."""
    assert machine._runtime is not None
    pid = child_of(machine._runtime.pid)
    status = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    return int(status["VmHWM"].split()[0]) << 10


def test_output_without_an_end_is_bounded(inside: Inside, machine: EmbeddedMachine) -> None:
    before = memory(machine)
    answer = inside.pod.exec(inside.id, ["sh", "-c", "yes | head -c 300000000; yes >&2"], timeout=3)
    assert answer.code == -1, "it is ended when its time is over"
    assert memory(machine) - before < MOST
    code, said = inside.sh("yes | head -c 30000000")
    assert (code, 0 < len(said) <= 16 << 20) == (0, True)
