"""A container's program is /proc/self/exe: what runs then, and may be changed, is never a file of the node."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cri.embedded.machine import EmbeddedMachine
from cri.embedded.test_containers import ended, execute
from escape.pods import attacker, confined
from escape.runtimes import ours
from node import cri_pods

from pybernetes.cri.errors import CRIError

pytestmark = ours

CHANGE = "import os; os.fchmod(os.open('/proc/self/exe', os.O_RDONLY), 0o4777)"
PROGRAM = Path(sys.executable).resolve()


async def test_the_nodes_python_cannot_be_reached_through_proc_self_exe(machine: EmbeddedMachine) -> None:
    before = os.stat(PROGRAM)
    async with attacker(machine, "sleep 1000", confined()) as (runtime, config, sandbox, id):
        # As a command of an exec, and as the interpreter of a script.
        script = f"printf '#!/proc/self/exe\\n{CHANGE}\\n' > /tmp/script; chmod 755 /tmp/script"
        assert (await execute(runtime, id, "sh", "-c", script)).exit_code == 0
        for command in (["/proc/self/exe", "-I", "-c", CHANGE], ["/tmp/script"]):
            try:
                answer = await execute(runtime, id, *command)
            except CRIError:
                continue  # it could not even be started
            assert answer.exit_code != 0, answer
        # As the program of a container.
        try:
            other = await cri_pods.start(runtime, config, sandbox, "/proc/self/exe", "-I", "-c", CHANGE, attempt=1)
            await ended(runtime, other)
        except CRIError:
            pass
    after = os.stat(PROGRAM)
    assert (after.st_mode, after.st_ctime_ns) == (before.st_mode, before.st_ctime_ns)


async def test_the_launcher_runs_from_a_file_that_is_not_the_nodes(machine: EmbeddedMachine) -> None:
    async with attacker(machine, "sleep 1000", confined()) as _:
        found = launchers(machine)
    own = os.stat(PROGRAM)
    assert found
    assert all((each.st_dev, each.st_ino) != (own.st_dev, own.st_ino) for each in found)


def launchers(machine: EmbeddedMachine) -> list[os.stat_result]:
    """The programs that launchers of this machine run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if str(machine.state).encode() in words and any(b"launcher" in word for word in words):
                found.append((process / "exe").stat())
        except OSError:
            continue
    return found
