"""A container with SYS_PTRACE takes the line on which a starting process tells the launcher of itself.

In the moment before its program runs, a command is a process of the container's PID namespace that still has the line
open. A process that copies that descriptor (pidfd_getfd) can speak for the command: name a process of the node, which
the launcher then kills or enters in its place, or keep the line open, which the launcher must not wait for.
"""

from __future__ import annotations

import asyncio
import shlex

import pytest
from cri.embedded.machine import EmbeddedMachine
from cri.embedded.test_containers import execute
from escape.pods import SYSTEM_CALL, attacker, confined, interpreter, python_mounts
from escape.runtimes import ours

from pybernetes.cri.errors import CRIError

pytestmark = ours

THIEF = (
    SYSTEM_CALL
    + """
import json, socket, stat
PIDFD_OPEN, PIDFD_GETFD, LINE = 434, 438, 3
taken, number = [], os.getpid()
while len(taken) < 20:
    # Numbers of processes are given one after the other.
    for pid in range(number + 1, number + 4):
        process = call(PIDFD_OPEN, pid, 0)
        if not isinstance(process, int):
            continue
        found = call(PIDFD_GETFD, process, LINE, 0)
        if isinstance(found, int) and stat.S_ISSOCK(os.fstat(found).st_mode):
            taken.append(found)
            try: os.write(found, MESSAGE)
            except OSError: pass
            open("/tmp/taken", "a").write("x")
        elif found == "EBADF":
            number = pid
        os.close(process)
    if os.path.exists("/tmp/stop"):
        break
    try: number = max(number, int(open("/proc/loadavg").read().split()[-1]) - 1)
    except OSError: pass
"""
)
COMMANDS = 40


@pytest.mark.parametrize("message", ['{"became": VICTIM}', '{"user": "root", "terminal": true}', "no JSON"])
async def test_what_a_container_says_for_its_commands_moves_nothing(machine: EmbeddedMachine, message: str) -> None:
    victim = machine.run("sh", "-c", "sleep 1000 > /dev/null 2>&1 & echo $!").strip()
    program = THIEF.replace("MESSAGE", repr(message.replace("VICTIM", victim).encode()))
    try:
        mounts = python_mounts()
        script = f"touch /tmp/taken; {interpreter()} -I -c {shlex.quote(program)} 2> /tmp/error; sleep 1000"
        async with attacker(machine, script, confined("SYS_PTRACE"), mounts=mounts) as (runtime, _, _, id):
            for _ in range(COMMANDS):
                try:
                    async with asyncio.timeout(20):
                        await execute(runtime, id, "true", limit=1)
                except CRIError:
                    pass  # a command of its own pod is the container's to spoil
            taken = (await execute(runtime, id, "cat", "/tmp/taken", "/tmp/error")).stdout.decode()
        assert machine.run("sh", "-c", f"kill -0 {victim} && echo lives").strip() == "lives", f"lines taken: {taken}"
    finally:
        machine.run("sh", "-c", f"kill -9 {victim} || true")
