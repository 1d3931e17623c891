"""VOLUME of an image with `..`, with a link to the node, or at a path of the node: its content is copied into a volume.

Vector: CVE-2022-23648.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from escape.images import entry, image
from escape.pods import Pod
from node.machine import Machine

from pybernetes.cri.errors import CRIError


def test_volumes_copy_nothing_of_the_node(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the node's own")
    up = "/" + "../" * 12
    name = image(
        machine,
        [entry("out", tarfile.SYMTYPE, str(tmp_path))],
        Volumes={f"{up}{str(tmp_path)[1:]}": {}, "/out": {}, str(tmp_path): {}},
    )
    with Pod(machine) as pod:
        try:
            id = pod.sleeper(image=name)
        except CRIError:
            return
        said = pod.sh(id, f"cat /out/secret {tmp_path}/secret; ls {tmp_path}").text
    assert "the node's own" not in said
