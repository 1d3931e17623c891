"""A container with SYS_PTRACE reads the memory of a process that is about to become a command in it.

Such a process is forked from one of the runtime: what that has read of other pods must not be in its memory.
"""

from __future__ import annotations

import asyncio
import shlex

from cri.embedded.machine import EmbeddedMachine
from cri.embedded.test_containers import execute
from escape.pods import Pod, attacker, confined, interpreter, python_mounts
from escape.runtimes import ours

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

pytestmark = ours

FIRST, SECOND = "of-another-", "pod-63c1"
"""Two halves of a value: the attacker's own command must not have it whole."""
READER = f"""
import os, signal
wanted, number, looked = b"{FIRST}" + b"{SECOND}", os.getpid(), 0
while looked < 12:
    # Numbers of processes are given one after the other; this is the last one.
    with open("/proc/loadavg") as file: number = max(number, int(file.read().split()[-1]) - 1)
    for pid in range(number + 1, number + 4):
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            continue
        number = pid
        try:
            with open(f"/proc/{{pid}}/comm") as file: early = file.read().strip() not in ("true", "cat")
            if early:
                looked += 1
                found = 0
                with open(f"/proc/{{pid}}/maps") as maps, open(f"/proc/{{pid}}/mem", "rb", 0) as memory:
                    for line in maps:
                        place, rights = line.split()[:2]
                        first, last = (int(each, 16) for each in place.split("-"))
                        if "w" in rights and last - first < 1 << 26:
                            memory.seek(first)
                            try: found += memory.read(last - first).count(wanted)
                            except OSError: pass
                open("/tmp/found", "a").write(f"looked at {{pid}}: {{found}}\\n")
        except OSError as error:
            open("/tmp/errors", "a").write(f"{{error}}\\n")
        finally:
            try: os.kill(pid, signal.SIGCONT)
            except ProcessLookupError: pass
"""
COMMANDS = 30


async def test_nothing_of_another_pod_is_in_the_memory_of_a_new_process(machine: EmbeddedMachine) -> None:
    other = Pod(machine)
    await asyncio.to_thread(other.__enter__)
    try:
        value = (FIRST + SECOND).encode() * 8
        envs = [cri.KeyValue(key=f"SECRET{number}", value=value) for number in range(200)]
        for _ in range(3):
            await asyncio.to_thread(other.sleeper, envs=envs)
        script = f"touch /tmp/found; {interpreter()} -I -c {shlex.quote(READER)} 2> /tmp/errors; sleep 1000"
        mounts = python_mounts()
        async with attacker(machine, script, confined("SYS_PTRACE"), mounts=mounts) as (runtime, _, _, id):
            for _ in range(COMMANDS):
                try:
                    await execute(runtime, id, "true", limit=5)
                except CRIError:
                    pass
            seen = (await execute(runtime, id, "cat", "/tmp/found", "/tmp/errors")).stdout.decode()
        looks = [line for line in seen.splitlines() if line.startswith("looked")]  # others: it was gone too early
        assert [line for line in looks if not line.endswith(": 0")] == []
    finally:
        await asyncio.to_thread(other.__exit__)
