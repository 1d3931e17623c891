"""CVE-2024-21626: a working directory below /proc/self/fd is a descriptor of the runtime: a folder of the node."""

from __future__ import annotations

from pathlib import Path

import pytest
from escape.pods import Pod
from node.machine import Machine

from pybernetes.cri.errors import CRIError

ESCAPE = "cat $(printf '../%.0s' 1 2 3 4 5 6 7 8 9){mark} ./{mark}; pwd"


@pytest.mark.parametrize("folder", ["/proc/self/fd", "/proc/thread-self/fd", "/proc/1/fd"])
def test_no_descriptor_of_the_runtime_is_a_working_directory(machine: Machine, tmp_path: Path, folder: str) -> None:
    (mark := tmp_path / "mark").write_text("the node's own")
    script = ESCAPE.format(mark=str(mark)[1:])
    with Pod(machine) as pod:
        started = 0
        for number in range(3, 12):
            try:
                pod.ended(pod.start("sh", "-c", script, working_dir=f"{folder}/{number}"))
                started += 1
                assert "the node's own" not in pod.said(number - 2)
            except CRIError:
                continue  # there is no such descriptor, or it is not a folder
        id = pod.sleeper()
        for number in range(3, 12):  # and of commands, which a container points to by a link
            code, said = inside(pod, id, f"cd {folder}/{number} && {script}")
            assert "the node's own" not in said, (number, code)


def inside(pod: Pod, id: str, script: str) -> tuple[int, str]:
    answer = pod.sh(id, script)
    return answer.code, answer.text
