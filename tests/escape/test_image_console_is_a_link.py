"""/dev/console or /dev/pts of an image is a link: the terminal would be mounted over what it leads to.

Vector: CVE-2025-52565.
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
    "console": [entry("dev", FOLDER), entry("dev/console", LINK, "/proc/sysrq-trigger")],
    "console_outside": [entry("dev", FOLDER), entry("dev/console", LINK, "/../../../../../..{folder}/made")],
    "pts": [entry("dev", FOLDER), entry("dev/pts", LINK, "/proc/sys/kernel")],
    "ptmx": [entry("dev", FOLDER), entry("dev/ptmx", LINK, "/proc/sysrq-trigger")],
}


@pytest.mark.parametrize("vector", VECTORS)
def test_it_leads_neither_the_runtime_nor_the_container_out(machine: Machine, tmp_path: Path, vector: str) -> None:
    leads_nowhere(machine, tmp_path, VECTORS[vector])
