"""Storage classes, CSI drivers and nodes, attachments. CSIStorageCapacities get the default table."""

from __future__ import annotations

from typing import Final

from pybernetes.api.storage.v1 import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentSpec,
    VolumeAttributesClass,
)

from .printer import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    Column,
    Printer,
    age,
    annotation,
    boolean,
    integer,
    name,
    text,
)

_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _storage_class(storage_class: StorageClass, now: float) -> Cells:
    default = any(annotation(storage_class, each) == "true" for each in _DEFAULT_CLASS)
    return [
        f"{name(storage_class)} (default)" if default else name(storage_class),
        storage_class.provisioner or "",
        storage_class.reclaim_policy or "Delete",
        storage_class.volume_binding_mode or "Immediate",
        bool(storage_class.allow_volume_expansion),
        age(storage_class, now),
    ]


def _driver(driver: CSIDriver, now: float) -> Cells:
    spec = driver.spec or CSIDriverSpec()
    tokens = spec.token_requests
    return [
        name(driver),
        spec.attach_required is not False,
        bool(spec.pod_info_on_mount),
        bool(spec.storage_capacity),
        UNSET if tokens is None else ",".join([each.audience or "" for each in tokens]),
        bool(spec.requires_republish),
        ",".join(spec.volume_lifecycle_modes or ()) or NONE,
        age(driver, now),
    ]


def _node(node: CSINode, now: float) -> Cells:
    return [name(node), len((node.spec.drivers if node.spec else None) or ()), age(node, now)]


def _attachment(attachment: VolumeAttachment, now: float) -> Cells:
    spec = attachment.spec or VolumeAttachmentSpec()
    return [
        name(attachment),
        spec.attacher or "",
        (spec.source.persistent_volume_name if spec.source else None) or "",
        spec.node_name or "",
        bool(attachment.status and attachment.status.attached),
        age(attachment, now),
    ]


def _attributes_class(attributes: VolumeAttributesClass, now: float) -> Cells:
    return [name(attributes), attributes.driver_name or "", age(attributes, now)]


PRINTERS: Final[dict[str, Printer]] = {
    "CSIDriver": Printer(
        (
            NAME,
            boolean("AttachRequired", "Whether volumes must be attached to a node first"),
            boolean("PodInfoOnMount", "Whether the driver gets the pod's data"),
            boolean("StorageCapacity", "Whether the driver says how much room is left"),
            text("TokenRequests", "Audiences of the tokens the driver gets"),
            boolean("RequiresRepublish", "Whether volumes are published again and again"),
            text("Modes", "How long volumes can live"),
            AGE,
        ),
        _driver,
    ),
    "CSINode": Printer((NAME, integer("Drivers", "Drivers on the node"), AGE), _node),
    "StorageClass": Printer(
        (
            NAME,
            text("Provisioner", "Who makes the volumes"),
            text("ReclaimPolicy", "What becomes of released volumes"),
            text("VolumeBindingMode", "When claims get their volumes"),
            text("AllowVolumeExpansion", "Whether volumes can grow"),
            AGE,
        ),
        _storage_class,
    ),
    "VolumeAttachment": Printer(
        (
            NAME,
            Column("Attacher", format="name", description="Who attaches"),
            text("PV", "The volume"),
            text("Node", "The node"),
            boolean("Attached", "Whether it is done"),
            AGE,
        ),
        _attachment,
    ),
    "VolumeAttributesClass": Printer(
        (NAME, text("DriverName", "Driver that knows the attributes"), AGE), _attributes_class
    ),
}
