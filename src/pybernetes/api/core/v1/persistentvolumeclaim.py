"""core/v1: persistentvolumeclaim.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from ...base import Kind, Struct
from ...meta.v1.labelselector import LabelSelector
from ...meta.v1.objectmeta import ObjectMeta
from ...types import Always, Enum, ListType, MapType, Patch, Pointer, Quantity, Required, Time
from .reference import TypedLocalObjectReference, TypedObjectReference


class PersistentVolumeClaim(Kind):
    """A request for storage, bound to a PersistentVolume."""

    spec: Annotated[PersistentVolumeClaimSpec | None, Always({})] = None
    status: Annotated[PersistentVolumeClaimStatus | None, Always({})] = None


class PersistentVolumeClaimSpec(Struct):
    access_modes: Annotated[
        list[str] | None, Enum("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"), ListType("atomic")
    ] = None
    selector: LabelSelector | None = None
    resources: Annotated[VolumeResourceRequirements | None, Always({})] = None
    volume_name: str | None = None
    storage_class_name: Annotated[str | None, Pointer] = None
    volume_mode: Annotated[str | None, Pointer, Enum("Block", "Filesystem")] = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: Annotated[str | None, Pointer] = None


class PersistentVolumeClaimStatus(Struct):
    phase: Annotated[str | None, Enum("Bound", "Lost", "Pending")] = None
    access_modes: Annotated[
        list[str] | None, Enum("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"), ListType("atomic")
    ] = None
    capacity: dict[str, Quantity] | None = None
    conditions: Annotated[
        list[PersistentVolumeClaimCondition] | None, ListType("map", keys=("type",)), Patch("merge", "type")
    ] = None
    allocated_resources: dict[str, Quantity] | None = None
    allocated_resource_statuses: Annotated[
        dict[str, str] | None,
        Enum(
            "ControllerResizeInProgress",
            "ControllerResizeInfeasible",
            "NodeResizeInProgress",
            "NodeResizeInfeasible",
            "NodeResizePending",
        ),
        MapType("granular"),
    ] = None
    current_volume_attributes_class_name: Annotated[str | None, Pointer] = None
    modify_volume_status: ModifyVolumeStatus | None = None


class PersistentVolumeClaimCondition(Struct):
    type: Annotated[str | None, Required, Always("")] = None
    status: Annotated[str | None, Required, Always("")] = None
    last_probe_time: Annotated[Time | None, Always(None)] = None
    last_transition_time: Annotated[Time | None, Always(None)] = None
    reason: str | None = None
    message: str | None = None


class PersistentVolumeClaimTemplate(Struct):
    metadata: Annotated[ObjectMeta | None, Always({})] = None
    spec: Annotated[PersistentVolumeClaimSpec | None, Required, Always({})] = None


class ModifyVolumeStatus(Struct):
    target_volume_attributes_class_name: str | None = None
    status: Annotated[str | None, Required, Always(""), Enum("InProgress", "Infeasible", "Pending")] = None


class VolumeResourceRequirements(Struct):
    limits: dict[str, Quantity] | None = None
    requests: dict[str, Quantity] | None = None
