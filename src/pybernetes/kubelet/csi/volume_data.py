"""Stores a CSI volume's state on disk, with upstream's paths and field names, so that a restarted kubelet finds it.

    pods/UID/volumes/kubernetes.io~csi/SPEC/vol_data.json     beside `mount`: the publication for a pod
    plugins/kubernetes.io/csi/DRIVER/SHA/vol_data.json        beside `globalmount`: the staging on the node
    plugins/kubernetes.io/csi/volumeDevices/SPEC/data/UID/vol_data.json, .../publish/SPEC/UID, .../staging/SPEC
                                                              the same for block devices
    pods/UID/volumeDevices/kubernetes.io~csi/SPEC             a link to the published device

SPEC is the PersistentVolume's name, or the volume's in the pod where it has none. A file is written before the driver
is called, so that whatever the driver has made can be undone.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pybernetes.component import state_files
from pybernetes.component.openat2 import RESOLVE_NO_XDEV, openat2

FILE: Final = "vol_data.json"
PLUGIN: Final = "kubernetes.io~csi"
_KEYS: Final = {
    "specVolID": "spec_name",
    "volumeHandle": "handle",
    "driverName": "driver",
    "nodeName": "node",
    "attachmentID": "attachment",
    "volumeLifecycleMode": "lifecycle",
}
_ATTACHABLE: Final = "attachable"
"""Ours: without it a restarted kubelet could not say which volumes a controller must not detach."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VolumeData:
    """One vol_data.json."""

    driver: str
    handle: str
    spec_name: str = ""
    node: str = ""
    attachment: str = ""
    lifecycle: str = "Persistent"
    attachable: bool = False
    block: bool = False
    """Not in the file: it follows from where the file is."""

    def encoded(self) -> bytes:
        """As JSON."""
        found = {key: getattr(self, name) for key, name in _KEYS.items() if getattr(self, name)}
        return json.dumps({**found, **({_ATTACHABLE: "true"} if self.attachable else {})}).encode()

    @classmethod
    def decoded(cls, text: bytes, *, block: bool = False) -> VolumeData:
        """From JSON; raises ValueError."""
        found = json.loads(text)
        if not isinstance(found, dict) or not found.get("driverName") or not found.get("volumeHandle"):
            raise ValueError("no driverName and volumeHandle")
        values = {name: str(found[key]) for key, name in _KEYS.items() if key in found}
        return cls(**values, attachable=found.get(_ATTACHABLE) == "true", block=block)


class Layout:
    """Where things are below the kubelet's root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.plugins = root / "plugins" / "kubernetes.io" / "csi"
        self.devices = self.plugins / "volumeDevices"

    def published(self, uid: str, data: VolumeData) -> Path:
        """The target path of a publication."""
        if data.block:
            return self.devices / "publish" / data.spec_name / uid
        return self.pod_file(uid, data).parent / "mount"

    def pod_file(self, uid: str, data: VolumeData) -> Path:
        """The vol_data.json of a publication."""
        if data.block:
            return self.devices / data.spec_name / "data" / uid / FILE
        return self.root / "pods" / uid / "volumes" / PLUGIN / data.spec_name / FILE

    def device_link(self, uid: str, data: VolumeData) -> Path:
        """Where a pod's folder shows the device."""
        return self.root / "pods" / uid / "volumeDevices" / PLUGIN / data.spec_name

    def global_file(self, data: VolumeData) -> Path:
        """The vol_data.json of a staging."""
        if data.block:
            return self.devices / data.spec_name / "data" / FILE
        sha = hashlib.sha256(data.handle.encode()).hexdigest()
        return self.plugins / data.driver / sha / FILE

    def staging(self, data: VolumeData) -> Path:
        """The staging target path."""
        if data.block:
            return self.devices / "staging" / data.spec_name
        return self.global_file(data).parent / "globalmount"

    # -- writing, blocking

    def note_published(self, uid: str, data: VolumeData) -> None:
        """Before NodePublishVolume: all but the target itself, which is the driver's to make."""
        state_files.write(self.pod_file(uid, data), data.encoded(), 0o644)
        self.published(uid, data).parent.mkdir(parents=True, exist_ok=True, mode=0o750)

    def link_device(self, uid: str, data: VolumeData) -> None:
        """After NodePublishVolume of a device."""
        link = self.device_link(uid, data)
        link.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        if not link.is_symlink():
            link.symlink_to(self.published(uid, data))

    def note_staged(self, data: VolumeData) -> None:
        """Before NodeStageVolume."""
        name = data.spec_name if data.block else ""
        kept = VolumeData(data.driver, data.handle, name, lifecycle="", attachable=data.attachable)
        state_files.write(self.global_file(data), kept.encoded(), 0o644)
        self.staging(data).mkdir(parents=True, exist_ok=True, mode=0o750)

    def forget_published(self, uid: str, data: VolumeData) -> None:
        """After NodeUnpublishVolume. Raises OSError if something is still mounted, or in a folder."""
        self.device_link(uid, data).unlink(missing_ok=True)
        _remove_target(self.published(uid, data))
        self.pod_file(uid, data).unlink(missing_ok=True)
        _remove_folder(self.pod_file(uid, data).parent)
        if data.block:
            _remove_folder(self.published(uid, data).parent)

    def forget_staged(self, data: VolumeData) -> None:
        """After NodeUnstageVolume."""
        _remove_target(self.staging(data))
        self.global_file(data).unlink(missing_ok=True)
        _remove_folder(self.global_file(data).parent)
        if data.block:
            _remove_folder(self.global_file(data).parent.parent)

    # -- reading, blocking

    def find_published(self) -> Iterator[tuple[str, VolumeData]]:
        """The publications that are on disk: pod, volume."""
        pods = self.root / "pods"
        for pod in _folders(pods):
            for volume in _folders(pod / "volumes" / PLUGIN, pods):
                if data := _read(volume / FILE, pods, block=False):
                    yield pod.name, data
        for device in _folders(self.devices):
            for entry in _folders(device / "data", self.devices):
                if data := _read(entry / FILE, self.devices, block=True):
                    yield entry.name, data

    def find_staged(self) -> Iterator[VolumeData]:
        """The stagings that are on disk."""
        for driver in _folders(self.plugins):
            if driver != self.devices:
                for volume in _folders(driver, self.plugins):
                    if data := _read(volume / FILE, self.plugins, block=False):
                        yield data
        for device in _folders(self.devices):
            if data := _read(device / "data" / FILE, self.devices, block=True):
                yield data


def _read(path: Path, base: Path, *, block: bool) -> VolumeData | None:
    if _is_mounted_over(path, base):
        return None
    return state_files.read(path, lambda text: VolumeData.decoded(text, block=block))


def _is_mounted_over(path: Path, base: Path) -> bool:
    """Whether something is mounted on the way from `base` to a path: it may never answer, and is not the kubelet's."""
    folder = os.open(base, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(openat2(folder, os.fspath(path.relative_to(base)), os.O_PATH, RESOLVE_NO_XDEV))
    except OSError as error:
        if error.errno == errno.EXDEV:
            log.warning("%s is not read: something is mounted over it", path)
            return True
    finally:
        os.close(folder)
    return False


def _folders(path: Path, base: Path | None = None) -> list[Path]:
    """The folders in a folder; none if something is mounted on the way to it from `base`."""
    try:
        if base is not None and _is_mounted_over(path, base):
            return []
        with os.scandir(path) as entries:
            return sorted(Path(each.path) for each in entries if each.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _remove_target(path: Path) -> None:
    """Remove a driver's target, which is an empty folder or a file now; what is mounted raises OSError."""
    try:
        path.rmdir()
    except FileNotFoundError:
        return
    except NotADirectoryError:
        path.unlink()


def _remove_folder(path: Path) -> None:
    """Remove a folder unless something else is in it."""
    try:
        path.rmdir()
    except OSError:
        return
