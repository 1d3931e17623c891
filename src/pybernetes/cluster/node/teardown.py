"""Gives back what the nodes of a cluster took from the host, once their processes are gone."""

from __future__ import annotations

from pathlib import Path

from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import cgroups, host, loop_devices
from pybernetes.cluster.node.machine import Machine
from pybernetes.cluster.node.prepare import cgroup
from pybernetes.cluster.rootless import plain
from pybernetes.cluster.rootless.rights import rights


def remove(layout: Layout) -> list[str]:
    """Removes cgroups, loop devices, links, rules and folders of the nodes; answers what could not be removed."""
    folder = layout.data / "nodes"
    left: list[str] = []
    if not rights().root:
        return _end_plain(folder)
    if folder.is_dir():
        found = cgroups.hierarchies()
        for node in sorted(folder.iterdir()):
            left += cgroups.remove(cgroup(layout, node.name), found)
            left += loop_devices.release(node)
    host.release(layout.data)
    return left


def _end_plain(folder: Path) -> list[str]:
    """Ends what is left of nodes that were plain processes; others go with their namespaces."""
    left: list[str] = []
    for path in sorted(folder.glob("*/machine.json")):
        machine = Machine.read(str(path))
        if machine.isolation == "none":
            left += plain.end(machine)
    return left
