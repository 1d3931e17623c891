"""core/v1: volumesource.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ...base import Struct
from ...types import Always, Default, Enum, Int32, ListType, Pointer, Quantity, Required
from .reference import LocalObjectReference


class EmptyDirVolumeSource(Struct):
    medium: str | None = None
    size_limit: Quantity | None = None


class HostPathVolumeSource(Struct):
    path: Annotated[str | None, Required, Always("")] = None
    type: Annotated[
        str | None,
        Pointer,
        Enum("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
    ] = None


class PersistentVolumeClaimVolumeSource(Struct):
    claim_name: Annotated[str | None, Required, Always("")] = None
    read_only: bool | None = None


class ImageVolumeSource(Struct):
    reference: str | None = None
    pull_policy: Annotated[str | None, Enum("Always", "IfNotPresent", "Never")] = None


class CSIVolumeSource(Struct):
    driver: Annotated[str | None, Required, Always("")] = None
    read_only: Annotated[bool | None, Pointer] = None
    fs_type: Annotated[str | None, Pointer] = None
    volume_attributes: dict[str, str] | None = None
    node_publish_secret_ref: LocalObjectReference | None = None


class FCVolumeSource(Struct):
    target_wwns: Annotated[list[str] | None, ListType("atomic")] = field(default=None, name="targetWWNs")
    lun: Annotated[Int32 | None, Pointer] = None
    fs_type: str | None = None
    read_only: bool | None = None
    wwids: Annotated[list[str] | None, ListType("atomic")] = None


class FlexVolumeSource(Struct):
    driver: Annotated[str | None, Required, Always("")] = None
    fs_type: str | None = None
    secret_ref: LocalObjectReference | None = None
    read_only: bool | None = None
    options: dict[str, str] | None = None


class FlockerVolumeSource(Struct):
    dataset_name: str | None = None
    dataset_uuid: str | None = field(default=None, name="datasetUUID")


class GitRepoVolumeSource(Struct):
    repository: Annotated[str | None, Required, Always("")] = None
    revision: str | None = None
    directory: str | None = None


class GlusterfsVolumeSource(Struct):
    endpoints: Annotated[str | None, Required, Always("")] = None
    path: Annotated[str | None, Required, Always("")] = None
    read_only: bool | None = None


class ISCSIVolumeSource(Struct):
    target_portal: Annotated[str | None, Required, Always("")] = None
    iqn: Annotated[str | None, Required, Always("")] = None
    lun: Annotated[Int32 | None, Required, Always(0)] = None
    iscsi_interface: Annotated[str | None, Default("default")] = None
    fs_type: str | None = None
    read_only: bool | None = None
    portals: Annotated[list[str] | None, ListType("atomic")] = None
    chap_auth_discovery: bool | None = None
    chap_auth_session: bool | None = None
    secret_ref: LocalObjectReference | None = None
    initiator_name: Annotated[str | None, Pointer] = None


class NFSVolumeSource(Struct):
    server: Annotated[str | None, Required, Always("")] = None
    path: Annotated[str | None, Required, Always("")] = None
    read_only: bool | None = None


class PortworxVolumeSource(Struct):
    volume_id: Annotated[str | None, Required, Always("")] = field(default=None, name="volumeID")
    fs_type: str | None = None
    read_only: bool | None = None


class QuobyteVolumeSource(Struct):
    registry: Annotated[str | None, Required, Always("")] = None
    volume: Annotated[str | None, Required, Always("")] = None
    read_only: bool | None = None
    user: str | None = None
    group: str | None = None
    tenant: str | None = None


class RBDVolumeSource(Struct):
    monitors: Annotated[list[str] | None, Required, Always(None), ListType("atomic")] = None
    image: Annotated[str | None, Required, Always("")] = None
    fs_type: str | None = None
    pool: Annotated[str | None, Default("rbd")] = None
    user: Annotated[str | None, Default("admin")] = None
    keyring: Annotated[str | None, Default("/etc/ceph/keyring")] = None
    secret_ref: LocalObjectReference | None = None
    read_only: bool | None = None


class ScaleIOVolumeSource(Struct):
    gateway: Annotated[str | None, Required, Always("")] = None
    system: Annotated[str | None, Required, Always("")] = None
    secret_ref: Annotated[LocalObjectReference | None, Required, Always(None)] = None
    ssl_enabled: bool | None = None
    protection_domain: str | None = None
    storage_pool: str | None = None
    storage_mode: Annotated[str | None, Default("ThinProvisioned")] = None
    volume_name: str | None = None
    fs_type: Annotated[str | None, Default("xfs")] = None
    read_only: bool | None = None


class StorageOSVolumeSource(Struct):
    volume_name: str | None = None
    volume_namespace: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None


class AWSElasticBlockStoreVolumeSource(Struct):
    volume_id: Annotated[str | None, Required, Always("")] = field(default=None, name="volumeID")
    fs_type: str | None = None
    partition: Int32 | None = None
    read_only: bool | None = None


class AzureDiskVolumeSource(Struct):
    disk_name: Annotated[str | None, Required, Always("")] = None
    disk_uri: Annotated[str | None, Required, Always("")] = field(default=None, name="diskURI")
    caching_mode: Annotated[str | None, Pointer, Default("ReadWrite"), Enum("None", "ReadOnly", "ReadWrite")] = None
    fs_type: Annotated[str | None, Pointer, Default("ext4")] = None
    read_only: Annotated[bool | None, Pointer, Default(False)] = None
    kind: Annotated[str | None, Pointer, Default("Shared"), Enum("Dedicated", "Managed", "Shared")] = None


class AzureFileVolumeSource(Struct):
    secret_name: Annotated[str | None, Required, Always("")] = None
    share_name: Annotated[str | None, Required, Always("")] = None
    read_only: bool | None = None


class CephFSVolumeSource(Struct):
    monitors: Annotated[list[str] | None, Required, Always(None), ListType("atomic")] = None
    path: str | None = None
    user: str | None = None
    secret_file: str | None = None
    secret_ref: LocalObjectReference | None = None
    read_only: bool | None = None


class CinderVolumeSource(Struct):
    volume_id: Annotated[str | None, Required, Always("")] = field(default=None, name="volumeID")
    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None


class GCEPersistentDiskVolumeSource(Struct):
    pd_name: Annotated[str | None, Required, Always("")] = None
    fs_type: str | None = None
    partition: Int32 | None = None
    read_only: bool | None = None


class PhotonPersistentDiskVolumeSource(Struct):
    pd_id: Annotated[str | None, Required, Always("")] = field(default=None, name="pdID")
    fs_type: str | None = None


class VsphereVirtualDiskVolumeSource(Struct):
    volume_path: Annotated[str | None, Required, Always("")] = None
    fs_type: str | None = None
    storage_policy_name: str | None = None
    storage_policy_id: str | None = field(default=None, name="storagePolicyID")
