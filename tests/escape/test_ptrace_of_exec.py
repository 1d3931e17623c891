"""A container with SYS_PTRACE looks into every process it sees while commands are executed in it."""

from __future__ import annotations

from pathlib import Path

from cri.embedded.machine import EmbeddedMachine
from cri.embedded.test_containers import execute
from escape.pods import attacker, confined
from escape.runtimes import ours

pytestmark = ours

# Every new process but our own children: what is its root, and may it do more than we do?
LOOK = """
mark=$1
while :; do
  for process in /proc/[0-9]*; do
    if [ -e $process/root$mark ]; then echo "root of $process" >> /tmp/found; fi
    if [ -e $process/cwd$mark ]; then echo "cwd of $process" >> /tmp/found; fi
    while read name value; do
      if [ $name = CapEff: ] && [ $value != $own ]; then echo "$process has $value" >> /tmp/found; fi
    done 2> /dev/null < $process/status
  done
done
"""
OWN = "own=$(while read name value; do [ $name = CapEff: ] && echo $value; done < /proc/self/status)"
COMMANDS = 40


async def test_no_process_of_the_node_is_seen_in_a_container(machine: EmbeddedMachine, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.touch()
    script = f"set -- {mark}; {OWN}; {LOOK}"
    async with attacker(machine, script, confined("SYS_PTRACE")) as (runtime, _, _, id):
        for _ in range(COMMANDS):
            assert (await execute(runtime, id, "true")).exit_code == 0
        assert (await execute(runtime, id, "cat", "/tmp/found")).stdout.decode() == ""
