"""Hard links in a layer whose other name is a file of the node, or of another layer or image.

Vector: `hard link` entries with `..`, absolute, or through a link.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from escape.images import entry, image
from escape.pods import Pod
from node.machine import Machine

from pybernetes.cri.errors import CRIError

HARD, LINK = tarfile.LNKTYPE, tarfile.SYMTYPE


@pytest.mark.parametrize("way", ["up", "absolute", "through_a_link", "of_a_link"])
def test_a_hard_link_has_no_file_of_the_node_as_its_other_name(machine: Machine, tmp_path: Path, way: str) -> None:
    (secret := machine.folder / f"secret-{way}").write_text("the node's own")
    target = str(secret)
    entries = {
        "up": [entry("mine", HARD, "../" * 12 + target[1:])],
        "absolute": [entry("mine", HARD, target)],
        "through_a_link": [entry("way", LINK, os.path.dirname(target)), entry("mine", HARD, f"way/{secret.name}")],
        "of_a_link": [entry("way", LINK, target), entry("mine", HARD, "way")],
    }[way]
    try:
        made = image(machine, entries)
        with Pod(machine) as pod:
            said = pod.sh(pod.sleeper(image=made), "cat /mine; echo changed > /mine").text
    except (CRIError, subprocess.CalledProcessError):
        said = ""
    assert "the node's own" not in said
    assert secret.read_text() == "the node's own"
    assert secret.stat().st_nlink == 1
