"""core/v1: persistentvolume.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ...base import Kind, Struct
from ...types import Always, Default, Enum, Int32, ListType, MapType, Pointer, Quantity, Required, Time
from .affinity import NodeSelector
from .reference import ObjectReference, SecretReference
from .volumesource import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    NFSVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    VsphereVirtualDiskVolumeSource,
)


class PersistentVolume(Kind):
    """A piece of storage that outlives pods."""

    spec: Annotated[PersistentVolumeSpec | None, Always({})] = None
    status: Annotated[PersistentVolumeStatus | None, Always({})] = None


class PersistentVolumeSpec(Struct):
    capacity: dict[str, Quantity] | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    cephfs: CephFSPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = field(default=None, name="scaleIO")
    local: LocalVolumeSource | None = None
    storageos: StorageOSPersistentVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None
    access_modes: Annotated[
        list[str] | None, Enum("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"), ListType("atomic")
    ] = None
    claim_ref: Annotated[ObjectReference | None, MapType("granular")] = None
    persistent_volume_reclaim_policy: Annotated[str | None, Enum("Delete", "Recycle", "Retain")] = None
    storage_class_name: str | None = None
    mount_options: Annotated[list[str] | None, ListType("atomic")] = None
    volume_mode: Annotated[str | None, Pointer, Enum("Block", "Filesystem")] = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: Annotated[str | None, Pointer] = None


class PersistentVolumeStatus(Struct):
    phase: Annotated[str | None, Enum("Available", "Bound", "Failed", "Pending", "Released")] = None
    message: str | None = None
    reason: str | None = None
    last_phase_transition_time: Time | None = None


class VolumeNodeAffinity(Struct):
    required: NodeSelector | None = None


class LocalVolumeSource(Struct):
    path: Annotated[str | None, Required, Always("")] = None
    fs_type: Annotated[str | None, Pointer] = None


class AzureFilePersistentVolumeSource(Struct):
    secret_name: Annotated[str | None, Required, Always("")] = None
    share_name: Annotated[str | None, Required, Always("")] = None
    read_only: bool | None = None
    secret_namespace: Annotated[str | None, Always(None)] = None


class CSIPersistentVolumeSource(Struct):
    driver: Annotated[str | None, Required, Always("")] = None
    volume_handle: Annotated[str | None, Required, Always("")] = None
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] | None = None
    controller_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    controller_expand_secret_ref: SecretReference | None = None
    node_expand_secret_ref: SecretReference | None = None


class CephFSPersistentVolumeSource(Struct):
    monitors: Annotated[list[str] | None, Required, Always(None), ListType("atomic")] = None
    path: str | None = None
    user: str | None = None
    secret_file: str | None = None
    secret_ref: SecretReference | None = None
    read_only: bool | None = None


class CinderPersistentVolumeSource(Struct):
    volume_id: Annotated[str | None, Required, Always("")] = field(default=None, name="volumeID")
    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: SecretReference | None = None


class FlexPersistentVolumeSource(Struct):
    driver: Annotated[str | None, Required, Always("")] = None
    fs_type: str | None = None
    secret_ref: SecretReference | None = None
    read_only: bool | None = None
    options: dict[str, str] | None = None


class GlusterfsPersistentVolumeSource(Struct):
    endpoints: Annotated[str | None, Required, Always("")] = None
    path: Annotated[str | None, Required, Always("")] = None
    read_only: bool | None = None
    endpoints_namespace: Annotated[str | None, Pointer] = None


class ISCSIPersistentVolumeSource(Struct):
    target_portal: Annotated[str | None, Required, Always("")] = None
    iqn: Annotated[str | None, Required, Always("")] = None
    lun: Annotated[Int32 | None, Required, Always(0)] = None
    iscsi_interface: Annotated[str | None, Default("default")] = None
    fs_type: str | None = None
    read_only: bool | None = None
    portals: Annotated[list[str] | None, ListType("atomic")] = None
    chap_auth_discovery: bool | None = None
    chap_auth_session: bool | None = None
    secret_ref: SecretReference | None = None
    initiator_name: Annotated[str | None, Pointer] = None


class RBDPersistentVolumeSource(Struct):
    monitors: Annotated[list[str] | None, Required, Always(None), ListType("atomic")] = None
    image: Annotated[str | None, Required, Always("")] = None
    fs_type: str | None = None
    pool: Annotated[str | None, Default("rbd")] = None
    user: Annotated[str | None, Default("admin")] = None
    keyring: Annotated[str | None, Default("/etc/ceph/keyring")] = None
    secret_ref: SecretReference | None = None
    read_only: bool | None = None


class ScaleIOPersistentVolumeSource(Struct):
    gateway: Annotated[str | None, Required, Always("")] = None
    system: Annotated[str | None, Required, Always("")] = None
    secret_ref: Annotated[SecretReference | None, Required, Always(None)] = None
    ssl_enabled: bool | None = None
    protection_domain: str | None = None
    storage_pool: str | None = None
    storage_mode: Annotated[str | None, Default("ThinProvisioned")] = None
    volume_name: str | None = None
    fs_type: Annotated[str | None, Default("xfs")] = None
    read_only: bool | None = None


class StorageOSPersistentVolumeSource(Struct):
    volume_name: str | None = None
    volume_namespace: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: ObjectReference | None = None
