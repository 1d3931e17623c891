"""Variables that a runtime writes down or uses itself: new lines in HOME, PATH to a volume, loaders' and Python's own.

Vectors: CVE-2022-4318 (HOME with a new line added a user), `LD_PRELOAD`, `PYTHONPATH` of a launcher.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from escape.pods import Pod
from node.machine import Machine

from pybernetes.cri import v1 as cri


def test_variables_are_the_programs_and_change_nothing_else(machine: Machine) -> None:
    volume = Path(tempfile.mkdtemp(dir=machine.folder))
    volume.chmod(0o777)
    for name in ("sitecustomize.py", "encodings.py", "startup.py", "sleep"):
        (volume / name).write_text("#!/bin/sh\nopen('/data/ran', 'w')\n")
    variables = {
        "HOME": b"/x\nattacker:x:0:0::/:/bin/sh",
        "LD_PRELOAD": b"/data/lib.so",
        "LD_LIBRARY_PATH": b"/data",
        "PYTHONPATH": b"/data",
        "PYTHONHOME": b"/data",
        "PYTHONSTARTUP": b"/data/startup.py",
        "PYBERNETES_NODE": b"/data",
        "HOSTNAME": b"x\ny",
    }
    with Pod(machine) as pod:
        envs = [cri.KeyValue(key=key, value=value) for key, value in variables.items()]
        before = pod.sh(pod.sleeper(), "cat /etc/passwd; hostname").text
        id = pod.sleeper(envs=envs, mounts=[cri.Mount(host_path=str(volume), container_path="/data")])
        assert pod.sh(id, "unset LD_PRELOAD; cat /etc/passwd; hostname").text == before
        assert pod.sh(id, 'echo "$HOME"').text == variables["HOME"].decode() + "\n"
    assert not (volume / "ran").exists()
