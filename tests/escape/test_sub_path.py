"""`subPath`: a container exchanges the folder that another one's mount is made of with a link to the node's files.

Vectors: CVE-2017-1002101 (a link in a volume), CVE-2021-25741 (the link comes between the look and the mount).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import tools

CHILD = """
import sys
import time
from itertools import count
from pathlib import Path
from pybernetes.kubelet.volumes import subpath
from escape.racing import exchanging
root, outside = Path(sys.argv[1]), sys.argv[2]
volume = root / "volume"
(volume / "place" / "inner").mkdir(parents=True)
(volume / "place" / "inner" / "own").touch()
(volume / "link").symlink_to(outside)
found = set()
with exchanging(volume / "place", volume / "link"):
    deadline = time.monotonic() + 60
    for number in count():
        if number >= 300 and ("own" in found or time.monotonic() > deadline):
            break
        for path in ("place/inner", "place/new"):
            try:
                target = subpath.prepare(root / "pod", "volume", volume, f"c{number}", 0, path)
            except OSError:
                continue
            found.add("secret" if (target / "secret").exists() else "own")
print(sorted(found))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts")
def test_the_part_that_is_mounted_is_the_volumes_own_whatever_is_exchanged_meanwhile() -> None:
    # In a mount namespace of its own, and with short paths.
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        outside = Path(folder, "outside")
        (outside / "inner").mkdir(parents=True)
        (outside / "inner" / "secret").touch()
        (outside / "new").mkdir()
        (outside / "new" / "secret").touch()
        command = ["unshare", "--mount", sys.executable, "-c", CHILD, f"{folder}/root", str(outside)]
        path = f"{tools.ROOT}/src:{tools.ROOT}/tests"
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path}
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "['own']"
        assert sorted(str(each.relative_to(outside)) for each in outside.rglob("*")) == [
            "inner", "inner/secret", "new", "new/secret",
        ]  # fmt: skip
