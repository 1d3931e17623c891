"""Processes of the node and of other pods: not seen, not signalled, not read, by number or by descriptor.

Vectors: CVE-2019-5736's way through /proc/PID, `pidfd_open` and `pidfd_getfd`, `process_vm_readv`, `ptrace`, `kcmp`.
"""

from __future__ import annotations

from escape.conftest import Scripted
from escape.pods import Pod
from node.machine import Machine

LOOK = """
mine = {int(each) for each in os.listdir("/proc") if each.isdigit()}
found = []
for pid in range(1, 70000):
    if pid in mine:
        continue
    try:
        os.kill(pid, 0)
        found.append(("kill", pid))
    except PermissionError:
        found.append(("seen", pid))
    except ProcessLookupError:
        pass
    if pid < 3000:
        for number in (434, 101 if os.uname().machine == "x86_64" else 117):
            answer = call(number, pid, 0) if number == 434 else call(number, 16, pid, 0, 0)
            if answer not in ("ESRCH", "EINVAL"):
                found.append((number, pid, answer))
print(found, len(mine))
"""


def test_no_process_beside_the_containers_own_is_there_for_it(scripted: Scripted) -> None:
    code, said = scripted.run(LOOK)
    assert code == 0, said
    assert said.startswith("[] "), said


def test_the_environment_of_another_pod_is_not_read(scripted: Scripted, machine: Machine) -> None:
    with Pod(machine) as other:
        other.start("sh", "-c", "TREASURE=hidden exec sleep 1000")
        program = "import glob\nfor each in glob.glob('/proc/[0-9]*/environ'): print(open(each, 'rb').read())"
        code, said = scripted.run(program)
    assert code == 0, said
    assert "PATH=" in said
    assert "hidden" not in said
