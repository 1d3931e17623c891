"""Usage of containers and pods, from cgroups, the network namespace's counters and the writable layer's files."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pybernetes.cri import v1 as cri

from .containers import Containers
from .groups import Group, Groups
from .images.store import ImageStore
from .sandboxes import Sandboxes
from .state import Container, Sandbox

LAYER_AGE = 30.0
"""Seconds for which the size of a writable layer is good: counting it reads every folder."""


class Stats:
    """Reads usage when it is asked for; keeps the last reading of each container to tell a rate."""

    def __init__(self, sandboxes: Sandboxes, containers: Containers, images: ImageStore, groups: Groups) -> None:
        self._groups = groups
        self._sandboxes = sandboxes
        self._containers = containers
        self._images = images
        self._last: dict[str, tuple[int, int]] = {}
        self._layers: dict[str, tuple[float, int, int]] = {}

    async def measure(self, containers: Iterable[Container]) -> None:
        """Counts the writable layers whose sizes are too old; in a thread, because that can take seconds."""
        now = time.monotonic()
        last = {each.id: self._layers.get(each.id) for each in containers}
        old = [id for id, layer in last.items() if layer is None or now - layer[0] > LAYER_AGE]
        if old:
            folder = self._images.root / "containers"
            counted = await asyncio.to_thread(lambda: {id: disk_usage(folder / id / "fs") for id in old})
            self._layers |= {id: (now, *usage) for id, usage in counted.items() if id in self._containers.all}

    def container(self, container: Container) -> Any:
        """CRI's ContainerStats; `measure` first."""
        group = self._containers.cgroup(container)
        found = cri.ContainerStats(
            attributes=cri.ContainerAttributes(
                id=container.id,
                metadata=container.config.metadata,
                labels=container.config.labels,
                annotations=container.config.annotations,
            ),
            writable_layer=self._layer(container),
        )
        if container.running:
            found.cpu.CopyFrom(self._cpu(container.id, group))
            found.memory.CopyFrom(_memory(group))
        return found

    def sandbox(self, sandbox: Sandbox) -> Any:
        """CRI's PodSandboxStats; `measure` its containers first."""
        mine = self._containers.in_sandbox(sandbox.id)
        parent = self._groups.pod(sandbox.config.linux.cgroup_parent, [sandbox.id, *(each.id for each in mine)])
        linux = cri.LinuxPodSandboxStats(
            cpu=self._cpu(sandbox.id, parent),
            memory=_memory(parent),
            containers=[self.container(each) for each in mine if each.running],
        )
        pid = self._sandboxes.pids.get(sandbox.id)
        if pid is not None and sandbox.network:
            linux.network.CopyFrom(_network(pid))
        now = time.time_ns()
        groups = [self._sandboxes.cgroup(sandbox), *(self._containers.cgroup(each) for each in mine)]
        count = sum(len(each.processes()) for each in groups)
        linux.process.CopyFrom(cri.ProcessUsage(timestamp=now, process_count=cri.UInt64Value(value=count)))
        attributes = cri.PodSandboxAttributes(
            id=sandbox.id,
            metadata=sandbox.config.metadata,
            labels=sandbox.config.labels,
            annotations=sandbox.config.annotations,
        )
        return cri.PodSandboxStats(attributes=attributes, linux=linux)

    def forget(self, id: str) -> None:
        """It is gone."""
        self._last.pop(id, None)
        self._layers.pop(id, None)

    def _cpu(self, id: str, group: Group) -> Any:
        now, used = time.time_ns(), group.cpu_nanoseconds()
        before, used_before = self._last.get(id, (0, 0))
        found = cri.CpuUsage(timestamp=now, usage_core_nano_seconds=cri.UInt64Value(value=used))
        if before and now > before and used >= used_before:
            rate = (used - used_before) * 1_000_000_000 // (now - before)
            found.usage_nano_cores.CopyFrom(cri.UInt64Value(value=rate))
        self._last[id] = (now, used)
        return found

    def _layer(self, container: Container) -> Any:
        _, size, inodes = self._layers.get(container.id, (0.0, 0, 0))
        return cri.FilesystemUsage(
            timestamp=time.time_ns(),
            fs_id=cri.FilesystemIdentifier(mountpoint=str(self._images.root)),
            used_bytes=cri.UInt64Value(value=size),
            inodes_used=cri.UInt64Value(value=inodes),
        )


def disk_usage(folder: Path) -> tuple[int, int]:
    """Bytes on disk and number of files below a folder; what goes away meanwhile does not count."""
    size = inodes = 0
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    size, inodes = size + found.st_blocks * 512, inodes + 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return size, inodes


def _memory(group: Group) -> Any:
    found = group.memory()
    usage = cri.MemoryUsage(
        timestamp=time.time_ns(),
        working_set_bytes=cri.UInt64Value(value=found["working_set"]),
        usage_bytes=cri.UInt64Value(value=found["usage"]),
        rss_bytes=cri.UInt64Value(value=found["rss"]),
        page_faults=cri.UInt64Value(value=found["page_faults"]),
        major_page_faults=cri.UInt64Value(value=found["major_page_faults"]),
    )
    if found["limit"]:
        usage.available_bytes.CopyFrom(cri.UInt64Value(value=max(0, found["limit"] - found["working_set"])))
    return usage


def _network(pid: int) -> Any:
    try:
        lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    except OSError:
        lines = []
    interfaces = []
    for line in lines:
        name, _, rest = line.partition(":")
        numbers = rest.split()
        if name.strip() == "lo":
            continue
        interfaces.append(
            cri.NetworkInterfaceUsage(
                name=name.strip(),
                rx_bytes=cri.UInt64Value(value=int(numbers[0])),
                rx_errors=cri.UInt64Value(value=int(numbers[2])),
                tx_bytes=cri.UInt64Value(value=int(numbers[8])),
                tx_errors=cri.UInt64Value(value=int(numbers[10])),
            )
        )
    found = cri.NetworkUsage(timestamp=time.time_ns(), interfaces=interfaces)
    for each in interfaces:
        if each.name == "eth0":
            found.default_interface.CopyFrom(each)
    return found
