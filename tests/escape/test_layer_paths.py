"""Entries of a layer whose path leads out of it: by `..`, from the root, through a link, and changes of mode by links.

Vectors: CVE-2021-32760 (modes of files of the node were changed through links), "zip slip", CVE-2019-14271's way.
"""

from __future__ import annotations

import os
import subprocess
import tarfile

import pytest
from escape.images import entry, image
from node.machine import Machine

from pybernetes.cri.errors import CRIError

LINK = tarfile.SYMTYPE


@pytest.mark.parametrize("way", ["up", "through_a_link", "over_a_link", "mode_through_a_link", "folder_over_a_link"])
def test_nothing_is_written_or_changed_outside_of_the_layer(machine: Machine, way: str) -> None:
    (outside := machine.folder / f"outside-{way}").mkdir(mode=0o700)
    (secret := outside / "secret").write_text("the node's own")
    secret.chmod(0o600)
    entries = {
        "up": [entry("../" * 12 + str(outside)[1:] + "/made", text="x")],
        "through_a_link": [entry("way", LINK, str(outside)), entry("way/made", text="x")],
        "over_a_link": [entry("way", LINK, str(secret)), entry("way", text="x")],
        "mode_through_a_link": [entry("way", LINK, str(outside)), entry("way/secret", text="x", mode=0o4777)],
        "folder_over_a_link": [entry("way", LINK, str(outside)), entry("way", tarfile.DIRTYPE, mode=0o777)],
    }[way]
    try:
        image(machine, entries)
    except (CRIError, subprocess.CalledProcessError):
        pass
    assert os.listdir(outside) == ["secret"]
    assert secret.read_text() == "the node's own"
    assert (outside.stat().st_mode & 0o7777, secret.stat().st_mode & 0o7777) == (0o700, 0o600)
