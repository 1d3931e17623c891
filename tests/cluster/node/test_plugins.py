"""The network plugins of a node: the host's where it has some, ours for the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybernetes.cluster.node import containerd
from pybernetes.cni.skel import BUILT_IN


def test_the_hosts_plugins_are_linked_and_ours_fill_the_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, node = tmp_path / "host", tmp_path / "node"
    host.mkdir()
    for name in ("bridge", "tuning"):
        (host / name).write_text("#!/bin/sh\n")
    monkeypatch.setattr(containerd, "PLUGINS", (str(tmp_path / "nowhere"), str(host)))
    for _ in range(2):  # a second start changes nothing
        containerd.link_plugins(node)
        assert {path.name for path in node.iterdir()} == BUILT_IN | {"tuning"}
        assert os.readlink(node / "bridge") == str(host / "bridge")
        assert "pybernetes.cni" in (node / "portmap").read_text()
    (node / "portmap").write_text("of a version that is gone")
    (host / "bridge").unlink()
    containerd.link_plugins(node)
    for name in ("bridge", "portmap"):
        assert "pybernetes.cni" in (node / name).read_text()
