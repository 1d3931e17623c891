"""core/v1: volume.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ...base import Struct
from ...meta.v1.labelselector import LabelSelector
from ...types import Always, Default, Enum, Int32, Int64, ListType, Pointer, Required
from .env import ObjectFieldSelector, ResourceFieldSelector
from .persistentvolumeclaim import PersistentVolumeClaimTemplate
from .volumesource import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CephFSVolumeSource,
    CinderVolumeSource,
    CSIVolumeSource,
    EmptyDirVolumeSource,
    FCVolumeSource,
    FlexVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    GitRepoVolumeSource,
    GlusterfsVolumeSource,
    HostPathVolumeSource,
    ImageVolumeSource,
    ISCSIVolumeSource,
    NFSVolumeSource,
    PersistentVolumeClaimVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    RBDVolumeSource,
    ScaleIOVolumeSource,
    StorageOSVolumeSource,
    VsphereVirtualDiskVolumeSource,
)


class Volume(Struct):
    """A folder for the containers of a pod, filled from one of many sources."""

    name: Annotated[str | None, Required, Always("")] = None
    host_path: HostPathVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = field(default=None, name="downwardAPI")
    fc: FCVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = field(default=None, name="scaleIO")
    storageos: StorageOSVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None


class ConfigMapVolumeSource(Struct):
    name: Annotated[str | None, Default("")] = None
    items: Annotated[list[KeyToPath] | None, ListType("atomic")] = None
    default_mode: Annotated[Int32 | None, Pointer] = None
    optional: Annotated[bool | None, Pointer] = None


class SecretVolumeSource(Struct):
    secret_name: str | None = None
    items: Annotated[list[KeyToPath] | None, ListType("atomic")] = None
    default_mode: Annotated[Int32 | None, Pointer] = None
    optional: Annotated[bool | None, Pointer] = None


class KeyToPath(Struct):
    key: Annotated[str | None, Required, Always("")] = None
    path: Annotated[str | None, Required, Always("")] = None
    mode: Annotated[Int32 | None, Pointer] = None


class DownwardAPIVolumeSource(Struct):
    items: Annotated[list[DownwardAPIVolumeFile] | None, ListType("atomic")] = None
    default_mode: Annotated[Int32 | None, Pointer] = None


class DownwardAPIVolumeFile(Struct):
    path: Annotated[str | None, Required, Always("")] = None
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: Annotated[Int32 | None, Pointer] = None


class EphemeralVolumeSource(Struct):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ProjectedVolumeSource(Struct):
    sources: Annotated[list[VolumeProjection] | None, Always(None), ListType("atomic")] = None
    default_mode: Annotated[Int32 | None, Pointer] = None


class VolumeProjection(Struct):
    secret: SecretProjection | None = None
    downward_api: DownwardAPIProjection | None = field(default=None, name="downwardAPI")
    config_map: ConfigMapProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    pod_certificate: PodCertificateProjection | None = None


class ClusterTrustBundleProjection(Struct):
    name: Annotated[str | None, Pointer] = None
    signer_name: Annotated[str | None, Pointer] = None
    label_selector: LabelSelector | None = None
    optional: Annotated[bool | None, Pointer] = None
    path: Annotated[str | None, Required, Always("")] = None


class ConfigMapProjection(Struct):
    name: Annotated[str | None, Default("")] = None
    items: Annotated[list[KeyToPath] | None, ListType("atomic")] = None
    optional: Annotated[bool | None, Pointer] = None


class DownwardAPIProjection(Struct):
    items: Annotated[list[DownwardAPIVolumeFile] | None, ListType("atomic")] = None


class PodCertificateProjection(Struct):
    signer_name: Annotated[str | None, Required] = None
    key_type: Annotated[str | None, Required] = None
    max_expiration_seconds: Annotated[Int32 | None, Pointer] = None
    credential_bundle_path: str | None = None
    key_path: str | None = None
    certificate_chain_path: str | None = None
    user_annotations: dict[str, str] | None = None


class SecretProjection(Struct):
    name: Annotated[str | None, Default("")] = None
    items: Annotated[list[KeyToPath] | None, ListType("atomic")] = None
    optional: Annotated[bool | None, Pointer] = None


class ServiceAccountTokenProjection(Struct):
    audience: str | None = None
    expiration_seconds: Annotated[Int64 | None, Pointer] = None
    path: Annotated[str | None, Required, Always("")] = None


class VolumeDevice(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    device_path: Annotated[str | None, Required, Always("")] = None


class VolumeMount(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    read_only: bool | None = None
    recursive_read_only: Annotated[str | None, Pointer] = None
    mount_path: Annotated[str | None, Required, Always("")] = None
    sub_path: str | None = None
    mount_propagation: Annotated[str | None, Pointer, Enum("Bidirectional", "HostToContainer", "None")] = None
    sub_path_expr: str | None = None


class VolumeMountStatus(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    mount_path: Annotated[str | None, Required, Always("")] = None
    read_only: bool | None = None
    recursive_read_only: Annotated[str | None, Pointer] = None
    volume_status: VolumeStatus | None = None


class VolumeStatus(Struct):
    image: ImageVolumeStatus | None = None


class ImageVolumeStatus(Struct):
    image_ref: Annotated[str | None, Required] = None
