"""Validation of the kinds of storage/v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError
from .classes import (
    validate_storage_class,
    validate_storage_class_update,
    validate_volume_attributes_class,
    validate_volume_attributes_class_update,
)
from .csi import (
    validate_csi_driver,
    validate_csi_driver_update,
    validate_csi_node,
    validate_csi_node_update,
    validate_csi_storage_capacity,
    validate_csi_storage_capacity_update,
)
from .volumeattachment import validate_volume_attachment, validate_volume_attachment_update

CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "CSIDriver": validate_csi_driver,
    "CSINode": validate_csi_node,
    "CSIStorageCapacity": validate_csi_storage_capacity,
    "StorageClass": validate_storage_class,
    "VolumeAttachment": validate_volume_attachment,
    "VolumeAttributesClass": validate_volume_attributes_class,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "CSIDriver": validate_csi_driver_update,
    "CSINode": validate_csi_node_update,
    "CSIStorageCapacity": validate_csi_storage_capacity_update,
    "StorageClass": validate_storage_class_update,
    "VolumeAttachment": validate_volume_attachment_update,
    "VolumeAttributesClass": validate_volume_attributes_class_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "VolumeAttachment": validate_volume_attachment_update,
}
