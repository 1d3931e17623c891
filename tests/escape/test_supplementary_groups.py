"""Groups of a container: no group of the runtime is among them, and a group is not shed by being supplementary.

Vector: CVE-2023-25173 (groups were not set up, so that a file that a group may not read could be read).
"""

from __future__ import annotations

import tarfile

from escape.images import entry, image
from escape.pods import Pod, confined
from escape.runtimes import ours
from node.machine import Machine


@ours
def test_the_groups_are_the_users_own_and_those_asked_for(machine: Machine) -> None:
    files = [
        entry("etc", tarfile.DIRTYPE),
        entry("etc/passwd", text="root:x:0:0::/:/bin/sh\nworker:x:1000:2000::/:/bin/sh\n"),
        entry("etc/group", text="root:x:0:\nown:x:2000:\nextra:x:3000:worker\nothers:x:4000:somebody\n"),
    ]
    name = image(machine, files, User="worker")
    with Pod(machine) as pod:
        linux = confined()
        linux.security_context.supplemental_groups.append(5000)
        for id in (pod.sleeper(image=name, linux=linux),):
            for process in ("1", "self"):
                found = pod.sh(id, f"grep -E '^(Uid|Gid|Groups)' /proc/{process}/status").text
                lines = {line.split(":")[0]: line.split()[1:] for line in found.splitlines()}
                assert lines == {"Uid": ["1000"] * 4, "Gid": ["2000"] * 4, "Groups": ["2000", "3000", "5000"]}
