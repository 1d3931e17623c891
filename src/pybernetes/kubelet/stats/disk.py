"""Measures the disk usage of pods: writable layers (from the runtime), logs and volumes (by walking).

Counting walks folders, so it is done in a thread, and its results are kept for a while: as long as upstream keeps them.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from pybernetes.client.clock import Clock
from pybernetes.component import offload
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

from ..gc import written_files
from .filesystem import FileSystem, Size, file_system, size_of

KEEP_LAYERS: Final = 10.0
KEEP_SIZES: Final = 60.0
"""Seconds. Upstream's period for volumes."""
MEASURE_WITHIN: Final = 30.0
"""Seconds for counting the files of one pod."""
MEASURED_AT_ONCE: Final = 4
EMPTY_DIR: Final = "kubernetes.io~empty-dir"
CSI: Final = "kubernetes.io~csi"
"""Volumes that are not walked: their drivers say how full they are."""
log = logging.getLogger(__name__)


class FilesystemRuntime(Protocol):
    """The part of a runtime that knows about disks (`cri.remote.Runtime`)."""

    async def list_container_stats(self, request: Any) -> Any:
        """The usage of containers."""
        ...

    async def image_fs_info(self, request: Any) -> Any:
        """Where images are."""
        ...


@dataclass(frozen=True, slots=True)
class Volume:
    """A mounted volume: which plugin's, how big, and on what."""

    name: str
    plugin: str
    size: Size
    on: FileSystem | None
    in_memory: bool = False
    abnormal: bool | None = None
    """Whether its driver says that it is ill; None if it says nothing."""


@dataclass(slots=True)
class PodDisk:
    """The disk usage of one pod."""

    logs: dict[str, Size] = field(default_factory=dict)
    """By container."""
    volumes: list[Volume] = field(default_factory=list)
    other: Size = field(default_factory=Size)
    """The hosts file and termination messages."""


@dataclass(frozen=True, slots=True)
class ImageStore:
    """Where images and writable layers are; `used` by them, as the runtime says."""

    path: str
    on: FileSystem | None
    used: int
    inodes_used: int


class Disk:
    """Sizes, kept for a while."""

    def __init__(self, runtime: FilesystemRuntime, clock: Clock, root: Path, logs: Path) -> None:
        self.root = root
        self._runtime = runtime
        self._clock = clock
        self._logs = logs
        self._layers: dict[str, Size] = {}
        self._layers_at = -KEEP_LAYERS
        self._pods: dict[str, tuple[float, PodDisk]] = {}
        self.csi: Callable[[str], Awaitable[list[Volume]]] | None = None
        """The volumes of CSI drivers of a pod."""
        self._turns = asyncio.Semaphore(MEASURED_AT_ONCE)

    def nodefs(self) -> FileSystem | None:
        """The file system with the kubelet's folder."""
        return file_system(self.root)

    async def images(self) -> ImageStore | None:
        """Where the runtime keeps images; None if it does not say."""
        try:
            answer = await self._runtime.image_fs_info(cri.ImageFsInfoRequest())
        except CRIError as error:
            log.info("the runtime does not say where its images are: %s", error)
            return None
        for each in answer.image_filesystems:
            path = each.fs_id.mountpoint
            return ImageStore(path, file_system(path), each.used_bytes.value, each.inodes_used.value)
        return None

    async def layers(self) -> dict[str, Size]:
        """The writable layer of each container, by its id."""
        if self._clock.monotonic() - self._layers_at >= KEEP_LAYERS:
            try:
                answer = await self._runtime.list_container_stats(cri.ListContainerStatsRequest())
            except CRIError as error:
                log.info("the runtime does not say what containers have written: %s", error)
                return self._layers
            self._layers = {
                each.attributes.id: Size(each.writable_layer.used_bytes.value, each.writable_layer.inodes_used.value)
                for each in answer.stats
            }
            self._layers_at = self._clock.monotonic()
        return self._layers

    async def pods(self, pods: dict[str, str], keep: float = KEEP_SIZES) -> dict[str, PodDisk]:
        """The disk usage of pods, by uid; `pods` are the names of their folders of logs by uid."""
        now = self._clock.monotonic()
        old = [uid for uid in pods if uid not in self._pods or now - self._pods[uid][0] >= keep]
        found = await asyncio.gather(*(self._measured(uid, pods[uid]) for uid in old))
        self._pods = {uid: each for uid, each in self._pods.items() if uid in pods}
        self._pods.update({uid: (now, disk) for uid, disk in zip(old, found, strict=True)})
        return {uid: disk for uid, (_, disk) in self._pods.items()}

    def latest(self) -> dict[str, PodDisk]:
        """The last measurements, by pod."""
        return {uid: disk for uid, (_, disk) in self._pods.items()}

    async def _measured(self, uid: str, logs: str) -> PodDisk:
        """Measure a pod; returns its last measurement if one of its volumes does not answer."""
        try:
            async with self._turns:
                disk = await offload.run(f"usage of pod {uid}", MEASURE_WITHIN, self._pod, uid, logs)
            if self.csi is not None:
                disk.volumes += await self.csi(uid)
            return disk
        except offload.Overdue as error:
            log.warning("the size of the volumes of pod %s is not known: %s", uid, error)
            return self._pods[uid][1] if uid in self._pods else PodDisk()

    def _pod(self, uid: str, logs: str) -> PodDisk:
        disk = PodDisk()
        for entry in _entries(self._logs / logs):
            disk.logs[entry.name] = size_of(entry.path)
        for plugin in _entries(self.root / "pods" / uid / "volumes"):
            for entry in _entries(plugin.path) if plugin.name != CSI else ():
                disk.volumes.append(
                    Volume(entry.name, plugin.name, size_of(entry.path), file_system(entry.path), _in_memory(entry))
                )
        return replace(disk, other=written_files.used(self.root / "pods" / uid))


def log_folder(namespace: str, name: str, uid: str) -> str:
    """The name of a pod's folder of logs."""
    return f"{namespace}_{name}_{uid}"


def _entries(path: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _in_memory(entry: os.DirEntry[str]) -> bool:
    """Whether a file system of its own is mounted there."""
    return os.path.ismount(entry.path)
