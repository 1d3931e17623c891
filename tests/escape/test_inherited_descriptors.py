"""What a program inherits: no inode of the node is reached through its streams, and no other descriptor is open."""

from __future__ import annotations

import os

from cri.embedded.machine import EmbeddedMachine
from cri.embedded.test_containers import execute
from escape.pods import attacker, confined
from escape.runtimes import ours

pytestmark = ours

CHANGE = "chmod 600 /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2; chown 7:7 /proc/self/fd/0; ls /proc/self/fd"


async def test_changing_the_streams_changes_nothing_of_the_node(machine: EmbeddedMachine, runtime_name: str) -> None:
    before = os.stat("/dev/null")
    node = machine.run("stat", "-c", "%a %u %i %d", "/dev/null")
    script = f"{CHANGE}; stat -L -c '%d %i' /proc/self/fd/0; sleep 1000"
    async with attacker(machine, script, confined()) as (runtime, _, _, id):
        answer = await execute(runtime, id, "sh", "-c", f"{CHANGE}; stat -L -c '%d %i' /proc/self/fd/0")
        if runtime_name != "rootless":  # where the node's device cannot be changed
            assert answer.stdout.split()[-2:] != [str(before.st_dev).encode(), str(before.st_ino).encode()]
        # ls has one more, the folder it reads.
        assert answer.stdout.split()[:4] == [b"0", b"1", b"2", b"3"]
        assert (await execute(runtime, id, "true")).exit_code == 0
    after = os.stat("/dev/null")
    assert (after.st_mode, after.st_uid, after.st_ctime_ns) == (before.st_mode, before.st_uid, before.st_ctime_ns)
    assert machine.run("stat", "-c", "%a %u %i %d", "/dev/null") == node
