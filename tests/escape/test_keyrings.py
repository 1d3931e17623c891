"""Keys of the user who started the cluster are in no keyring of a pod."""

from __future__ import annotations

from pathlib import Path

from cri.embedded.machine import EmbeddedMachine
from cri.embedded.test_containers import execute
from escape.conftest import SECRET
from escape.pods import attacker, confined
from escape.runtimes import ours

pytestmark = ours

UNMASKED = {"masked_paths": []}
"""/proc/keys is hidden in ordinary containers."""


async def test_a_pod_does_not_inherit_the_keys_of_who_started_its_node(machine: EmbeddedMachine) -> None:
    script = "cat /proc/keys > /tmp/keys; sleep 1000"
    async with attacker(machine, script, confined(**UNMASKED)) as (runtime, _, _, id):
        seen = (await execute(runtime, id, "cat", "/tmp/keys", "/proc/keys")).stdout.decode()
    assert SECRET in own_keys(), "the key is there, and this process has it"
    assert "keyring" in seen
    assert SECRET not in seen


def own_keys() -> str:
    return Path("/proc/keys").read_text()
