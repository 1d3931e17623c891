"""allowPrivilegeEscalation: false: neither a set-uid program nor a program with capabilities gives more than there was.

Vectors: set-uid and set-gid programs that an image brings.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from escape.images import entry, image
from escape.pods import Pod, confined
from node.machine import Machine


@pytest.fixture(scope="session")
def tricked(machine: Machine) -> str:
    """An image with a set-uid program that says who it is."""
    body = Path("/usr/bin/id").read_bytes()
    info, _ = entry("tricks/id", mode=0o6755)
    info.size = len(body)
    return image(machine, [entry("tricks", tarfile.DIRTYPE), (info, body)])


@pytest.mark.parametrize("allowed", [True, False])
def test_a_set_uid_program_gives_what_the_container_may_gain(machine: Machine, tricked: str, allowed: bool) -> None:
    linux = confined(no_new_privs=not allowed)
    linux.security_context.run_as_user.value = 1000
    with Pod(machine) as pod:
        id = pod.python_sleeper(image=tricked, linux=linux)
        found = pod.exec(id, ["/tricks/id"]).text
        assert pod.sh(id, "grep NoNewPrivs /proc/self/status").text.split()[1] == str(int(not allowed))
    assert ("euid=0" in found) == allowed, found
