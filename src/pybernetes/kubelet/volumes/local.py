"""`local`: a folder or a block device of this node, behind a PersistentVolume.

A folder is bound to a place of its own for each pod, so that read-only is of that pod alone. A device is given to
containers as a device, or mounted once for the node (formatted if it holds nothing yet) and bound for each pod.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from pybernetes.api.core.v1 import LocalVolumeSource, PersistentVolume, PersistentVolumeSpec, Pod
from pybernetes.client.keys import uid_of
from pybernetes.component import offload
from pybernetes.cri.mounting import bind, is_mount_point, mounts, unmount

from .base import MountedVolume
from .filesystems import mount_device
from .host import Host, fs_group
from .ownership import set_group

PLUGIN: Final = "local-volume"
GROUP_WITHIN: Final = 600.0
"""Seconds for giving all files of a volume to a group."""
_DEVICES: Final = threading.Lock()
"""Held while a device is formatted, mounted or unmounted: a try that took too long may still be at it."""


async def set_up(host: Host, pod: Pod, volume: PersistentVolume, name: str, *, read_only: bool) -> MountedVolume:
    """Bind the folder, or find the device; then give the folder to the pod's group, which may take minutes."""
    path = ((volume.spec or PersistentVolumeSpec()).local or LocalVolumeSource()).path or ""
    found, new, warning = await host.look(pod, path, find, host, pod, volume, name, read_only=read_only)
    if warning:
        host.event(pod, "Warning", "AlreadyMountedVolume", warning)
    if new and not read_only and fs_group(pod) is not None:
        context = pod.spec.security_context if pod.spec else None
        only_root = context is not None and context.fs_group_change_policy == "OnRootMismatch"
        await offload.run(
            f"volume {path}",
            GROUP_WITHIN,
            set_group,
            found.path,
            fs_group(pod),
            read_only=False,
            only_on_mismatch=only_root,
        )
    return found


def find(
    host: Host, pod: Pod, volume: PersistentVolume, name: str, *, read_only: bool
) -> tuple[MountedVolume, bool, str]:
    """The folder, bound, or the device; whether it was bound just now; and what its users should be warned of."""
    spec = volume.spec or PersistentVolumeSpec()
    path = (spec.local or LocalVolumeSource()).path or ""
    volume_name = (volume.metadata.name if volume.metadata else None) or ""
    if not path:
        raise ValueError(f'LocalVolume volume "{volume_name}" path is empty')
    if ".." in path.split("/"):
        raise ValueError(f"invalid path: {path} must not contain '..'")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise ValueError(f'path "{path}" does not exist') from None
    if spec.volume_mode == "Block":
        if not stat.S_ISBLK(mode):
            raise ValueError(f"{path} is not a block device")
        return MountedVolume(name, Path(path), read_only=read_only, device=True), False, ""
    is_device = stat.S_ISBLK(mode)
    if not is_device and not stat.S_ISDIR(mode):
        raise ValueError("only directory and block device are supported")
    folder = host.volume_folder(uid_of(pod), PLUGIN, volume_name)
    with _DEVICES if is_device else nullcontext():
        if is_mount_point(folder):
            return MountedVolume(name, folder, read_only=read_only), False, ""
        if is_device:
            path = str(_mount(host, spec, path, volume_name))
        warning = _other_group(host, pod, path, volume_name)
        folder.mkdir(parents=True, exist_ok=True, mode=0o750)
        bind(path, folder, read_only=read_only)
    return MountedVolume(name, folder, read_only=read_only), True, warning


def _mount(host: Host, spec: PersistentVolumeSpec, device: str, volume_name: str) -> Path:
    """Where the device is mounted for the node."""
    target = _devices(host.root) / volume_name
    local = spec.local or LocalVolumeSource()
    only_read = list(spec.access_modes or ()) == ["ReadOnlyMany"]
    mount_device(device, target, local.fs_type or "", list(spec.mount_options or ()), read_only=only_read)
    return target


def _devices(root: Path) -> Path:
    return root / "plugins" / f"kubernetes.io~{PLUGIN}" / "mounts"


def release(root: Path) -> None:
    """Unmount the devices that no pod uses any more. Blocks."""
    folder = _devices(root)
    if not folder.is_dir():
        return
    with _DEVICES:
        used = {
            os.path.basename(each.path) for each in mounts(root / "pods") if f"/kubernetes.io~{PLUGIN}/" in each.path
        }
        for each in mounts(folder):
            if os.path.basename(each.path) not in used:
                unmount(each.path)
                os.rmdir(each.path)


def _other_group(host: Host, pod: Pod, path: str, volume_name: str) -> str:
    """A warning, if another pod has the volume mounted for another group."""
    group = fs_group(pod)
    if group is None:
        return ""
    pods = str(host.root / "pods")
    here = os.stat(path)
    for each in mounts(pods):
        if (
            f"/kubernetes.io~{PLUGIN}/" in each.path
            and os.path.samestat(os.stat(each.path), here)
            and here.st_gid != group
        ):
            return (
                f"The requested fsGroup is {group}, but the volume {volume_name} has GID {here.st_gid}."
                " The volume may not be shareable."
            )
    return ""
