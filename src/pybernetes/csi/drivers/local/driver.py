"""The calls of the specification for volumes on this node: folders, or images whose size is their limit.

A volume is made where it is needed (WaitForFirstConsumer) and stays on that node. A folder is published by binding it;
an image is attached to a loop device and mounted when it is staged. Without the right to mount (rootless, plain
processes) a folder is published as a symbolic link.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final, ParamSpec, TypeVar

from pybernetes.cri.mounting import bind, is_mount_point, may_mount, mount, mounts, unmount
from pybernetes.csi import v1
from pybernetes.csi.driver import Driver
from pybernetes.csi.errors import CSIError, invalid, not_found

from . import copying, loops
from .state import BLOCK, FOLDER, IMAGE, Entries, Entry, free_space, kind_of

NAME: Final = "local.csi.pybernetes.io"
TOPOLOGY: Final = "kubernetes.io/hostname"
SMALLEST_IMAGE: Final = 16 << 20
"""Bytes: ext4 with a journal needs some."""
UNIT: Final = 1 << 12
DEFAULT_SIZE: Final = 1 << 30
MOUNT_FLAGS: Final = {
    "ro": 1,
    "nosuid": 2,
    "nodev": 4,
    "noexec": 8,
    "sync": 16,
    "dirsync": 128,
    "noatime": 1024,
    "nodiratime": 2048,
    "relatime": 1 << 21,
    "strictatime": 1 << 24,
    "lazytime": 1 << 25,
}
"""Options of mount(8) that are flags of mount(2)."""
_USUAL: Final = ("defaults", "rw", "suid", "dev", "exec", "async", "atime", "diratime")
P = ParamSpec("P")
T = TypeVar("T")


class LocalDriver(Driver):
    """Volumes of one node."""

    name: ClassVar[str] = NAME
    topology_keys: ClassVar[tuple[str, ...]] = (TOPOLOGY,)
    clones: ClassVar[bool] = True
    volume_condition: ClassVar[bool] = True

    def __init__(self, node: str, hostname: str, root: Path) -> None:
        super().__init__(node, {TOPOLOGY: hostname})
        self.root = root
        self.volumes = Entries(root / "volumes", "volume.json")
        self.snapshots = Entries(root / "snapshots", "snapshot.json")

    # -- Controller

    async def create_volume(self, request: Any) -> Any:
        """Make a volume, or find the one of this name."""
        return await _blocking(self._create_volume, request)

    def _create_volume(self, request: Any) -> Any:
        block = {each.HasField("block") for each in request.volume_capabilities}
        if len(block) > 1:
            raise invalid("CreateVolume: a volume is either a file system or a device")
        kind = kind_of(dict(request.parameters), block=block == {True})
        _check_capabilities(request.volume_capabilities, kind)
        if kind != FOLDER and not (may_mount() and loops.available()):
            what = "volumeMode Block" if kind == BLOCK else "capacity enforced"
            raise invalid(f"CreateVolume: {what} needs loop devices, which node {self.node_id} may not use")
        if request.mutable_parameters:
            raise invalid("CreateVolume: volumes of this driver have no mutable parameters")
        if request.HasField("accessibility_requirements"):
            self._check_topology(request.accessibility_requirements)
        size = self._size(request.capacity_range, kind)
        source, content = self._content(request)
        id = f"{_slug(request.name)}"
        found = self.volumes.get(id)
        if found is not None:
            limit = request.capacity_range.limit_bytes
            fits = found.size >= request.capacity_range.required_bytes and (not limit or found.size <= limit)
            if not fits or found.kind != kind or found.source != source:
                raise CSIError("AlreadyExists", f"volume {request.name} exists with another size, kind or source")
            return self._created(found, request)
        if content is not None:
            entry = content[0]
            if (entry.kind == BLOCK) != (kind == BLOCK):
                raise invalid(f"CreateVolume: the source is of kind {entry.kind}, the volume would be {kind}")
            if entry.kind != kind:
                raise invalid("CreateVolume: source and volume must both be shared or both be enforced in capacity")
            if size < entry.size:
                if request.capacity_range.required_bytes:
                    raise CSIError("OutOfRange", f"the source has {entry.size} bytes, the volume would have {size}")
                size = entry.size
        made = Entry(id, request.name, kind, size, time.time(), source)
        self.volumes.make(made, lambda folder: self._fill(folder, made, content))
        return self._created(made, request)

    def _fill(self, folder: Path, made: Entry, content: tuple[Entry, Path] | None) -> None:
        target = folder / _content_name(made)
        if content is not None:
            copying.copy(content[1], target)
            if made.kind != FOLDER:
                loops.grow_image(target, made.size)
            if made.kind == IMAGE:
                loops.grow_unused(target)
        elif made.kind == FOLDER:
            target.mkdir()
            os.chmod(target, 0o777)  # as a new file system that any user may write to
        else:
            loops.make_image(target, made.size, formatted=made.kind == IMAGE)

    def _created(self, entry: Entry, request: Any) -> Any:
        response = v1.CreateVolumeResponse(volume={"volume_id": entry.id, "capacity_bytes": entry.size})
        response.volume.accessible_topology.add().segments.update(self.topology)
        if request.HasField("volume_content_source"):
            response.volume.content_source.CopyFrom(request.volume_content_source)
        return response

    def _check_topology(self, wanted: Any) -> None:
        ours = {tuple(sorted(each.segments.items())) for each in (*wanted.preferred, *wanted.requisite)}
        if ours and tuple(sorted(self.topology.items())) not in ours:
            raise CSIError("ResourceExhausted", f"this driver makes volumes of the node {self.node_id} only")

    def _size(self, wanted: Any, kind: str) -> int:
        required, limit = wanted.required_bytes, wanted.limit_bytes
        if required < 0 or limit < 0 or (limit and required > limit):
            raise CSIError("OutOfRange", f"capacity_range: required {required}, limit {limit}")
        size = required or min(limit or DEFAULT_SIZE, DEFAULT_SIZE)
        size = -(-size // UNIT) * UNIT
        if kind == IMAGE:
            size = max(size, SMALLEST_IMAGE)
        if limit and size > limit:
            raise CSIError("OutOfRange", f"capacity_range: {size} bytes are needed, the limit is {limit}")
        if kind != FOLDER and size > (free := free_space(self.root)):
            raise CSIError("ResourceExhausted", f"the disk of {self.node_id} has {free} bytes left, not {size}")
        return size

    def _content(self, request: Any) -> tuple[str, tuple[Entry, Path] | None]:
        """The data source of a new volume: a name for it, and its path."""
        if not request.HasField("volume_content_source"):
            return "", None
        source = request.volume_content_source
        if source.HasField("snapshot"):
            id, entries, kind = source.snapshot.snapshot_id, self.snapshots, "snapshot"
        else:
            id, entries, kind = source.volume.volume_id, self.volumes, "volume"
        entry = entries.get(id)
        if entry is None:
            raise not_found(f"{kind} {id} is not on {self.node_id}")
        return f"{kind}:{id}", (entry, entries.path(id) / _content_name(entry))

    async def delete_volume(self, request: Any) -> Any:
        """Remove a volume with its data; one that is not there is fine."""
        await _blocking(self._delete_volume, request.volume_id)
        return v1.DeleteVolumeResponse()

    def _delete_volume(self, id: str) -> None:
        entry = self.volumes.get(id)
        if entry is not None and entry.kind != FOLDER:
            loops.detach(self._path(entry))
        self.volumes.remove(id)

    async def validate_volume_capabilities(self, request: Any) -> Any:
        """Whether a volume can be used so."""
        entry = await _blocking(self._volume, request.volume_id)
        try:
            _check_capabilities(request.volume_capabilities, entry.kind)
        except CSIError as error:
            return v1.ValidateVolumeCapabilitiesResponse(message=error.message)
        response = v1.ValidateVolumeCapabilitiesResponse()
        response.confirmed.volume_capabilities.extend(request.volume_capabilities)
        response.confirmed.volume_context.update(request.volume_context)
        response.confirmed.parameters.update(request.parameters)
        return response

    async def list_volumes(self, request: Any) -> Any:
        """The volumes of this node."""
        entries, token = _page(await _blocking(lambda: list(self.volumes.all())), request)
        response = v1.ListVolumesResponse(next_token=token)
        for entry in entries:
            made = response.entries.add(volume={"volume_id": entry.id, "capacity_bytes": entry.size})
            made.status.volume_condition.CopyFrom(await _blocking(self._condition, entry))
            made.volume.accessible_topology.add().segments.update(self.topology)
        return response

    async def get_capacity(self, request: Any) -> Any:
        """The free space on the disk of this node; nothing elsewhere."""
        if request.HasField("accessible_topology") and dict(request.accessible_topology.segments) != self.topology:
            return v1.GetCapacityResponse()
        return v1.GetCapacityResponse(available_capacity=await _blocking(free_space, self.root))

    async def controller_expand_volume(self, request: Any) -> Any:
        """Make a volume larger; the file system of an image that is in use is grown by NodeExpandVolume."""
        return await _blocking(self._expand, request)

    def _expand(self, request: Any) -> Any:
        entry = self._volume(request.volume_id)
        size = self._size(request.capacity_range, entry.kind)
        if size > entry.size:
            path = self._path(entry)
            if entry.kind != FOLDER:
                loops.grow_image(path, size)
            if entry.kind == BLOCK:
                loops.grow_device(path)
            entry = replace(entry, size=size)
            self.volumes.write(entry)
        needed = entry.kind == IMAGE
        if needed and not loops.find(self._path(entry)):
            loops.grow_unused(self._path(entry))
            needed = False
        return v1.ControllerExpandVolumeResponse(capacity_bytes=entry.size, node_expansion_required=needed)

    async def create_snapshot(self, request: Any) -> Any:
        """Copy a volume as it is now."""
        return v1.CreateSnapshotResponse(snapshot=await _blocking(self._create_snapshot, request))

    def _create_snapshot(self, request: Any) -> Any:
        if request.parameters:
            raise invalid(f"VolumeSnapshotClass parameters: {', '.join(sorted(request.parameters))} not known")
        id = f"snap-{_slug(request.name)}"
        source = f"volume:{request.source_volume_id}"
        found = self.snapshots.get(id)
        if found is None:
            volume = self._volume(request.source_volume_id)
            path = self._path(volume)
            _sync(path)
            made = Entry(id, request.name, volume.kind, volume.size, time.time(), source)
            found = self.snapshots.make(made, lambda folder: copying.copy(path, folder / _content_name(made)))
        elif found.source != source:
            raise CSIError("AlreadyExists", f"snapshot {request.name} exists, of another volume")
        return _snapshot(found)

    async def delete_snapshot(self, request: Any) -> Any:
        """Remove a snapshot; one that is not there is fine."""
        await _blocking(self.snapshots.remove, request.snapshot_id)
        return v1.DeleteSnapshotResponse()

    async def list_snapshots(self, request: Any) -> Any:
        """The snapshots of this node, or one of them, or those of a volume."""
        entries: Iterable[Entry] = await _blocking(lambda: list(self.snapshots.all()))
        if request.snapshot_id:
            entries = [each for each in entries if each.id == request.snapshot_id]
        if request.source_volume_id:
            entries = [each for each in entries if each.source == f"volume:{request.source_volume_id}"]
        page, token = _page(list(entries), request)
        response = v1.ListSnapshotsResponse(next_token=token)
        for entry in page:
            response.entries.add(snapshot=_snapshot(entry))
        return response

    # -- Node

    async def node_stage_volume(self, request: Any) -> Any:
        """Attach an image and mount it."""
        await _blocking(self._stage, request)
        return v1.NodeStageVolumeResponse()

    def _stage(self, request: Any) -> None:
        entry = self._volume(request.volume_id)
        _check_capabilities([request.volume_capability], entry.kind)
        target = Path(request.staging_target_path)
        if entry.kind == IMAGE and not is_mount_point(target):
            target.mkdir(parents=True, exist_ok=True, mode=0o750)
            if not loops.find(self._path(entry)):
                loops.grow_unused(self._path(entry))
            device = loops.attach(self._path(entry))
            flags, options = _mount_options(request.volume_capability.mount.mount_flags)
            try:
                mount(device, target, "ext4", flags, options)
            except OSError as error:
                if error.errno == errno.EINVAL and options:
                    raise invalid(f"mountOptions: ext4 does not take {options}") from None
                raise
        elif entry.kind == BLOCK:
            loops.attach(self._path(entry))

    async def node_unstage_volume(self, request: Any) -> Any:
        """Unmount an image and detach it."""
        await _blocking(self._unstage, request)
        return v1.NodeUnstageVolumeResponse()

    def _unstage(self, request: Any) -> None:
        _unmount(request.staging_target_path)
        entry = self.volumes.get(request.volume_id)
        if entry is not None and entry.kind != FOLDER:
            loops.detach(self._path(entry))

    async def node_publish_volume(self, request: Any) -> Any:
        """Bind the volume to the pod's place."""
        await _blocking(self._publish, request)
        return v1.NodePublishVolumeResponse()

    def _publish(self, request: Any) -> None:
        entry = self._volume(request.volume_id)
        _check_capabilities([request.volume_capability], entry.kind)
        target = Path(request.target_path)
        if entry.kind == FOLDER and not may_mount():
            if not target.is_symlink():
                target.symlink_to(self._path(entry))
            return
        if is_mount_point(target):
            return
        if request.volume_capability.access_mode.mode == v1.AccessMode.SINGLE_NODE_SINGLE_WRITER:
            self._check_single(entry, target, request.staging_target_path)
        if entry.kind == BLOCK:
            device = loops.attach(self._path(entry))
            target.touch(0o660)
            bind(device, target, read_only=request.readonly)
            return
        source = self._path(entry)
        if entry.kind == IMAGE:
            source = Path(request.staging_target_path)
            if not request.staging_target_path or not is_mount_point(source):
                raise CSIError("FailedPrecondition", f"volume {entry.id} is not staged at {source}")
        target.mkdir(mode=0o750, exist_ok=True)
        bind(str(source), target, read_only=request.readonly)

    def _check_single(self, entry: Entry, target: Path, staging: str) -> None:
        """A volume for one pod must not be published at a second place."""
        own = {os.path.realpath(target), os.path.realpath(staging) if staging else ""}
        device = loops.find(self._path(entry)) if entry.kind != FOLDER else ""
        for each in mounts():
            folder = entry.kind == FOLDER and each.root.endswith(f"/volumes/{entry.id}/data")
            image = entry.kind == IMAGE and each.source == device
            block = entry.kind == BLOCK and device and each.root == device.removeprefix("/dev")
            if (folder or image or block) and each.path not in own:
                raise CSIError("FailedPrecondition", f"volume {entry.id} is for one pod, and published at {each.path}")

    async def node_unpublish_volume(self, request: Any) -> Any:
        """Take the pod's place away."""
        await _blocking(_unpublish, Path(request.target_path))
        return v1.NodeUnpublishVolumeResponse()

    async def node_expand_volume(self, request: Any) -> Any:
        """Let the file system of an image have all of it; there is nothing to do for the others."""
        return v1.NodeExpandVolumeResponse(capacity_bytes=await _blocking(self._node_expand, request))

    def _node_expand(self, request: Any) -> int:
        entry = self._volume(request.volume_id)
        if not os.path.lexists(request.volume_path):
            raise not_found(f"volume {entry.id} is not published at {request.volume_path}")
        if entry.kind == IMAGE:
            loops.grow_mounted(self._path(entry))
        return entry.size

    async def node_get_volume_stats(self, request: Any) -> Any:
        """How full a volume is; a folder shares the disk of the node."""
        return await _blocking(self._stats, request)

    def _stats(self, request: Any) -> Any:
        entry = self._volume(request.volume_id)
        path = Path(request.volume_path)
        if not os.path.lexists(path):
            raise not_found(f"volume {entry.id} is not published at {path}")
        response = v1.NodeGetVolumeStatsResponse(volume_condition=self._condition(entry))
        if entry.kind == BLOCK:
            response.usage.add(unit=v1.VolumeUsage.BYTES, total=entry.size)
            return response
        found = os.statvfs(path)
        block = found.f_frsize
        response.usage.add(
            unit=v1.VolumeUsage.BYTES,
            total=found.f_blocks * block,
            available=found.f_bavail * block,
            used=(found.f_blocks - found.f_bfree) * block,
        )
        response.usage.add(
            unit=v1.VolumeUsage.INODES,
            total=found.f_files,
            available=found.f_favail,
            used=found.f_files - found.f_ffree,
        )
        return response

    # -- both

    def _condition(self, entry: Entry) -> Any:
        if self._path(entry).exists():
            return v1.VolumeCondition(abnormal=False, message="volume is healthy")
        return v1.VolumeCondition(abnormal=True, message="the data of the volume is gone")

    def _volume(self, id: str) -> Entry:
        entry = self.volumes.get(id)
        if entry is None:
            raise not_found(f"volume {id} is not on {self.node_id}")
        return entry

    def _path(self, entry: Entry) -> Path:
        return self.volumes.path(entry.id) / _content_name(entry)


def _content_name(entry: Entry) -> str:
    return "data" if entry.kind == FOLDER else "disk.img"


def _slug(name: str) -> str:
    """An id for a name: the name itself where a folder can be called so."""
    plain = all(each.isalnum() or each in "-_." for each in name) and name.isascii() and not name.startswith(".")
    return name if plain and len(name) <= 120 else hashlib.sha256(name.encode()).hexdigest()


def _check_capabilities(capabilities: Iterable[Any], kind: str) -> None:
    modes = v1.AccessMode
    for each in capabilities:
        if each.HasField("block") != (kind == BLOCK):
            raise invalid(f"volume_capability: a volume of kind {kind} cannot be used as asked for")
        if each.HasField("mount") and each.mount.fs_type not in ("", "ext4"):
            raise invalid(f"volume_capability: fsType {each.mount.fs_type} is not supported, only ext4")
        if each.HasField("mount") and kind == FOLDER and each.mount.mount_flags:
            flags = ",".join(each.mount.mount_flags)
            raise invalid(f"volume_capability: a shared folder has no mount options ({flags}); use capacity: enforced")
        if each.access_mode.mode in (modes.MULTI_NODE_SINGLE_WRITER, modes.MULTI_NODE_MULTI_WRITER):
            raise invalid("volume_capability: a volume is on one node: ReadWriteMany is not supported")


def _mount_options(flags: Iterable[str]) -> tuple[int, str]:
    """Split mount options into flags of mount(2) and options of ext4, which the kernel checks."""
    number, options = 0, []
    for flag in flags:
        if flag in MOUNT_FLAGS:
            number |= MOUNT_FLAGS[flag]
        elif flag in _USUAL:
            continue
        else:
            options.append(flag)
    return number, ",".join(options)


def _unmount(target: str | Path) -> None:
    if may_mount():  # else nothing is mounted, and umount(2) is refused
        unmount(target)


def _unpublish(target: Path) -> None:
    _unmount(target)
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        target.rmdir()
    else:
        target.unlink()


def _sync(path: Path) -> None:
    """Flush a volume to disk, so that a copy of its image has all of its file system."""
    device = loops.find(path) if path.is_file() else ""
    if device:
        os.sync()
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _snapshot(entry: Entry) -> Any:
    seconds = int(entry.made)
    return v1.Snapshot(
        snapshot_id=entry.id,
        source_volume_id=entry.source.removeprefix("volume:"),
        size_bytes=entry.size,
        creation_time=v1.Timestamp(seconds=seconds, nanos=int((entry.made - seconds) * 1e9)),
        ready_to_use=True,
    )


def _page(entries: list[Entry], request: Any) -> tuple[list[Entry], str]:
    """A page of a list: tokens are ids, so that entries that come and go in between do no harm."""
    if request.max_entries < 0:
        raise invalid("max_entries must not be negative")
    if request.starting_token:
        after = [each for each in entries if each.id >= request.starting_token]
        if not any(each.id == request.starting_token for each in entries):
            raise CSIError("Aborted", f"starting_token {request.starting_token!r} is not one of this list")
        entries = after
    size = request.max_entries or len(entries)
    return entries[:size], entries[size].id if len(entries) > size else ""


async def _blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.to_thread(function, *args, **kwargs)
