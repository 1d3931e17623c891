"""Finds the data source of a new volume: the snapshot or the claim that its claim names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.core.volumebinding import claim_class
from pybernetes.csi import v1

from . import snapshot_objects
from .loop import Context

RETRY: Final = 2.0
"""Seconds until a source that is not ready yet is looked at again."""


class SourceError(Exception):
    """The data source of a claim cannot be used, or not yet."""

    def __init__(self, message: str, retry_after: float | None = RETRY) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Content:
    """The data source of a volume, and its place: behind a volume, or on a node that a snapshot names."""

    source: Any
    """A VolumeContentSource."""
    volume: PersistentVolume | None = None
    node: str = ""


class ForPopulator(Exception):
    """The data source is neither a snapshot nor a claim: a populator of its kind makes the volume."""


class ContentSources:
    """Looks up data sources."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def of(self, claim: PersistentVolumeClaim, capabilities: set[int]) -> Content | None:
        """The content for a claim; None if it has none. Raises `SourceError`, `ForPopulator`."""
        spec = claim.spec
        source = spec.data_source_ref or spec.data_source if spec else None
        if source is None:
            return None
        group, kind, name = source.api_group or "", source.kind or "", source.name or ""
        namespace = (claim.metadata.namespace if claim.metadata else None) or ""
        other = getattr(source, "namespace", None) or namespace
        if other != namespace:
            raise SourceError(f"dataSourceRef.namespace {other}: sources of other namespaces are not supported", None)
        if (group, kind) == (snapshot_objects.GROUP, "VolumeSnapshot"):
            return await self._snapshot(namespace, name, capabilities)
        if (group, kind) == ("", "PersistentVolumeClaim"):
            return await self._claim(claim, namespace, name, capabilities)
        raise ForPopulator(f"data source {kind}.{group} {name}")

    async def _snapshot(self, namespace: str, name: str, capabilities: set[int]) -> Content:
        driver = self._context.name
        if v1.ControllerRPC.CREATE_DELETE_SNAPSHOT not in capabilities:
            raise SourceError(f"driver {driver} does not support snapshots", None)
        try:
            snapshot = await snapshot_objects.get(self._context.client, "volumesnapshots", name, namespace)
            status = snapshot.get("status") or {}
            content_name = status.get("boundVolumeSnapshotContentName")
            if not content_name or not status.get("readyToUse"):
                raise SourceError(f"snapshot {namespace}/{name} is not Ready")
            content = await snapshot_objects.get(self._context.client, "volumesnapshotcontents", content_name)
        except errors.NotFound as error:
            raise SourceError(f"error getting snapshot {namespace}/{name}: {error}") from None
        if content["spec"].get("driver") != driver:
            raise SourceError(
                f"snapshot {namespace}/{name} is of driver {content['spec'].get('driver')}, not {driver}", None
            )
        if snapshot["metadata"].get("deletionTimestamp"):
            raise SourceError(f"snapshot {namespace}/{name} is being deleted", None)
        handle = (content.get("status") or {}).get("snapshotHandle")
        if not handle:
            raise SourceError(f"snapshot content {content_name} has no snapshotHandle yet")
        node = (content["metadata"].get("labels") or {}).get(snapshot_objects.MANAGED_BY, "")
        return Content(v1.VolumeContentSource(snapshot={"snapshot_id": handle}), node=node)

    async def _claim(self, claim: PersistentVolumeClaim, namespace: str, name: str, capabilities: set[int]) -> Content:
        driver = self._context.name
        if v1.ControllerRPC.CLONE_VOLUME not in capabilities:
            raise SourceError(f"driver {driver} does not support cloning", None)
        try:
            source = await self._context.client.get(PersistentVolumeClaim, name, namespace)
            if source.status is None or source.status.phase != "Bound" or not source.spec:
                raise SourceError(f"the PVC source {namespace}/{name} is not bound")
            volume = await self._context.client.get(PersistentVolume, source.spec.volume_name or "")
        except errors.NotFound as error:
            raise SourceError(f"error getting PVC {namespace}/{name} from api server: {error}") from None
        csi = volume.spec.csi if volume.spec else None
        if csi is None or csi.driver != driver:
            raise SourceError(f"the PVC source {namespace}/{name} is not of driver {driver}", None)
        if (source.spec.volume_mode or "Filesystem") != (
            (claim.spec.volume_mode if claim.spec else None) or "Filesystem"
        ):
            raise SourceError(f"the PVC source {namespace}/{name} has another volumeMode ({claim_class(claim)})", None)
        return Content(v1.VolumeContentSource(volume={"volume_id": csi.volume_handle or ""}), volume)
