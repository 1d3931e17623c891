"""/proc, /sys or /dev of an image is a link, so that what is mounted and masked there is elsewhere.

Vectors: CVE-2019-19921, CVE-2023-27561, CVE-2023-28642.
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
    "proc": [entry("proc", LINK, "/mine"), entry("mine", FOLDER)],
    "proc_to_volume": [entry("proc", LINK, "/data"), entry("data", FOLDER)],
    "sys": [entry("sys", LINK, "/mine"), entry("mine", FOLDER)],
    "sys_to_volume": [entry("sys", LINK, "/data"), entry("data", FOLDER)],
    "dev": [entry("dev", LINK, "/mine"), entry("mine", FOLDER)],
}


@pytest.mark.parametrize("vector", VECTORS)
def test_it_leads_neither_the_runtime_nor_the_container_out(machine: Machine, tmp_path: Path, vector: str) -> None:
    leads_nowhere(machine, tmp_path, VECTORS[vector])
