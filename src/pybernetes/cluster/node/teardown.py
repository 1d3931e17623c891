"""Gives back what the nodes of a cluster took from the host, once their processes are gone."""

from __future__ import annotations

import os

from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import cgroups, host
from pybernetes.cluster.node.prepare import cgroup


def remove(layout: Layout) -> list[str]:
    """Removes cgroups, links, rules and folders of the nodes; answers what could not be removed."""
    folder = layout.data / "nodes"
    left: list[str] = []
    if os.geteuid() != 0:
        return left
    if folder.is_dir():
        found = cgroups.hierarchies()
        for node in sorted(folder.iterdir()):
            left += cgroups.remove(cgroup(layout, node.name), found)
    host.release(layout.data)
    return left
