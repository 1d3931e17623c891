"""Control groups, version 2: one hierarchy, whose controllers are handed down from folder to folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pybernetes.cri.cpu_weight import shares_to_weight, weight_to_shares

from .config import CgroupConfig
from .container import page_size_text
from .hierarchy import (
    CgroupError,
    child_names,
    folder,
    kernel_page_sizes,
    processes,
    read_text,
    remove_tree,
    write,
)

USED: Final = ("cpu", "cpuset", "memory", "hugetlb", "pids")
MAX: Final = "max"


class CgroupsV2:
    """The unified hierarchy."""

    version = 2

    def __init__(self, root: Path) -> None:
        self._root = root
        available = _controllers(root)
        self._used = [each for each in USED if each in available]
        self._page_sizes = kernel_page_sizes() if "hugetlb" in self._used else ()

    def page_sizes(self) -> tuple[int, ...]:
        """Sizes of huge pages that can be limited: none without the controller."""
        return self._page_sizes

    def exists(self, name: str) -> bool:
        """Whether the cgroup is there with every controller that we use."""
        path = folder(self._root, name)
        try:
            return set(self._used) <= _controllers(path)
        except CgroupError:
            return False

    def create(self, name: str, config: CgroupConfig) -> None:
        """Make it, with the controllers handed down to it, and set what the config says."""
        here = self._root
        for part in name.strip("/").split("/"):
            self._hand_down(here)
            here = here / part
            try:
                here.mkdir(exist_ok=True)
            except OSError as error:
                raise CgroupError(f"unable to create cgroup {here}: {error.strerror}") from error
        self.update(name, config)

    def update(self, name: str, config: CgroupConfig) -> None:
        """Set what the config says; controllers that the machine does not have are left out."""
        path = folder(self._root, name)
        if "cpu" in self._used:
            if config.cpu_shares is not None:
                write(path / "cpu.weight", shares_to_weight(config.cpu_shares))
            if config.cpu_quota is not None:
                quota = str(config.cpu_quota) if config.cpu_quota > 0 else MAX
                write(path / "cpu.max", f"{quota} {config.cpu_period}" if config.cpu_period else quota)
        if config.memory is not None and "memory" in self._used:
            write(path / "memory.max", config.memory if config.memory >= 0 else MAX)
        if config.pids is not None and "pids" in self._used:
            write(path / "pids.max", config.pids if config.pids >= 0 else MAX)
        if config.cpuset is not None and "cpuset" in self._used:
            write(path / "cpuset.cpus", config.cpuset)
        if config.hugepages is not None:
            for size in self._page_sizes:
                write(path / f"hugetlb.{page_size_text(size)}.max", config.hugepages.get(size, 0))

    def read(self, name: str) -> CgroupConfig:
        """Read the limits that the kernel enforces now."""
        path = folder(self._root, name)
        values: dict[str, Any] = {}
        if "cpu" in self._used:
            quota, period = read_text(path / "cpu.max").split()
            values["cpu_shares"] = weight_to_shares(int(read_text(path / "cpu.weight")))
            values["cpu_quota"] = -1 if quota == MAX else int(quota)
            values["cpu_period"] = int(period)
        for key, file in (("memory", "memory.max"), ("pids", "pids.max")):
            if key in self._used:
                text = read_text(path / file)
                values[key] = -1 if text == MAX else int(text)
        return CgroupConfig(**values)

    def remove(self, name: str) -> None:
        """Remove it and all below it."""
        remove_tree(folder(self._root, name))

    def children(self, name: str) -> set[str]:
        """The cgroups directly below."""
        return child_names(folder(self._root, name))

    def pids(self, name: str) -> set[int]:
        """The processes in it and below it."""
        return processes(folder(self._root, name))

    def memory_usage(self, name: str) -> int:
        """Bytes charged to it."""
        return int(read_text(folder(self._root, name) / "memory.current"))

    def _hand_down(self, path: Path) -> None:
        there = set(read_text(path / "cgroup.subtree_control").split())
        if missing := [each for each in self._used if each not in there]:
            write(path / "cgroup.subtree_control", " ".join(f"+{each}" for each in missing))


def _controllers(path: Path) -> set[str]:
    return set(read_text(path / "cgroup.controllers").split())
