"""What a process may: no inheritable capabilities, none beyond those asked for, none at all for other users.

Vectors: CVE-2022-24769 and CVE-2022-29162 (inheritable capabilities that were not empty), commands with more
capabilities than their container, capabilities gained by a program's file.
"""

from __future__ import annotations

import pytest
from escape.conftest import Inside
from escape.pods import Pod, confined
from node.machine import Machine

from pybernetes.cri import capabilities

USUAL = capabilities.mask(capabilities.DEFAULT, (1 << 64) - 1)
SETS = "CapInh|CapPrm|CapEff|CapBnd|CapAmb"


def sets(text: str) -> dict[str, int]:
    return {line.split(":")[0]: int(line.split()[1], 16) for line in text.splitlines() if line.startswith("Cap")}


@pytest.mark.parametrize("process", ["1", "self"])
def test_root_in_a_container_has_the_usual_capabilities_and_inherits_none(inside: Inside, process: str) -> None:
    found = sets(inside.sh(f"grep -E '{SETS}' /proc/{process}/status")[1])
    assert found["CapInh"] == found["CapAmb"] == 0
    assert found["CapEff"] == found["CapPrm"] == found["CapBnd"]
    assert found["CapBnd"] & ~USUAL == 0


def test_another_user_has_none_and_gains_none_by_a_file(machine: Machine) -> None:
    with Pod(machine) as pod:
        linux = confined()
        linux.security_context.run_as_user.value = 1000
        id = pod.sleeper(linux=linux)
        script = f"cp /bin/busybox /tmp/grep && chmod 6755 /tmp/grep; /tmp/grep -E '{SETS}' /proc/self/status"
        for text in (pod.sh(id, f"grep -E '{SETS}' /proc/1/status").text, pod.sh(id, script).text):
            found = sets(text)
            assert (found["CapEff"], found["CapPrm"], found["CapInh"], found["CapAmb"]) == (0, 0, 0, 0)


def test_what_was_dropped_does_not_come_back_in_a_command(machine: Machine) -> None:
    with Pod(machine) as pod:
        linux = confined()
        linux.security_context.capabilities.drop_capabilities.append("ALL")
        id = pod.sleeper(linux=linux)
        for process in ("1", "self"):
            assert set(sets(pod.sh(id, f"grep -E '{SETS}' /proc/{process}/status").text).values()) == {0}
