"""The kernel's cgroup file systems: which there are, and one interface to both versions of them.

A cgroup is named by its path (`/kubepods/burstable/pod1`), the same in every hierarchy. On a hybrid machine (v1
controllers and an empty cgroup2 mount beside them) the limits are v1's, but folders are removed everywhere, because
runtimes make them everywhere.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .config import CgroupConfig


class CgroupError(Exception):
    """The kernel does not let us have a cgroup as we want it."""


class Hierarchy(Protocol):
    """Cgroups of one machine."""

    version: int

    def exists(self, name: str) -> bool:
        """Whether the cgroup is there with every controller that we use."""
        ...

    def create(self, name: str, config: CgroupConfig) -> None:
        """Make it and what is above it, and set what the config says; no error if it is there."""
        ...

    def update(self, name: str, config: CgroupConfig) -> None:
        """Set what the config says."""
        ...

    def read(self, name: str) -> CgroupConfig:
        """Read the limits that the kernel enforces now: CPU, memory, pids."""
        ...

    def remove(self, name: str) -> None:
        """Remove it and all below it, from every hierarchy; `CgroupError` while there are processes in it."""
        ...

    def children(self, name: str) -> set[str]:
        """The names of the cgroups directly below it, in any hierarchy."""
        ...

    def pids(self, name: str) -> set[int]:
        """The processes in it and below it, as far as our PID namespace shows them."""
        ...

    def memory_usage(self, name: str) -> int:
        """Bytes charged to it."""
        ...

    def page_sizes(self) -> tuple[int, ...]:
        """Sizes of huge pages that can be limited."""
        ...


@dataclass(frozen=True, slots=True)
class Mounts:
    """Where cgroup file systems are mounted."""

    controllers: dict[str, Path]
    """v1: controller (or `name=systemd`) to its folder."""
    unified: Path | None
    """v2, alone or beside v1."""


def find_mounts(mountinfo: str) -> Mounts:
    """Parse a mountinfo file; of several mounts of one controller the shortest path counts, as upstream."""
    controllers: dict[str, Path] = {}
    unified: Path | None = None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        mount_point = Path(left.split()[4].replace("\\040", " "))
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2":
            unified = _shorter(unified, mount_point)
        elif kind == "cgroup":
            for option in options.split(","):
                if option not in ("rw", "ro", "xattr", "clone_children", "noprefix"):
                    controllers[option] = _shorter(controllers.get(option), mount_point)
    return Mounts(controllers, unified)


def detect(mountinfo: Path = Path("/proc/self/mountinfo")) -> Hierarchy:
    """The cgroups of this machine; `CgroupError` if there are none to use."""
    mounts = find_mounts(mountinfo.read_text())
    if "memory" in mounts.controllers or "cpu" in mounts.controllers:
        from .v1 import CgroupsV1

        return CgroupsV1(mounts)
    if mounts.unified is not None:
        from .v2 import CgroupsV2

        return CgroupsV2(mounts.unified)
    raise CgroupError("failed to find cgroup mounts")


def folder(root: Path, name: str) -> Path:
    """The folder of a cgroup in a hierarchy."""
    return root / name.strip("/") if name.strip("/") else root


def make(root: Path, name: str) -> None:
    """Make the folder of a cgroup in a hierarchy, and those above it."""
    path = f"{root}/{name.strip('/')}"
    try:
        os.mkdir(path)
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)


def write(path: Path | str, value: str | int) -> None:
    """Write a value; the error says which file and which value."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            os.write(file, str(value).encode())
        finally:
            os.close(file)
    except OSError as error:
        raise CgroupError(f"failed to write {value!r} to {path}: {error.strerror}") from error


def read_text(path: Path | str) -> str:
    """A file of the kernel, without its end of line; the error says which."""
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError as error:
        raise CgroupError(f"failed to read {path}: {error.strerror}") from error


def remove_tree(path: Path) -> None:
    """Remove a cgroup and those below it; files in it are the kernel's and go with the folder."""
    if not path.is_dir():
        return
    for folder_name, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(folder_name)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise CgroupError(f"unable to remove cgroup {folder_name}: {error.strerror}") from error


def processes(path: Path) -> set[int]:
    """The processes in a cgroup and below it; 0 stands for those that our PID namespace does not show."""
    found: set[int] = set()
    for folder_name, _, _ in os.walk(path):
        try:
            with open(os.path.join(folder_name, "cgroup.procs")) as file:
                found.update(map(int, file.read().split()))
        except OSError:
            continue  # gone meanwhile, or a threaded cgroup
    return found


def child_names(path: Path) -> set[str]:
    """The folders directly below."""
    try:
        with os.scandir(path) as entries:
            return {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
    except FileNotFoundError:
        return set()


def kernel_page_sizes(root: Path = Path("/sys/kernel/mm/hugepages")) -> tuple[int, ...]:
    """Sizes of huge pages that the kernel knows, in bytes."""
    return tuple(sorted(int(name.removeprefix("hugepages-").removesuffix("kB")) * 1024 for name in child_names(root)))


def _shorter(old: Path | None, new: Path) -> Path:
    return new if old is None or len(str(new)) < len(str(old)) else old
