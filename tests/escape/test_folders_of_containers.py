"""Another user of the node's machine: roots of containers, their volumes and logs are behind closed doors.

Vectors: CVE-2021-41103 (folders that others could go into, with set-uid programs in them), CVE-2024-25621 (the same of
/run/containerd and of the kubelet's volumes).
"""

from __future__ import annotations

import os
import subprocess
import tarfile

from escape.images import entry, image
from escape.pods import Pod
from escape.runtimes import ours
from node.machine import Machine

SOMEBODY = 12345


@ours
def test_another_user_reaches_no_file_of_an_image_or_a_container(machine: Machine) -> None:
    made = image(machine, [entry("tricks", tarfile.DIRTYPE), entry("tricks/suid", text="#!", mode=0o6777)])
    with Pod(machine) as pod:
        id = pod.sleeper(image=made)
        assert pod.sh(id, "mkdir -m 777 /tmp/open && echo x > /tmp/open/found-by-somebody").code == 0
        look = f"find {machine.folder} -name suid -o -name found-by-somebody -o -name launcher.sock -o -name spec.json"
        assert subprocess.run(["sh", "-c", look], capture_output=True, text=True, check=True).stdout, "they are there"
        user = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups", "--", "sh", "-c", look]
        found = subprocess.run(user, capture_output=True, text=True, check=False, cwd="/").stdout
    assert found == ""
    assert os.stat(machine.folder).st_mode & 0o005 == 0o005, "nothing above keeps him out"
