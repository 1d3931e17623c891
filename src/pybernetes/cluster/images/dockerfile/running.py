"""RUN: a command in the files of a stage, as a container would run it, on the network of this machine or on none."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybernetes.cluster import files
from pybernetes.cluster.images.dockerfile import layers
from pybernetes.cri import capabilities, hidden
from pybernetes.cri.embedded import once, syscalls
from pybernetes.cri.embedded.images import roots
from pybernetes.cri.embedded.syscalls import open_in_root

PLACES = ("/proc", "/sys", "/dev", "/etc/resolv.conf", "/etc/hosts")
"""Mount points, made if they are missing; they do not belong to the layer."""
NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts")
NETWORKS = ("default", "host", "none")
WITHHELD = ("MKNOD",)
"""Capabilities beside those that a container has not either: no cgroup says which devices may be used."""


@dataclass(frozen=True)
class Place:
    """Where a command runs: the layers (topmost first), and where overlayfs writes."""

    layers: Path
    lower: Sequence[str]
    upper: Path
    work: Path
    mount_point: Path


def run(
    place: Place,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    user: str,
    folder: str,
    *,
    network: str,
    mounts: Sequence[Mapping[str, Any]],
    output: Callable[[bytes], object],
) -> int:
    """Runs it; its exit code. Raises `once.NotStarted`."""
    everything = capabilities.current()
    granted = capabilities.wanted([], WITHHELD, everything) & everything
    own_network = network == "none"
    given = [] if own_network else [_copy(path, place.upper.parent) for path in NETWORK_FILES if os.path.exists(path)]
    spec = {
        "cgroups": [],
        "cgroup_mounts": [],
        "join": 0,
        "unshare": syscalls.NEWNET if own_network else 0,
        "layers_dir": str(place.layers),
        "lower": list(place.lower),
        "upper": str(place.upper),
        "work": str(place.work),
        "overlay": f",{roots.OPTIONS}",
        "rootfs": str(place.mount_point),
        "mounts": [*given, *sorted(mounts, key=lambda each: each["target"].count("/"))],
        "devices": [],
        "privileged": False,
        "readonly_rootfs": False,
        "masked_paths": list(hidden.MASKED_PATHS),
        "readonly_paths": list(hidden.READONLY_PATHS),
        "user": {"user": user},
        "capabilities": granted,
        "ambient": 0,
        "no_new_privs": False,
        "seccomp": _seccomp(granted).hex(),
        "args": list(arguments),
        "env": [[name, value] for name, value in environment.items()],
        "cwd": folder,
        "make_cwd": True,
        "tty": False,
    }
    return once.run(spec, output)


@dataclass(frozen=True)
class Stubs:
    """The places for mounts that a root lacks, inner ones first, and the folders that they are made in."""

    paths: list[str]
    folders: dict[str, os.stat_result]


def missing(root: int, targets: Sequence[str]) -> Stubs:
    """The stubs that mounts will leave in a root."""
    paths: set[str] = set()
    folders: dict[str, os.stat_result] = {}
    for target in (*PLACES, *targets):
        path = target
        while path != "/":
            try:
                found = open_in_root(root, path, os.O_PATH)
            except OSError:
                paths.add(path)
                path = os.path.dirname(path)
                continue
            if path != target:
                folders[path] = os.fstat(found)
            os.close(found)
            break
    return Stubs(sorted(paths, key=lambda path: -path.count("/")), folders)


def remove_stubs(upper: Path, stubs: Stubs) -> None:
    """Takes away what was made for mounts, unless the command made something of it."""
    root = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for path in stubs.paths:
            _remove_empty(root, path, None)
        for path, before in stubs.folders.items():
            _remove_empty(root, path, before)
    finally:
        os.close(root)


def _remove_empty(root: int, path: str, before: os.stat_result | None) -> None:
    """Removes an empty file or folder; one that was there before only if its copy says nothing new."""
    folder, name = os.path.split(path)
    with contextlib.suppress(OSError):  # it has something in it, or is gone
        above = open_in_root(root, folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            state = os.stat(name, dir_fd=above, follow_symlinks=False)
            same = before is None or all(
                getattr(state, each) == getattr(before, each) for each in ("st_mode", "st_uid", "st_gid")
            )
            if stat.S_ISDIR(state.st_mode) and same and not layers.is_opaque(root, path):
                os.rmdir(name, dir_fd=above)
            elif stat.S_ISREG(state.st_mode) and state.st_size == 0:
                os.unlink(name, dir_fd=above)
        finally:
            os.close(above)


def bind(source: Path, target: str, *, readonly: bool = False) -> dict[str, Any]:
    """A mount, as `inside.container` takes it."""
    return {
        "source": str(source),
        "target": target,
        "readonly": readonly,
        "layers": [],
        "sub_path": "",
        "recursive": readonly,
        "propagation": syscalls.MS_PRIVATE,
    }


def cache_folder(caches: Path, id: str, mode: int, owner: tuple[int, int]) -> Path:
    """The folder of a cache, which all builds of the cluster share."""
    folder = caches / hashlib.sha256(id.encode()).hexdigest()[:32]
    if not folder.exists():
        files.make_private_folder(folder)
        os.chown(folder, *owner)
        folder.chmod(mode)
    os.utime(folder)
    return folder


def _copy(path: str, folder: Path) -> dict[str, Any]:
    """A copy of a file of this machine: programs write to some of them."""
    target = folder / os.path.basename(path)
    shutil.copyfile(path, target)
    target.chmod(0o644)
    return bind(target, path)


def _seccomp(granted: int) -> bytes:
    from pybernetes.cri.embedded import seccomp

    machine = os.uname().machine
    return seccomp.runtime_default(granted, machine) if machine in seccomp.OF_MACHINE else b""
