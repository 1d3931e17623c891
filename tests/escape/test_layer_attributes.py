"""Extended attributes in a layer that steer overlayfs or the kernel: another folder's content, another file's data.

Vectors: `trusted.overlay.redirect` and `metacopy` (a folder that stands for another), `user.overlay.*` without root.
"""

from __future__ import annotations

import tarfile

import pytest
from escape.images import entry, image
from escape.pods import Pod
from node.machine import Machine

ATTRIBUTES = ("overlay.redirect", "overlay.metacopy", "overlay.opaque", "overlay.origin", "overlay.impure")


@pytest.mark.parametrize("space", ["trusted", "user"])
def test_a_folder_shows_its_own_content(machine: Machine, space: str) -> None:
    headers = {f"SCHILY.xattr.{space}.{name}": "/bin" if "redirect" in name else "y" for name in ATTRIBUTES}
    tricked = entry("tricked", tarfile.DIRTYPE, pax_headers=headers)
    made = image(machine, [tricked, entry("tricked/own", text="x", pax_headers=headers)])
    with Pod(machine) as pod:
        found = pod.sh(pod.sleeper(image=made), "ls /tricked; cat /tricked/own")
    assert (found.code, found.text) == (0, "own\nx")
