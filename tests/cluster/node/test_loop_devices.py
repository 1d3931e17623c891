"""Loop devices of a node's volumes, given back when the node has gone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pybernetes.cluster.node import loop_devices


def losetup(*words: str | Path) -> str:
    return subprocess.run(["losetup", *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("losetup") is None or not Path("/dev/loop-control").exists(),
    reason="needs root and loop devices",
)
def test_the_devices_of_a_node_are_detached_and_no_others(tmp_path: Path) -> None:
    own = tmp_path / "node-1/lib-kubelet/plugins/local.csi.pybernetes.io/volumes/pvc-1/disk.img"
    other = tmp_path / "node-2/lib-kubelet/plugins/local.csi.pybernetes.io/volumes/pvc-1/disk.img"
    devices = {}
    try:
        for image in (own, other):
            image.parent.mkdir(parents=True)
            image.write_bytes(bytes(1 << 20))
            devices[image] = losetup("--find", "--show", image)
        dangling = tmp_path / "node-1/lib-kubelet/plugins/other/volumes/pvc-1/disk.img"
        dangling.parent.mkdir(parents=True)
        dangling.symlink_to("nowhere")
        assert loop_devices.release(tmp_path / "node-1") == []
        assert losetup("--associated", own) == ""
        assert losetup("--associated", other).startswith(f"{devices[other]}:")
        assert loop_devices.release(tmp_path / "node-1") == []
        assert loop_devices.release(tmp_path / "nowhere") == []
    finally:
        for image in devices:
            if losetup("--associated", image):
                losetup("--detach", devices[image])
