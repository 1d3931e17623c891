"""Volumes inside a container: mounted as directories, or as raw devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...field import FieldError, Path, forbidden, invalid, not_found, not_supported, required
from ..containers import AnyContainer
from ..v1.volume import Volume, VolumeMount
from .common import validate_local_descending_path, validate_path_no_backsteps

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")


def validate_volume_mounts(container: AnyContainer, volumes: Mapping[str, Volume], path: Path) -> list[FieldError]:
    """Directories: each of a volume of the pod, each at a place of its own."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    devices = {each.name or "": each.device_path or "" for each in container.volume_devices or ()}
    device_paths = set(devices.values())
    for index, mount in enumerate(container.volume_mounts or ()):
        name, target = mount.name or "", mount.mount_path or ""
        if not name:
            errors.append(required(path.index(index).child("name")))
        if name not in volumes:
            errors.append(not_found(path.index(index).child("name"), name))
        if not target:
            errors.append(required(path.index(index).child("mountPath")))
        if target in seen:
            errors.append(invalid(path.index(index).child("mountPath"), target, "must be unique"))
        seen.add(target)
        if devices:
            if name in devices:
                detail = "must not already exist in volumeDevices"
                errors.append(invalid(path.index(index).child("name"), name, detail))
            if target in device_paths:
                detail = "must not already exist as a path in volumeDevices"
                errors.append(invalid(path.index(index).child("mountPath"), target, detail))
        if mount.sub_path:
            errors += validate_local_descending_path(mount.sub_path, path.child("subPath"))
        if mount.sub_path_expr:
            if mount.sub_path:
                detail = "subPathExpr and subPath are mutually exclusive"
                errors.append(invalid(path.index(index).child("subPathExpr"), mount.sub_path_expr, detail))
            errors += validate_local_descending_path(mount.sub_path_expr, path.child("subPathExpr"))
        if mount.mount_propagation is not None:
            errors += _validate_propagation(mount, container, path.child("mountPropagation"))
        if mount.recursive_read_only is not None:
            errors += _validate_recursive_read_only(mount, path.child("recursiveReadOnly"))
    return errors


def _validate_propagation(mount: VolumeMount, container: AnyContainer, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    mode = mount.mount_propagation
    if mode not in _PROPAGATIONS:
        errors.append(not_supported(path, mode, _PROPAGATIONS))
    context = container.security_context
    if mode == "Bidirectional" and not (context is not None and context.privileged):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(forbidden(path, detail))
    return errors


def _validate_recursive_read_only(mount: VolumeMount, path: Path) -> list[FieldError]:
    mode = mount.recursive_read_only
    if mode not in _RECURSIVE:
        return [not_supported(path, mode, _RECURSIVE)]
    errors: list[FieldError] = []
    if mode != "Disabled":
        if not mount.read_only:
            errors.append(forbidden(path, "may only be specified when readOnly is true"))
        if mount.mount_propagation not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            errors.append(forbidden(path, detail))
    return errors


def validate_volume_devices(container: AnyContainer, volumes: Mapping[str, Volume], path: Path) -> list[FieldError]:
    """Raw devices: only claims can be such."""
    errors: list[FieldError] = []
    names: set[str] = set()
    paths: set[str] = set()
    mounts = {each.name or "": each.mount_path or "" for each in container.volume_mounts or ()}
    mount_paths = set(mounts.values())
    for index, device in enumerate(container.volume_devices or ()):
        at = path.index(index)
        name, target = device.name or "", device.device_path or ""
        volume = volumes.get(name)
        if not name:
            errors.append(required(at.child("name")))
        if name in names:
            errors.append(invalid(at.child("name"), name, "must be unique"))
        if volume is None:
            errors.append(not_found(at.child("name"), name))
        elif volume.persistent_volume_claim is None and volume.ephemeral is None:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(at.child("name"), name, detail))
        if not target:
            errors.append(required(at.child("devicePath")))
        if target in paths:
            errors.append(invalid(at.child("devicePath"), target, "must be unique"))
        if target and validate_path_no_backsteps(target, at):
            errors.append(invalid(at.child("devicePath"), target, "can not contain backsteps ('..')"))
        else:
            paths.add(target)
        if name in mounts:
            errors.append(invalid(at.child("name"), name, "must not already exist in volumeMounts"))
        if target in mount_paths:
            detail = "must not already exist as a path in volumeMounts"
            errors.append(invalid(at.child("devicePath"), target, detail))
        if name:
            names.add(name)
    return errors
