"""The calls of CSI: dynamic volumes are folders with a quota, snapshots and copies are clones, nodes bind a mount."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from pybernetes.csi import v1
from pybernetes.csi.driver import Driver
from pybernetes.csi.errors import CSIError, invalid, not_found
from pybernetes.objectfs import tree
from pybernetes.objectfs.csi.mounts import format_volume
from pybernetes.objectfs.csi.publisher import Publisher
from pybernetes.objectfs.csi.request import NAME, Volume, safe_name, volume
from pybernetes.objectfs.errors import NotFormatted, ObjectFSError
from pybernetes.objectfs.meta import records
from pybernetes.objectfs.meta.slices import Slices
from pybernetes.objectfs.meta.urls import with_password
from pybernetes.objectfs.meta.xattrs import Xattrs
from pybernetes.objectfs.opened import Opened, opened

SNAPSHOTS = ".snapshots"
# The volume that a snapshot is of: an extended attribute of its folder.
SOURCE = b"user.objectfs.source"
# Parameters of a StorageClass that become the volume's context.
PARAMETERS = (
    "mount-options", "delete-delay", "mount-cpu-limit", "mount-cpu-request", "mount-memory-limit",
    "mount-memory-request",
)  # fmt: skip
STAT_SECONDS = 20.0


class NodeDriver(Driver):
    """The node service: mounts, bind mounts, unmounts, usage."""

    name: ClassVar[str] = NAME

    def __init__(self, node_id: str, publisher: Publisher) -> None:
        super().__init__(node_id)
        self._publisher = publisher

    async def node_publish_volume(self, request: Any) -> Any:
        """Mount the volume on this node, if it is not yet, and bind it into the pod."""
        capability = request.volume_capability
        if capability.HasField("block"):
            raise invalid("NodePublishVolume: a file system over an object store has no block devices")
        flags = tuple(word for flag in capability.mount.mount_flags for word in flag.split(","))
        found = volume(request.volume_id, dict(request.volume_context), dict(request.secrets), flags)
        single = capability.access_mode.mode == v1.AccessMode.SINGLE_NODE_SINGLE_WRITER
        await self._publisher.publish(found, request.target_path, request.readonly, single=single)
        return v1.NodePublishVolumeResponse()

    async def node_unpublish_volume(self, request: Any) -> Any:
        """Take the volume from the pod, and from the node with its last pod."""
        await self._publisher.unpublish(request.volume_id, request.target_path)
        return v1.NodeUnpublishVolumeResponse()

    async def node_get_volume_stats(self, request: Any) -> Any:
        """The usage that df reports: the quota of a folder is its size."""
        try:
            found = await asyncio.wait_for(asyncio.to_thread(os.statvfs, request.volume_path), STAT_SECONDS)
        except FileNotFoundError:
            raise not_found(f"{request.volume_path} is not there") from None
        except TimeoutError:
            raise CSIError("DeadlineExceeded", f"{request.volume_path} does not answer") from None
        response = v1.NodeGetVolumeStatsResponse()
        block, units = found.f_frsize, v1.VolumeUsage
        response.usage.add(
            unit=units.BYTES, total=found.f_blocks * block, available=found.f_bavail * block,
            used=(found.f_blocks - found.f_bfree) * block,
        )  # fmt: skip
        response.usage.add(
            unit=units.INODES, total=found.f_files, available=found.f_favail, used=found.f_files - found.f_ffree
        )
        return response


class ControllerDriver(Driver):
    """The controller service: folders, quotas, clones. Works on the metadata, without a mount."""

    name: ClassVar[str] = NAME
    clones: ClassVar[bool] = True

    async def create_volume(self, request: Any) -> Any:
        """Make a folder with a quota, or find the one of this name."""
        if any(each.HasField("block") for each in request.volume_capabilities):
            raise invalid("CreateVolume: a file system over an object store has no block devices")
        context = {key: value for key, value in request.parameters.items() if key in PARAMETERS}
        unknown = [key for key in request.parameters if key not in PARAMETERS and not key.startswith("csi.storage")]
        if unknown:
            raise invalid(f"CreateVolume: parameters {', '.join(sorted(unknown))} are not known")
        name = safe_name(request.name)
        found = volume(name, context, dict(request.secrets))
        size = request.capacity_range.required_bytes or request.capacity_range.limit_bytes
        source = _source(request)
        await asyncio.to_thread(self._create, found, name, size, source)
        response = v1.CreateVolumeResponse(volume={"volume_id": name, "capacity_bytes": size})
        response.volume.volume_context.update({**context, "folder": name})
        if request.HasField("volume_content_source"):
            response.volume.content_source.CopyFrom(request.volume_content_source)
        return response

    def _create(self, found: Volume, name: str, size: int, source: str) -> None:
        format_volume(found)
        with _opened(found) as volume:
            names = volume.namespace()
            folder = _find(volume, name)
            if folder is None and source:
                model = _find(volume, source)
                if model is None:
                    raise not_found(f"{source} is not in volume {found.name}")
                slices = Slices(volume.engine, time.time_ns)
                # Under its own name only when it is whole: a clone that was cut off is begun again.
                partial = f".creating-{name}"
                self._remove(volume, partial)
                for _ in tree.clone(names, slices, model, records.ROOT, partial.encode()):
                    pass
                names.rename(records.ROOT, partial.encode(), records.ROOT, name.encode())
                folder = names.lookup(records.ROOT, name.encode()).inode
            elif folder is None:
                folder = names.create(records.ROOT, name.encode(), 0o040777, 0, 0).inode
            if size:
                quotas = tree.Quotas(volume.engine, names)
                known = quotas.get(folder)
                if known is not None and known[0].size != size:
                    raise CSIError("AlreadyExists", f"volume {name} exists with {known[0].size} bytes")
                if known is None:
                    for _ in quotas.set(folder, size, 0):
                        pass

    async def delete_volume(self, request: Any) -> Any:
        """Remove the folder with its data (to the trash, if the volume has one); one that is not there is fine."""
        found = volume(request.volume_id, {}, dict(request.secrets))
        await asyncio.to_thread(self._delete, found, request.volume_id)
        return v1.DeleteVolumeResponse()

    def _delete(self, found: Volume, path: str) -> None:
        if safe_name(path.rpartition("/")[2]) != path.rpartition("/")[2]:
            return  # not made here
        try:
            with _opened(found) as volume:
                self._remove(volume, path)
        except CSIError as error:
            if not isinstance(error.__cause__, NotFormatted):
                raise

    @staticmethod
    def _remove(volume: Opened, path: str) -> None:
        if _find(volume, path) is not None:
            for _ in tree.remove(volume.namespace(), *volume.parent(f"/{path}")):
                pass

    async def controller_expand_volume(self, request: Any) -> Any:
        """Give the folder a larger quota: nodes have nothing to do."""
        found = volume(request.volume_id, {}, dict(request.secrets))
        size = request.capacity_range.required_bytes
        await asyncio.to_thread(self._expand, found, request.volume_id, size)
        return v1.ControllerExpandVolumeResponse(capacity_bytes=size, node_expansion_required=False)

    def _expand(self, found: Volume, name: str, size: int) -> None:
        with _opened(found) as volume:
            folder = _find(volume, name)
            if folder is None:
                raise not_found(f"volume {name} is not in {found.name}")
            for _ in tree.Quotas(volume.engine, volume.namespace()).set(folder, size, 0):
                pass

    async def create_snapshot(self, request: Any) -> Any:
        """Clone a volume's folder as it is now, file by file."""
        found = volume(request.source_volume_id, {}, dict(request.secrets))
        name = safe_name(request.name)
        made = await asyncio.to_thread(self._snapshot, found, request.source_volume_id, name)
        response = v1.CreateSnapshotResponse()
        response.snapshot.snapshot_id = name
        response.snapshot.source_volume_id = request.source_volume_id
        response.snapshot.creation_time.seconds = made // 1_000_000_000
        response.snapshot.ready_to_use = True
        return response

    def _snapshot(self, found: Volume, source: str, name: str) -> int:
        with _opened(found) as volume:
            names = volume.namespace()
            model = _find(volume, source)
            if model is None:
                raise not_found(f"volume {source} is not in {found.name}")
            folder = _find(volume, SNAPSHOTS)
            if folder is None:
                folder = names.create(records.ROOT, SNAPSHOTS.encode(), 0o040700, 0, 0).inode
            known, attributes = _find(volume, f"{SNAPSHOTS}/{name}"), Xattrs(volume.engine, names.journal)
            if known is None:
                partial = f".creating-{name}"
                self._remove(volume, f"{SNAPSHOTS}/{partial}")
                slices = Slices(volume.engine, time.time_ns)
                for _ in tree.clone(names, slices, model, folder, partial.encode()):
                    pass
                known = names.lookup(folder, partial.encode()).inode
                attributes.set(known, SOURCE, source.encode())
                names.rename(folder, partial.encode(), folder, name.encode())
            elif SOURCE in attributes.names(known) and attributes.get(known, SOURCE) != source.encode():
                raise CSIError("AlreadyExists", f"snapshot {name} exists, of another volume")
            return names.get(known).btime

    async def delete_snapshot(self, request: Any) -> Any:
        """Remove a snapshot; one that is not there is fine."""
        found = volume(request.snapshot_id, {}, dict(request.secrets))
        await asyncio.to_thread(self._delete, found, f"{SNAPSHOTS}/{request.snapshot_id}")
        return v1.DeleteSnapshotResponse()

    async def validate_volume_capabilities(self, request: Any) -> Any:
        """Everything but block devices: many pods on many nodes may write."""
        found = volume(request.volume_id, dict(request.volume_context), dict(request.secrets))
        await asyncio.to_thread(self._check_there, found)
        if any(each.HasField("block") for each in request.volume_capabilities):
            return v1.ValidateVolumeCapabilitiesResponse(message="block devices are not supported")
        response = v1.ValidateVolumeCapabilitiesResponse()
        response.confirmed.volume_capabilities.extend(request.volume_capabilities)
        response.confirmed.volume_context.update(request.volume_context)
        return response

    def _check_there(self, found: Volume) -> None:
        with _opened(found) as volume:
            if _find(volume, found.folder or found.id) is None:
                raise not_found(f"volume {found.id} is not in {found.name}")


def _source(request: Any) -> str:
    """Where the content of a new volume is, from the volume's root."""
    if not request.HasField("volume_content_source"):
        return ""
    source = request.volume_content_source
    if source.HasField("snapshot"):
        return f"{SNAPSHOTS}/{source.snapshot.snapshot_id}"
    return str(source.volume.volume_id)


class _opened:
    """The volume's metadata, with what goes wrong there as an error of CSI."""

    def __init__(self, found: Volume) -> None:
        secrets: Mapping[str, str] = found.secrets
        self._context = opened(with_password(found.metaurl, secrets.get("meta-password", "")))

    def __enter__(self) -> Opened:
        try:
            return self._context.__enter__()
        except ObjectFSError as error:
            raise CSIError("FailedPrecondition", str(error)) from error
        except OSError as error:
            raise CSIError("Unavailable", str(error.strerror or error)) from error

    def __exit__(self, *error: Any) -> None:
        try:
            self._context.__exit__(*error)
        except ObjectFSError as failure:
            raise CSIError("FailedPrecondition", str(failure)) from failure


def _find(volume: Opened, path: str) -> int | None:
    try:
        return volume.find(f"/{path}").inode
    except ObjectFSError:
        return None
