"""Gives back what the nodes of a cluster took from the host, once their processes are gone."""

from __future__ import annotations

from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import cgroups, host
from pybernetes.cluster.node.prepare import cgroup
from pybernetes.cluster.rootless import plain
from pybernetes.cluster.rootless.rights import rights


def remove(layout: Layout) -> list[str]:
    """Removes cgroups, links, rules and folders of the nodes; answers what could not be removed."""
    folder = layout.data / "nodes"
    left: list[str] = []
    if not rights().root:
        return [each for node in sorted(folder.iterdir()) for each in plain.end(str(node))] if folder.is_dir() else []
    if folder.is_dir():
        found = cgroups.hierarchies()
        for node in sorted(folder.iterdir()):
            left += cgroups.remove(cgroup(layout, node.name), found)
    host.release(layout.data)
    return left
