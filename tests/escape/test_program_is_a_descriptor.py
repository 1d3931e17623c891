"""A program that is named by a descriptor of the runtime: /proc/self/fd/N, /dev/fd/N, /proc/1/exe.

Vectors: CVE-2024-21626 (process.args), CVE-2019-5736 (a program in place of the runtime's own).
"""

from __future__ import annotations

import pytest
from escape.pods import Pod
from escape.runtimes import ours
from node.machine import Machine

from pybernetes.cri.errors import CRIError


@ours  # runc 1.1.5 answers 0 for its own third one
@pytest.mark.parametrize("folder", ["/proc/self/fd", "/dev/fd", "/proc/thread-self/fd"])
def test_no_descriptor_of_the_runtime_is_a_program(machine: Machine, folder: str) -> None:
    with Pod(machine) as pod:
        id = pod.sleeper()
        ran = []
        for number in range(16):
            try:
                pod.ended(pod.start(f"{folder}/{number}", "--version"))
                ran.append(number)
            except CRIError:
                pass
            answer = pod.exec(id, [f"{folder}/{number}", "--version"])
            if answer.code == 0:
                ran.append(number)
            assert "Python" not in answer.text
    assert ran == []


def test_the_first_process_of_a_pod_is_no_program_of_the_node(machine: Machine) -> None:
    with Pod(machine) as pod:
        id = pod.sleeper()
        found = pod.sh(id, "cat /proc/1/exe > /tmp/copy && cmp /tmp/copy /bin/busybox && readlink /proc/1/exe")
    assert (found.code, found.text.strip()) in ((0, "/bin/busybox"), (0, "/bin/sleep"))
