"""WORKDIR of an image is a link out of the root: it is made if it is not there.

Vector: the folder that a runtime makes for WORKDIR.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from escape.image_links import leads_nowhere
from escape.images import entry
from node.machine import Machine

FOLDER, LINK = tarfile.DIRTYPE, tarfile.SYMTYPE
VECTORS = {
    "link": [entry("work", LINK, "/../../../../../..{folder}")],
    "new_below_link": [entry("work", LINK, "/../../../../../..{folder}/made")],
    "proc": [entry("work", LINK, "/proc/self/fd/3")],
}


@pytest.mark.parametrize("vector", VECTORS)
def test_it_leads_neither_the_runtime_nor_the_container_out(machine: Machine, tmp_path: Path, vector: str) -> None:
    leads_nowhere(machine, tmp_path, VECTORS[vector])
