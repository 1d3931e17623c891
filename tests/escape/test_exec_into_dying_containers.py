"""Commands in the moment when a container ends: they run in it or not at all, never in the node's namespaces.

Vector: exec joins by a number of a process that is another one meanwhile.
"""

from __future__ import annotations

import threading
from pathlib import Path

from escape.pods import Pod
from node.machine import Machine

from pybernetes.cri import v1 as cri

TRIES = 15


def test_a_command_runs_in_its_container_or_nowhere(machine: Machine) -> None:
    (mark := Path(machine.folder, "mark-of-the-node")).touch()
    found = []
    with Pod(machine) as pod:
        for _ in range(TRIES):
            id = pod.start("sleep", "1000")
            stop = cri.StopContainerRequest(container_id=id, timeout=0)
            ending = threading.Thread(target=lambda stop=stop: pod._call(lambda runtime: runtime.stop_container(stop)))
            ending.start()
            for _ in range(4):
                found.append(pod.sh(id, f"hostname; ls -d {mark} /proc/2 2> /dev/null; true", timeout=10))
            ending.join()
        running = [each for each in found if each.code == 0]
    assert len({each.text for each in running}) <= 1
    assert not any(str(mark) in each.text for each in running)
