"""Makes snapshots of volumes and deletes them: upstream's snapshot controller and csi-snapshotter, for one driver.

Woken by: VolumeSnapshots and VolumeSnapshotContents. Writes: contents (named after the snapshot's uid, so that a second
try finds the first one's), the status and finalizers of both. A snapshot that names a content instead is bound to it
when both name each other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import ObjectReference, PersistentVolume, PersistentVolumeClaim, SecretReference
from pybernetes.api.resources import Resource
from pybernetes.api.times import rfc3339
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.keys import Key, key_of
from pybernetes.csi import v1

from ..errors import CSIError
from . import snapshot_objects as objects
from .loop import Context, Loop
from .requests import PREFIX, amount

SNAPSHOTS: Final = "volumesnapshots"
CONTENTS: Final = "volumesnapshotcontents"
CLASSES: Final = "volumesnapshotclasses"
DEFAULT: Final = "snapshot.storage.kubernetes.io/is-default-class"
BOUND: Final = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"
AS_SOURCE: Final = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"
CONTENT_BOUND: Final = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
SECRET: Final = f"{PREFIX}snapshotter-secret-"
DELETION_SECRET: Final = "snapshot.storage.kubernetes.io/deletion-secret-"
CREATE_SECONDS: Final = 300.0
NOT_READY: Final = 2.0
"""Seconds until a snapshot that its driver still works on is asked for again."""
log = logging.getLogger(__name__)
Json = dict[str, Any]


class Refused(Exception):
    """A snapshot that cannot be made, and why."""


class Snapshotter:
    """Snapshots of the volumes of one driver."""

    def __init__(self, context: Context, ours: Callable[[PersistentVolume], bool] | None = None) -> None:
        """`ours(volume)` says whether a volume is this process's; without it all of the driver are."""
        self._context, self._ours = context, ours
        self._client = context.client
        self._recorder = context.events.recorder(f"snapshot-controller {context.name}")
        self._snapshots = Loop("snapshots", context.clock, self.sync_snapshot)
        self._contents = Loop("snapshot contents", context.clock, self.sync_content)

    async def run(self) -> None:
        """Work until cancelled; a driver without snapshots needs none of this."""
        capabilities = await self._context.driver.controller_capabilities()
        if v1.ControllerRPC.CREATE_DELETE_SNAPSHOT not in capabilities:
            return
        snapshots = self._context.informers.metadata_informer(
            Resource(objects.GROUP, "v1", SNAPSHOTS, "VolumeSnapshot")
        )
        contents = self._context.informers.metadata_informer(
            Resource(objects.GROUP, "v1", CONTENTS, "VolumeSnapshotContent", namespaced=False)
        )
        for informer, queue in ((snapshots, self._snapshots.queue), (contents, self._contents.queue)):
            informer.add_handler(
                lambda obj, queue=queue: queue.add(key_of(obj)),  # type: ignore[misc]
                lambda _, obj, queue=queue: queue.add(key_of(obj)),  # type: ignore[misc]
            )
        async with asyncio.TaskGroup() as group:
            group.create_task(self._snapshots.run(snapshots))
            group.create_task(self._contents.run(contents))

    # -- VolumeSnapshots

    async def sync_snapshot(self, key: Key) -> float | None:
        """Bring a snapshot to its content, or with a deleted one its content to its end."""
        try:
            snapshot = await objects.get(self._client, SNAPSHOTS, key.name, key.namespace)
        except errors.NotFound:
            return None
        source = snapshot["spec"]["source"]
        try:
            if name := source.get("volumeSnapshotContentName"):
                content = await self._named_content(snapshot, name)
            else:
                content = await self._own_content(snapshot)
        except Refused as error:
            if not snapshot["metadata"].get("deletionTimestamp"):
                await self._fail(snapshot, str(error))
                return NOT_READY
            content = None
        if snapshot["metadata"].get("deletionTimestamp"):
            return await self._delete_snapshot(snapshot, content)
        if content is None:
            return None
        await self._keep(SNAPSHOTS, snapshot, BOUND, AS_SOURCE)
        await self._report(snapshot, content)
        return None

    async def _named_content(self, snapshot: Json, name: str) -> Json | None:
        """The content that a snapshot names, if it names the snapshot; None if it is another driver's."""
        try:
            content = await objects.get(self._client, CONTENTS, name)
        except errors.NotFound:
            raise Refused(f"VolumeSnapshotContent {name} is missing") from None
        spec, metadata = content["spec"], snapshot["metadata"]
        if spec["driver"] != self._context.name:
            return None
        reference = spec["volumeSnapshotRef"]
        if (reference.get("namespace"), reference.get("name")) != (metadata["namespace"], metadata["name"]):
            raise Refused(f"VolumeSnapshotContent {name} is bound to another VolumeSnapshot")
        if reference.get("uid") not in (None, "", metadata["uid"]):
            raise Refused(f"VolumeSnapshotContent {name} is bound to an earlier VolumeSnapshot of this name")
        if not reference.get("uid") and not metadata.get("deletionTimestamp"):
            change = {"spec": {"volumeSnapshotRef": {"uid": metadata["uid"]}}}
            content = await objects.patch(self._client, CONTENTS, name, change)
        return content

    async def _own_content(self, snapshot: Json) -> Json | None:
        """The content of a snapshot of a claim, made if it is not there; None if it is another driver's matter."""
        name = f"snapcontent-{snapshot['metadata']['uid']}"
        try:
            content = await objects.get(self._client, CONTENTS, name)
            return content if content["spec"]["driver"] == self._context.name else None
        except errors.NotFound:
            if snapshot["metadata"].get("deletionTimestamp"):
                return None
        volume = await self._volume(snapshot)
        csi = volume.spec.csi if volume.spec else None
        found = await self._class(snapshot, (csi.driver if csi else None) or "")
        if found is None or (self._ours is not None and not self._ours(volume)):
            return None
        if csi is None or csi.driver != found["driver"]:
            raise Refused(
                f"VolumeSnapshotClass {found['metadata']['name']} is of driver {found['driver']}, the volume "
                f"{volume.metadata.name if volume.metadata else ''} is of {csi.driver if csi else 'no CSI driver'}"
            )
        await self._keep(SNAPSHOTS, snapshot, AS_SOURCE)
        return await self._make_content(snapshot, found, volume, csi.volume_handle or "", name)

    async def _make_content(
        self, snapshot: Json, found: Json, volume: PersistentVolume, handle: str, name: str
    ) -> Json:
        metadata = snapshot["metadata"]
        secret = self._secret_of(found.get("parameters") or {}, snapshot, name)
        annotations = {f"{DELETION_SECRET}{part}": value for part, value in secret.items()}
        content = {
            "apiVersion": f"{objects.GROUP}/v1",
            "kind": "VolumeSnapshotContent",
            "metadata": {
                "name": name,
                "finalizers": [CONTENT_BOUND],
                "annotations": annotations,
                **({"labels": {objects.MANAGED_BY: self._context.node}} if self._context.node else {}),
            },
            "spec": {
                "deletionPolicy": found["deletionPolicy"],
                "driver": self._context.name,
                "source": {"volumeHandle": handle},
                "sourceVolumeMode": (volume.spec.volume_mode if volume.spec else None) or "Filesystem",
                "volumeSnapshotClassName": found["metadata"]["name"],
                "volumeSnapshotRef": {
                    "apiVersion": f"{objects.GROUP}/v1",
                    "kind": "VolumeSnapshot",
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                },
            },
        }
        message = f"Waiting for a snapshot {metadata['namespace']}/{metadata['name']} to be created by the CSI driver."
        self._event(snapshot, NORMAL, "CreatingSnapshot", message)
        return await objects.create(self._client, CONTENTS, content)

    async def _volume(self, snapshot: Json) -> PersistentVolume:
        namespace, name = snapshot["metadata"]["namespace"], snapshot["spec"]["source"]["persistentVolumeClaimName"]
        try:
            claim = await self._client.get(PersistentVolumeClaim, name, namespace)
        except errors.NotFound:
            raise Refused(f"snapshot source: PersistentVolumeClaim {namespace}/{name} not found") from None
        if claim.status is None or claim.status.phase != "Bound" or claim.spec is None:
            raise Refused(f"snapshot source: PersistentVolumeClaim {namespace}/{name} is not bound")
        return await self._client.get(PersistentVolume, claim.spec.volume_name or "")

    async def _class(self, snapshot: Json, driver: str) -> Json | None:
        """The class of a snapshot, if it is this driver's; without a name the default class of the volume's driver."""
        name = snapshot["spec"].get("volumeSnapshotClassName")
        if name:
            try:
                found = await objects.get(self._client, CLASSES, name)
            except errors.NotFound:
                if driver != self._context.name:
                    return None
                raise Refused(f"VolumeSnapshotClass {name} not found") from None
            return found if self._context.name in (found["driver"], driver) else None
        if driver != self._context.name:
            return None
        listed = await self._client.call("GET", objects.path(CLASSES))
        defaults = [
            each
            for each in listed["items"]
            if each["driver"] == driver and (each["metadata"].get("annotations") or {}).get(DEFAULT) == "true"
        ]
        if len(defaults) != 1:
            raise Refused(f"{len(defaults)} default VolumeSnapshotClasses for driver {driver}: name one")
        change = {"spec": {"volumeSnapshotClassName": defaults[0]["metadata"]["name"]}}
        metadata = snapshot["metadata"]
        await objects.patch(self._client, SNAPSHOTS, metadata["name"], change, metadata["namespace"])
        found_default: Json = defaults[0]
        return found_default

    async def _report(self, snapshot: Json, content: Json) -> None:
        """Give the snapshot what its content knows."""
        status = content.get("status") or {}
        made: Json = {"boundVolumeSnapshotContentName": content["metadata"]["name"]}
        made["readyToUse"] = bool(status.get("readyToUse"))
        if created := status.get("creationTime"):
            made["creationTime"] = rfc3339(created / 1e9)
        if (size := status.get("restoreSize")) is not None:
            made["restoreSize"] = amount(size)
        made["error"] = status.get("error")
        old = snapshot.get("status") or {}
        if any(old.get(key) != value for key, value in made.items()):
            metadata = snapshot["metadata"]
            await objects.patch(
                self._client, SNAPSHOTS, metadata["name"], {"status": made}, metadata["namespace"], "status"
            )
            if made["readyToUse"] and not old.get("readyToUse"):
                message = f"Snapshot {metadata['namespace']}/{metadata['name']} is ready to use."
                self._event(snapshot, NORMAL, "SnapshotReady", message)

    async def _delete_snapshot(self, snapshot: Json, content: Json | None) -> float | None:
        if content is None and await self._has_content(snapshot):
            return None  # another driver's: who has put the finalizers on takes them off
        if content is not None and content["spec"]["deletionPolicy"] == "Delete":
            if not content["metadata"].get("deletionTimestamp"):
                await objects.delete(self._client, CONTENTS, content["metadata"]["name"])
            try:
                await objects.get(self._client, CONTENTS, content["metadata"]["name"])
                return NOT_READY / 4
            except errors.NotFound:
                pass
        elif content is not None:
            await self._let_go(CONTENTS, content, CONTENT_BOUND)
        await self._let_go(SNAPSHOTS, snapshot, BOUND, AS_SOURCE)
        return None

    async def _has_content(self, snapshot: Json) -> bool:
        bound = (snapshot.get("status") or {}).get("boundVolumeSnapshotContentName")
        try:
            name = bound or f"snapcontent-{snapshot['metadata']['uid']}"
            await objects.get(self._client, CONTENTS, name)
        except errors.NotFound:
            return False
        return True

    async def _fail(self, snapshot: Json, problem: str) -> None:
        metadata = snapshot["metadata"]
        if ((snapshot.get("status") or {}).get("error") or {}).get("message") == problem:
            return
        error = {"message": problem, "time": rfc3339(self._context.clock.now())}
        change = {"status": {"error": error, "readyToUse": False}}
        await objects.patch(self._client, SNAPSHOTS, metadata["name"], change, metadata["namespace"], "status")
        self._event(snapshot, WARNING, "SnapshotContentCreationFailed", problem)

    # -- VolumeSnapshotContents

    async def sync_content(self, key: Key) -> float | None:
        """Have the driver make, look at or delete the snapshot of a content."""
        try:
            content = await objects.get(self._client, CONTENTS, key.name)
        except errors.NotFound:
            return None
        if content["spec"]["driver"] != self._context.name or not await self._is_here(content):
            return None
        if content["metadata"].get("deletionTimestamp"):
            return await self._delete_content(content)
        status = content.get("status") or {}
        again = None
        if not status.get("readyToUse"):
            again = await self._make(content)
        reference = content["spec"]["volumeSnapshotRef"]
        self._snapshots.queue.add(Key(reference.get("namespace") or "", reference.get("name") or ""))
        return again

    async def _is_here(self, content: Json) -> bool:
        """Whether a content is this process's: with several on nodes, the one that has the volume or the snapshot."""
        if self._ours is None:
            return True
        handle = content["spec"]["source"].get("volumeHandle")
        if handle:
            listed = await self._context.driver.call("ListVolumes")
            return any(each.volume.volume_id == handle for each in listed.entries)
        wanted = content["spec"]["source"].get("snapshotHandle")
        found = await self._context.driver.call("ListSnapshots", snapshot_id=wanted)
        return bool(found.entries)

    async def _make(self, content: Json) -> float | None:
        spec, name = content["spec"], content["metadata"]["name"]
        try:
            if handle := spec["source"].get("snapshotHandle"):
                listed = await self._context.driver.call("ListSnapshots", snapshot_id=handle)
                if not listed.entries:
                    raise CSIError("NotFound", f"the driver has no snapshot {handle}")
                snapshot = listed.entries[0].snapshot
            else:
                await self._keep(CONTENTS, content, CONTENT_BOUND)
                parameters, secrets = await self._parameters(content)
                response = await self._context.driver.call(
                    "CreateSnapshot",
                    within=CREATE_SECONDS,
                    source_volume_id=spec["source"]["volumeHandle"],
                    name=f"snapshot-{spec['volumeSnapshotRef'].get('uid') or name}",
                    secrets=secrets,
                    parameters=parameters,
                )
                snapshot = response.snapshot
        except (CSIError, errors.NotFound, ValueError) as error:
            problem = f"Failed to create snapshot content: {error}"
            known = ((content.get("status") or {}).get("error") or {}).get("message")
            if known == problem:  # to write it once more would wake us at once
                raise
            status = {"error": {"message": problem, "time": rfc3339(self._context.clock.now())}, "readyToUse": False}
            await objects.patch(self._client, CONTENTS, name, {"status": status}, "", "status")
            raise
        created = snapshot.creation_time
        status = {
            "snapshotHandle": snapshot.snapshot_id,
            "creationTime": created.seconds * 1_000_000_000 + created.nanos,
            "restoreSize": snapshot.size_bytes,
            "readyToUse": snapshot.ready_to_use,
            "error": None,
        }
        await objects.patch(self._client, CONTENTS, name, {"status": status}, "", "status")
        return None if snapshot.ready_to_use else NOT_READY

    async def _parameters(self, content: Json) -> tuple[dict[str, str], dict[str, str] | None]:
        name = content["spec"].get("volumeSnapshotClassName")
        found = await objects.get(self._client, CLASSES, name) if name else {}
        parameters = {
            key: value for key, value in (found.get("parameters") or {}).items() if not key.startswith(PREFIX)
        }
        return parameters, await self._secrets(content)

    async def _secrets(self, content: Json) -> dict[str, str] | None:
        annotations = content["metadata"].get("annotations") or {}
        name, namespace = (annotations.get(f"{DELETION_SECRET}{part}") for part in ("name", "namespace"))
        if not name:
            return None
        return await self._context.secret(SecretReference(name=name, namespace=namespace))

    async def _delete_content(self, content: Json) -> float | None:
        if CONTENT_BOUND not in (content["metadata"].get("finalizers") or []):
            return None
        reference = content["spec"]["volumeSnapshotRef"]
        try:
            snapshot = await objects.get(self._client, SNAPSHOTS, reference["name"], reference["namespace"])
            bound = snapshot["metadata"]["uid"] == reference.get("uid")
            if bound and not snapshot["metadata"].get("deletionTimestamp"):
                return NOT_READY  # it is in use
        except errors.NotFound:
            pass
        if content["spec"]["deletionPolicy"] == "Delete":
            handle = (content.get("status") or {}).get("snapshotHandle") or content["spec"]["source"].get(
                "snapshotHandle"
            )
            if handle:
                secrets = await self._secrets(content)
                await self._context.driver.call("DeleteSnapshot", snapshot_id=handle, secrets=secrets)
        await self._let_go(CONTENTS, content, CONTENT_BOUND)
        self._snapshots.queue.add(Key(reference.get("namespace") or "", reference.get("name") or ""))
        return None

    # -- both

    def _secret_of(self, parameters: dict[str, str], snapshot: Json, content: str) -> dict[str, str]:
        """The Secret that a class names, by `name` and `namespace`, with its references filled in."""
        found = {
            part: parameters[f"{SECRET}{part}"] for part in ("name", "namespace") if f"{SECRET}{part}" in parameters
        }
        if len(found) == 1:
            raise Refused(f"VolumeSnapshotClass parameters: {SECRET}name and {SECRET}namespace must both be set")
        metadata = snapshot["metadata"]
        values = {
            "${volumesnapshotcontent.name}": content,
            "${volumesnapshot.namespace}": metadata["namespace"],
            "${volumesnapshot.name}": metadata["name"],
        }
        for part, value in found.items():
            for key, text in values.items():
                value = value.replace(key, text)
            found[part] = value
        return found

    async def _keep(self, plural: str, obj: Json, *finalizers: str) -> None:
        """Put finalizers on an object."""
        present = obj["metadata"].get("finalizers") or []
        missing = [each for each in finalizers if each not in present]
        if missing:
            await self._set_finalizers(plural, obj, [*present, *missing])

    async def _let_go(self, plural: str, obj: Json, *finalizers: str) -> None:
        """Take finalizers off an object."""
        present = obj["metadata"].get("finalizers") or []
        left = [each for each in present if each not in finalizers]
        if len(left) != len(present):
            await self._set_finalizers(plural, obj, left)

    async def _set_finalizers(self, plural: str, obj: Json, finalizers: list[str]) -> None:
        metadata = obj["metadata"]
        change = {"metadata": {"finalizers": finalizers or None, "resourceVersion": metadata["resourceVersion"]}}
        changed = await objects.patch(self._client, plural, metadata["name"], change, metadata.get("namespace") or "")
        metadata.update(changed["metadata"])

    def _event(self, snapshot: Json, type: str, reason: str, message: str) -> None:
        metadata = snapshot["metadata"]
        reference = ObjectReference(
            api_version=f"{objects.GROUP}/v1",
            kind="VolumeSnapshot",
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
        )
        self._recorder.event(reference, type, reason, message)
