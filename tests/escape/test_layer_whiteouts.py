"""Whiteouts in a layer that would hide, or remove, what is not in the layers below: `.wh...`, `.wh..`, through links.

Vectors: `.wh.` + `..` removes the folder above, a whiteout in a folder that is a link to the node.
"""

from __future__ import annotations

import os
import subprocess
import tarfile

import pytest
from escape.conftest import Inside
from escape.images import entry, image
from node.machine import Machine

from pybernetes.cri.errors import CRIError

WAYS = ("up", "itself", "nothing", "link", "opaque_link", "long")


@pytest.mark.parametrize("way", WAYS)
def test_a_whiteout_removes_nothing_of_the_node_or_of_other_images(machine: Machine, inside: Inside, way: str) -> None:
    (outside := machine.folder / f"whiteout-{way}").mkdir()
    (outside / "secret").write_text("the node's own")
    link = entry("way", tarfile.SYMTYPE, str(outside))
    entries = {
        "up": [entry("a", tarfile.DIRTYPE), entry("a/.wh..."), entry(".wh...")],
        "itself": [entry("a", tarfile.DIRTYPE), entry("a/.wh.."), entry(".wh..")],
        "nothing": [entry(".wh.")],
        "link": [link, entry("way/.wh.secret")],
        "opaque_link": [link, entry("way/.wh..wh..opq")],
        "long": [entry(".wh." + "x" * 300)],
    }[way]
    try:
        image(machine, entries)
    except (CRIError, subprocess.CalledProcessError):
        pass
    assert os.listdir(outside) == ["secret"]
    assert inside.sh("ls /bin/busybox")[0] == 0
