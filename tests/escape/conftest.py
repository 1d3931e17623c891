"""One machine for each runtime, with one ordinary container in it, for all vectors of a worker.

`-k embedded`, `-k rootless` or `-k containerd` chooses. A vector that is about our runtime alone is marked by `ours`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cri.embedded.machine import EmbeddedMachine
from escape.keys import keep_secret
from escape.pods import SYSTEM_CALL, Pod
from escape.rootless_machine import RootlessMachine
from node.containerd_machine import ContainerdMachine
from node.machine import Machine

SECRET = "pyb-secret"
"""A key of the user who starts the node."""
MACHINES: dict[str, type[Machine]] = {
    "embedded": EmbeddedMachine,
    "rootless": RootlessMachine,
    "containerd": ContainerdMachine,
}


@pytest.fixture(scope="session", params=MACHINES)
def runtime_name(request: pytest.FixtureRequest) -> str:
    """The runtime that a vector is tried on."""
    return str(request.param)


@pytest.fixture(scope="session")
def machine(runtime_name: str) -> Iterator[Machine]:
    """Started once."""
    kind = MACHINES[runtime_name]
    if why := kind.lacking():
        pytest.skip(f"no {runtime_name}: {why}")
    keep_secret(SECRET)
    # Paths of sockets are short (107 bytes), and pytest's folders are not.
    with tempfile.TemporaryDirectory(prefix="pyb-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        with kind(Path(folder), f"pyb-escape-{os.getpid()}") as started:
            yield started


class Inside:
    """An ordinary container: root with the default capabilities, and no seccomp filter."""

    def __init__(self, pod: Pod, id: str) -> None:
        self.pod, self.id = pod, id

    def sh(self, script: str) -> tuple[int, str]:
        """Exit code and output of a script in it."""
        answer = self.pod.sh(self.id, script)
        return answer.code, answer.text


@pytest.fixture(scope="session")
def inside(machine: Machine) -> Iterator[Inside]:
    """The container that vectors share which leave it as it was."""
    with Pod(machine) as pod:
        yield Inside(pod, pod.sleeper())


@pytest.fixture(scope="session")
def scripted(machine: Machine) -> Iterator[Scripted]:
    """A container like it, in which an attacker has Python."""
    with Pod(machine) as pod:
        yield Scripted(pod, pod.python_sleeper())


class Scripted:
    """See the fixture."""

    def __init__(self, pod: Pod, id: str) -> None:
        self.pod, self.id = pod, id

    def run(self, program: str) -> tuple[int, str]:
        """Exit code and output of a program in it, which has `call` for system calls."""
        answer = self.pod.python(self.id, SYSTEM_CALL + program)
        return answer.code, answer.text
