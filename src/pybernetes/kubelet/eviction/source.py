"""Figures for evictions from this machine: the kernel's counters, file systems, and the runtime for writable layers."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pybernetes.api.core.v1 import Pod, PodSpec
from pybernetes.component import offload

from ..gc import written_files
from ..node.allocatable import max_pids, meminfo, running_tasks
from ..runtime import labels
from ..stats.filesystem import Size, file_system, size_of
from ..stats.usage import UsageReader
from .thresholds import (
    ALLOCATABLE_MEMORY,
    CONTAINERFS,
    CONTAINERFS_INODES,
    IMAGEFS,
    IMAGEFS_INODES,
    MEMORY,
    NODEFS,
    NODEFS_INODES,
    PID,
    Level,
)
from .usage import ContainerUsage, DiskUsage, PodUsage

if TYPE_CHECKING:
    from pybernetes.cri.remote import Runtime

    from ..cgroups.manager import CgroupManager

MEASURE_WITHIN: Final = 10.0
"""Seconds for counting the files of one pod; evictions must not wait for a file system that does not answer."""
log = logging.getLogger(__name__)


class NodeSource:
    """Measures a node whose kubelet has its folder at `root`. Make it with `await NodeSource.create(...)`."""

    def __init__(
        self,
        root: Path,
        imagefs: Path,
        *,
        cgroups: CgroupManager,
        reader: UsageReader,
        runtime: Runtime,
        pod_logs: Callable[[Pod], Path],
    ) -> None:
        self._root, self._imagefs = root, imagefs
        self._cgroups, self._reader, self._runtime, self._pod_logs = cgroups, reader, runtime, pod_logs
        self._memory = meminfo()["MemTotal"]
        self.dedicated_imagefs = os.stat(root).st_dev != os.stat(imagefs).st_dev

    @classmethod
    async def create(cls, root: Path, runtime: Runtime, **more: Any) -> NodeSource:
        """Asks the runtime where its images are."""
        found = (await runtime.image_fs_info()).image_filesystems
        imagefs = Path(found[0].fs_id.mountpoint) if found else root
        return cls(root, imagefs if imagefs.exists() else root, runtime=runtime, **more)

    async def node(self) -> Mapping[str, Level]:
        """The level of each signal."""
        levels: dict[str, Level] = {}
        if (machine := self._reader.read("/")) is not None:
            levels[MEMORY] = Level(max(0, self._memory - machine.working_set), self._memory)
        if (pods := self._reader.read(self._cgroups.kubepods)) is not None:
            limit = pods.memory_limit if pods.memory_limit is not None else self._memory
            levels[ALLOCATABLE_MEMORY] = Level(max(0, limit - pods.working_set), limit)
        images = (IMAGEFS, IMAGEFS_INODES), (CONTAINERFS, CONTAINERFS_INODES)
        for path, signals in ((self._root, ((NODEFS, NODEFS_INODES),)), (self._imagefs, images)):
            found = file_system(path)
            for space, inodes in signals if found is not None else ():
                assert found is not None
                levels[space] = Level(found.available, found.capacity)
                if found.inodes:  # some file systems have no fixed number
                    levels[inodes] = Level(found.inodes_free, found.inodes)
        if most := max_pids():
            levels[PID] = Level(most - running_tasks(), most)
        return levels

    async def pods(self, pods: Sequence[Pod], *, disk: bool) -> Mapping[str, PodUsage]:
        """Usage of pods, by uid."""
        stats = await self._container_stats()
        result: dict[str, PodUsage] = {}
        for pod in pods:
            assert pod.metadata is not None
            uid = pod.metadata.uid or ""
            found = self._reader.read(self._cgroups.name(pod))
            if found is None:
                continue
            volumes, logs, other = await self._disk(pod) if disk else ({}, {}, 0)
            result[uid] = PodUsage(
                memory=found.working_set,
                processes=found.processes or 0,
                containers={
                    name: ContainerUsage(memory, rootfs, logs.get(name, DiskUsage()))
                    for name, (memory, rootfs) in stats.get(uid, {}).items()
                },
                volumes=volumes,
                other=other,
            )
        return result

    async def _disk(self, pod: Pod) -> tuple[dict[str, DiskUsage], dict[str, DiskUsage], int]:
        uid = pod.metadata.uid if pod.metadata else ""
        try:
            return await offload.run(f"usage of pod {uid}", MEASURE_WITHIN, self._measure, pod)
        except offload.Overdue as error:
            log.warning("the size of the volumes of pod %s is not known: %s", uid, error)
            return {}, {}, 0

    async def _container_stats(self) -> dict[str, dict[str, tuple[int, DiskUsage]]]:
        """By the pod's uid and the container's name: working set and writable layer."""
        result: dict[str, dict[str, tuple[int, DiskUsage]]] = {}
        for each in (await self._runtime.list_container_stats()).stats:
            layer = each.writable_layer
            name = each.attributes.labels.get(labels.CONTAINER_NAME, "")
            result.setdefault(each.attributes.labels.get(labels.POD_UID, ""), {})[name] = (
                each.memory.working_set_bytes.value,
                DiskUsage(layer.used_bytes.value, layer.inodes_used.value),
            )
        return result

    def _measure(self, pod: Pod) -> tuple[dict[str, DiskUsage], dict[str, DiskUsage], int]:
        """Volumes, logs by container, and the bytes of other files; walks folders, so in a thread."""
        assert pod.metadata is not None
        folder = self._root / "pods" / (pod.metadata.uid or "")
        volumes = {}
        for volume in (pod.spec or PodSpec()).volumes or ():
            # A hostPath is the node's and not the pod's, and may be of any size; what is a driver's is not on the
            # node's disk, and a look at it may wait for another machine.
            if volume.host_path or volume.persistent_volume_claim or volume.csi or volume.ephemeral:
                continue
            if found := list((folder / "volumes").glob(f"*/{volume.name}")):
                volumes[volume.name or ""] = _usage(size_of(found[0]))
        logs = {}
        where = self._pod_logs(pod)
        for each in where.iterdir() if where.is_dir() else ():
            logs[each.name] = _usage(size_of(each))
        return volumes, logs, written_files.used(folder).bytes


def _usage(size: Size) -> DiskUsage:
    return DiskUsage(size.bytes, size.inodes)
