"""The kinds of storage/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ..base import Kind, Struct
from ..core.v1.affinity import TopologySelectorTerm
from ..core.v1.persistentvolume import PersistentVolumeSpec
from ..meta.v1.labelselector import LabelSelector
from ..types import Always, Enum, Int32, Int64, ListType, Patch, Pointer, Quantity, Required, Time


class CSIDriver(Kind):
    """What a storage driver can do."""

    spec: Annotated[CSIDriverSpec | None, Required, Always({})] = None


class CSIDriverSpec(Struct):
    attach_required: Annotated[bool | None, Pointer] = None
    pod_info_on_mount: Annotated[bool | None, Pointer] = None
    volume_lifecycle_modes: Annotated[list[str] | None, ListType("set")] = None
    storage_capacity: Annotated[bool | None, Pointer] = None
    fs_group_policy: Annotated[str | None, Pointer] = None
    token_requests: Annotated[list[TokenRequest] | None, ListType("atomic")] = None
    requires_republish: Annotated[bool | None, Pointer] = None
    se_linux_mount: Annotated[bool | None, Pointer] = None
    node_allocatable_update_period_seconds: Annotated[Int64 | None, Pointer] = None
    service_account_token_in_secrets: Annotated[bool | None, Pointer] = None
    prevent_pod_scheduling_if_missing: Annotated[bool | None, Pointer] = None


class TokenRequest(Struct):
    audience: Annotated[str | None, Required, Always("")] = None
    expiration_seconds: Annotated[Int64 | None, Pointer] = None


class CSINode(Kind):
    """Which storage drivers run on a node."""

    spec: Annotated[CSINodeSpec | None, Required, Always({})] = None


class CSINodeSpec(Struct):
    drivers: Annotated[
        list[CSINodeDriver] | None, Required, Always(None), ListType("map", keys=("name",)), Patch("merge", "name")
    ] = None


class CSINodeDriver(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    node_id: Annotated[str | None, Required, Always("")] = field(default=None, name="nodeID")
    topology_keys: Annotated[list[str] | None, Always(None), ListType("atomic")] = None
    allocatable: VolumeNodeResources | None = None


class VolumeNodeResources(Struct):
    count: Annotated[Int32 | None, Pointer] = None


class CSIStorageCapacity(Kind):
    """How much storage a driver has left, and where."""

    node_topology: LabelSelector | None = None
    storage_class_name: Annotated[str | None, Required, Always("")] = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class StorageClass(Kind):
    """How claims of this class get their volumes."""

    provisioner: Annotated[str | None, Required, Always("")] = None
    parameters: dict[str, str] | None = None
    reclaim_policy: Annotated[str | None, Pointer, Enum("Delete", "Recycle", "Retain")] = None
    mount_options: Annotated[list[str] | None, ListType("atomic")] = None
    allow_volume_expansion: Annotated[bool | None, Pointer] = None
    volume_binding_mode: Annotated[str | None, Pointer, Enum("Immediate", "WaitForFirstConsumer")] = None
    allowed_topologies: Annotated[list[TopologySelectorTerm] | None, ListType("atomic")] = None


class VolumeAttachment(Kind):
    """A volume that is, or shall be, attached to a node."""

    spec: Annotated[VolumeAttachmentSpec | None, Required, Always({})] = None
    status: Annotated[VolumeAttachmentStatus | None, Always({})] = None


class VolumeAttachmentSpec(Struct):
    attacher: Annotated[str | None, Required, Always("")] = None
    source: Annotated[VolumeAttachmentSource | None, Required, Always({})] = None
    node_name: Annotated[str | None, Required, Always("")] = None


class VolumeAttachmentSource(Struct):
    persistent_volume_name: Annotated[str | None, Pointer] = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentStatus(Struct):
    attached: Annotated[bool | None, Required, Always(False)] = None
    attachment_metadata: dict[str, str] | None = None
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeError(Struct):
    time: Annotated[Time | None, Always(None)] = None
    message: str | None = None
    error_code: Annotated[Int32 | None, Pointer] = None


class VolumeAttributesClass(Kind):
    """Attributes of a volume that can change while it is in use."""

    driver_name: Annotated[str | None, Required, Always("")] = None
    parameters: dict[str, str] | None = None
