"""Control groups, version 1: one hierarchy for each controller.

`cpuset` is special: a new cgroup has no CPUs and no memory nodes, and takes no process before it has both, so they are
copied from above.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from .config import CgroupConfig
from .container import page_size_text
from .hierarchy import (
    CgroupError,
    Mounts,
    child_names,
    folder,
    kernel_page_sizes,
    make,
    processes,
    read_text,
    remove_tree,
    write,
)

USED: Final = ("cpu", "cpuacct", "cpuset", "memory", "pids", "hugetlb", "systemd")
_NO_LIMIT: Final = 1 << 62


class CgroupsV1:
    """Cgroups by controller."""

    version = 1

    def __init__(self, mounts: Mounts) -> None:
        self._mounts = mounts.controllers
        self._all = [*mounts.controllers.values(), *([mounts.unified] if mounts.unified else ())]
        self._page_sizes = kernel_page_sizes() if "hugetlb" in mounts.controllers else ()

    def page_sizes(self) -> tuple[int, ...]:
        """Sizes of huge pages that can be limited: none without the controller."""
        return self._page_sizes

    def exists(self, name: str) -> bool:
        """Whether the cgroup is there with every controller that is mounted and that we use."""
        path = name.strip("/")
        return all(os.path.isdir(f"{mount}/{path}") for key, mount in self._mounts.items() if key in USED)

    def create(self, name: str, config: CgroupConfig) -> None:
        """Make it in every hierarchy, and set what the config says."""
        for mount in self._mounts.values():
            try:
                make(mount, name)
            except OSError as error:
                raise CgroupError(f"unable to create cgroup {name} in {mount}: {error.strerror}") from error
        if "cpuset" in self._mounts:
            _fill_cpuset(self._mounts["cpuset"], name)
        self.update(name, config)

    def update(self, name: str, config: CgroupConfig) -> None:
        """Set what the config says; controllers that are not mounted are left out."""
        if (cpu := self._folder("cpu", name)) is not None:
            if config.cpu_shares is not None:
                write(cpu / "cpu.shares", config.cpu_shares)
            if config.cpu_period is not None and config.cpu_quota is not None and config.cpu_quota > 0:
                _write_quota(cpu, config.cpu_quota, config.cpu_period)
            elif config.cpu_quota is not None:
                write(cpu / "cpu.cfs_quota_us", config.cpu_quota)
        if config.memory is not None and (memory := self._folder("memory", name)) is not None:
            write(memory / "memory.limit_in_bytes", config.memory)
        if config.pids is not None and (pids := self._folder("pids", name)) is not None:
            write(pids / "pids.max", config.pids if config.pids >= 0 else "max")
        if config.cpuset is not None and (cpuset := self._folder("cpuset", name)) is not None:
            write(cpuset / "cpuset.cpus", config.cpuset)
        if config.hugepages is not None and (hugetlb := self._folder("hugetlb", name)) is not None:
            for size in self._page_sizes:
                limit = config.hugepages.get(size, 0)
                write(hugetlb / f"hugetlb.{page_size_text(size)}.limit_in_bytes", limit)

    def read(self, name: str) -> CgroupConfig:
        """Read the limits that the kernel enforces now."""
        values: dict[str, Any] = {}
        if (cpu := self._folder("cpu", name)) is not None:
            values["cpu_shares"] = int(read_text(cpu / "cpu.shares"))
            values["cpu_quota"] = int(read_text(cpu / "cpu.cfs_quota_us"))
            values["cpu_period"] = int(read_text(cpu / "cpu.cfs_period_us"))
        if (memory := self._folder("memory", name)) is not None:
            limit = int(read_text(memory / "memory.limit_in_bytes"))
            values["memory"] = limit if limit < _NO_LIMIT else -1
        if (pids := self._folder("pids", name)) is not None:
            text = read_text(pids / "pids.max")
            values["pids"] = -1 if text == "max" else int(text)
        return CgroupConfig(**values)

    def remove(self, name: str) -> None:
        """Remove it and all below it from every hierarchy."""
        for mount in self._all:
            remove_tree(folder(mount, name))

    def children(self, name: str) -> set[str]:
        """The cgroups directly below, in any hierarchy."""
        return set[str]().union(*(child_names(folder(mount, name)) for mount in self._all))

    def pids(self, name: str) -> set[int]:
        """The processes in it and below it, in any hierarchy."""
        return set[int]().union(*(processes(folder(mount, name)) for mount in self._all))

    def memory_usage(self, name: str) -> int:
        """Bytes charged to it."""
        memory = self._folder("memory", name)
        return int(read_text(memory / "memory.usage_in_bytes")) if memory is not None else 0

    def _folder(self, controller: str, name: str) -> Path | None:
        mount = self._mounts.get(controller)
        return folder(mount, name) if mount is not None else None


def _fill_cpuset(mount: Path, name: str) -> None:
    for file in ("cpuset.cpus", "cpuset.mems"):
        _inherited(str(mount), name.strip("/"), file)


def _inherited(mount: str, name: str, file: str) -> str:
    """The content of a cpuset file; an empty one is first filled from its parent."""
    path = f"{mount}/{name}/{file}"
    text = read_text(path)
    if not text and name:
        text = _inherited(mount, name.rpartition("/")[0], file)
        write(path, text)
    return text


def _write_quota(cpu: Path, quota: int, period: int) -> None:
    """Both values. Their order matters when the ratio between goes over what is above, so the other is tried too."""
    if int(read_text(cpu / "cpu.cfs_period_us")) == period:
        write(cpu / "cpu.cfs_quota_us", quota)
        return
    try:
        write(cpu / "cpu.cfs_period_us", period)
        write(cpu / "cpu.cfs_quota_us", quota)
    except CgroupError:
        write(cpu / "cpu.cfs_quota_us", quota)
        write(cpu / "cpu.cfs_period_us", period)
