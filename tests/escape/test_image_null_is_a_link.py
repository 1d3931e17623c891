"""/dev/null of an image is a link: what masks /proc/kcore would be what it leads to.

Vector: CVE-2025-31133.
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
    "core_pattern": [entry("dev", FOLDER), entry("dev/null", LINK, "/proc/sys/kernel/core_pattern")],
    "sysrq": [entry("dev", FOLDER), entry("dev/null", LINK, "/proc/sysrq-trigger")],
    "folder": [entry("dev", FOLDER), entry("dev/null", FOLDER)],
}


@pytest.mark.parametrize("vector", VECTORS)
def test_it_leads_neither_the_runtime_nor_the_container_out(machine: Machine, tmp_path: Path, vector: str) -> None:
    leads_nowhere(machine, tmp_path, VECTORS[vector])
