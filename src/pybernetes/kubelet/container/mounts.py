"""Builds a container's mounts: its volumes, the hosts file and the termination message file."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pybernetes.api.core.v1 import Pod, VolumeMount
from pybernetes.api.gocompat.quote import quote

from ..error_text import why
from ..runtime.types import AnyContainer
from ..volumes import subpath
from ..volumes.base import MountedVolume, Volumes
from . import hosts_file
from .config_error import ConfigError
from .expansion import expand_subpath
from .hostname import Hostname

if TYPE_CHECKING:
    from pybernetes.cri import v1 as cri

ETC_HOSTS_FILE: Final = "etc-hosts"


def volume_mounts(
    pod_folder: Path,
    container: AnyContainer,
    volumes: Volumes,
    variables: Mapping[str, str],
    *,
    image_refs: Mapping[str, str],
    recursive_read_only: bool,
) -> list[cri.Mount]:
    """The mounts of a container's volumes. `recursive_read_only` says whether the runtime can do that."""
    from pybernetes.cri import v1 as cri

    made = []
    for index, mount in enumerate(container.volume_mounts or ()):
        volume = volumes.get(mount.name or "")
        if volume is None or volume.device:
            raise ConfigError(
                f"cannot find volume {quote(mount.name or '')} to mount into container {quote(container.name or '')}"
            )
        path = sub_path(mount, variables)
        made.append(
            cri.Mount(
                container_path=_absolute(mount.mount_path or ""),
                readonly=bool(mount.read_only) or volume.read_only,
                propagation=propagation(mount.mount_propagation),
                recursive_read_only=_recursive(mount, recursive_read_only),
                **_source(pod_folder, container, volume, index, path, image_refs),
            )
        )
    return made


def sub_path(mount: VolumeMount, variables: Mapping[str, str]) -> str:
    """The part of the volume that is mounted; empty for the whole."""
    path = mount.sub_path or ""
    if mount.sub_path_expr:
        try:
            path = expand_subpath(mount.sub_path_expr, variables)
        except ValueError as error:
            raise ConfigError(str(error)) from None
    if path.startswith("/"):
        raise ConfigError(f"error SubPath `{path}` must not be an absolute path")
    if ".." in path.split("/"):
        raise ConfigError(f"unable to provision SubPath `{path}`: must not contain '..'")
    return path


def propagation(mode: str | None) -> int:
    """Whether mounts made later are seen on the other side too."""
    from pybernetes.cri import v1 as cri

    match mode:
        case None | "None":
            return int(cri.PROPAGATION_PRIVATE)
        case "HostToContainer":
            return int(cri.PROPAGATION_HOST_TO_CONTAINER)
        case "Bidirectional":
            return int(cri.PROPAGATION_BIDIRECTIONAL)
    raise ConfigError(f"invalid MountPropagation mode: {quote(mode)}")


def hosts_mount(
    pod_folder: Path, pod: Pod, container: AnyContainer, pod_ips: Sequence[str], hostname: Hostname
) -> list[cri.Mount]:
    """The hosts file, unless the container mounts one itself or the pod has no address yet."""
    from pybernetes.cri import v1 as cri

    if not hosts_file.wants_hosts_file(pod, pod_ips):
        return []
    if any(each.mount_path == hosts_file.ETC_HOSTS for each in container.volume_mounts or ()):
        return []
    path = pod_folder / ETC_HOSTS_FILE
    try:
        hosts_file.write_hosts_file(path, pod, pod_ips, hostname)
    except OSError as error:
        raise ConfigError(why(error)) from None
    return [cri.Mount(container_path=hosts_file.ETC_HOSTS, host_path=str(path))]


def termination_message_mount(pod_folder: Path, container: AnyContainer) -> list[cri.Mount]:
    """A new file for each run of a container, which every user in it may write to."""
    from pybernetes.cri import v1 as cri

    if not container.termination_message_path:
        return []
    folder = pod_folder / "containers" / (container.name or "")
    path = folder / f"{random.getrandbits(32):08x}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o750)
        path.touch()
        os.chmod(path, 0o666)
    except OSError as error:
        raise ConfigError(f"error on creating termination-log file {quote(str(path))}: {why(error)}") from None
    return [cri.Mount(container_path=_absolute(container.termination_message_path), host_path=str(path))]


def block_devices(container: AnyContainer, volumes: Volumes) -> list[cri.Device]:
    """The devices of `volumeDevices`."""
    from pybernetes.cri import v1 as cri

    devices = []
    for each in container.volume_devices or ():
        path = each.device_path or ""
        if not path.startswith("/"):
            raise ConfigError(f"error DevicePath `{path}` must be an absolute path")
        volume = volumes.get(each.name or "")
        if volume is None or not volume.device:
            raise ConfigError(
                f"cannot find volume {quote(each.name or '')} to pass into container {quote(container.name or '')}"
            )
        permissions = "r" if volume.read_only else "mrw"
        devices.append(cri.Device(container_path=path, host_path=str(volume.path), permissions=permissions))
    return devices


def _source(
    pod_folder: Path,
    container: AnyContainer,
    volume: MountedVolume,
    index: int,
    path: str,
    image_refs: Mapping[str, str],
) -> dict[str, object]:
    from pybernetes.cri import v1 as cri

    if volume.image:
        image = cri.ImageSpec(image=image_refs.get(volume.name, volume.image), user_specified_image=volume.image)
        return {"image": image, "image_sub_path": path}
    if not path:
        return {"host_path": str(volume.path)}
    try:
        place = subpath.prepare(pod_folder, volume.name, volume.path, container.name or "", index, path)
    except (OSError, ValueError):  # a zero byte; without the reason, which would reveal the node's file system
        raise ConfigError(
            f"failed to prepare subPath for volumeMount {quote(volume.name)} of container {quote(container.name or '')}"
        ) from None
    return {"host_path": str(place)}


def _recursive(mount: VolumeMount, supported: bool) -> bool:
    mode = mount.recursive_read_only
    if mode in (None, "Disabled"):
        return False
    name = quote(mount.name or "")
    start = f"failed to resolve recursive read-only mode: volume {name} requested recursive read-only mode, but it is"
    if not mount.read_only:
        raise ConfigError(f"{start} not read-only")
    if mount.mount_propagation not in (None, "None"):
        raise ConfigError(f"{start} not compatible with propagation {quote(mount.mount_propagation or '')}")
    if mode == "Enabled" and not supported:
        raise ConfigError(f"{start} not supported by the runtime")
    return supported


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"
