"""/etc of an image, or a file in it that every container gets, is a link out of the root, or a pipe.

Vectors: CVE-2024-5154 (/etc/mtab), hosts, hostname and resolv.conf of a pod.
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
    "etc": [entry("etc", LINK, "/../../../../../..{folder}")],
    "mtab": [entry("etc", FOLDER), entry("etc/mtab", LINK, "/../../../../../..{folder}/made")],
    "hosts": [entry("etc", FOLDER), entry("etc/hosts", LINK, "/../../../../../..{folder}/made")],
    "resolver": [entry("etc", FOLDER), entry("etc/resolv.conf", LINK, "/../../../../../..{folder}/made")],
    "pipe": [entry("etc", FOLDER), entry("etc/hostname", tarfile.FIFOTYPE)],
}


@pytest.mark.parametrize("vector", VECTORS)
def test_it_leads_neither_the_runtime_nor_the_container_out(machine: Machine, tmp_path: Path, vector: str) -> None:
    leads_nowhere(machine, tmp_path, VECTORS[vector])
