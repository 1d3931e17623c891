"""Volumes of plugins that were part of Kubernetes once, and for which a CSI driver stands in today.

Classes and volumes still have the plugin's name; an annotation tells external provisioners which of them are theirs.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim

from ..common.meta import annotations_of

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"

IN_TREE_PREFIX: Final = "kubernetes.io/"
IN_TREE_FINALIZER: Final = "kubernetes.io/pv-controller"
EXTERNAL_FINALIZER: Final = "external-provisioner.volume.kubernetes.io/finalizer"

CSI_DRIVERS: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""By the plugin's name."""


HOST_PATH: Final = "kubernetes.io/host-path"
NFS: Final = "kubernetes.io/nfs"


def no_plugin(name: str, able: str) -> str:
    """The message for a plugin that provisions, or deletes, no volumes here."""
    return f"no {able} volume plugin matched" if name in (HOST_PATH, NFS) else f"no volume plugin matched name: {name}"


def migrated_annotations(obj: PersistentVolume | PersistentVolumeClaim) -> dict[str, str] | None:
    """The annotations with the driver that stands in for the plugin that made, or shall make, the volume.

    None if they are right as they are.
    """
    annotations = annotations_of(obj)
    if isinstance(obj, PersistentVolume):
        provisioner = annotations.get(PROVISIONED_BY)
    else:
        provisioner = annotations.get(STORAGE_PROVISIONER, annotations.get(BETA_STORAGE_PROVISIONER))
    if provisioner is None:
        return None
    driver = CSI_DRIVERS.get(provisioner, "")
    if annotations.get(MIGRATED_TO, "") == driver:
        return None
    rest = {key: value for key, value in annotations.items() if key != MIGRATED_TO}
    return {**rest, MIGRATED_TO: driver} if driver else rest


def deletion_finalizers(volume: PersistentVolume) -> list[str] | None:
    """The finalizers that keep a volume of a plugin until what is behind it has been deleted; None if they are right.

    Only volumes that were made for a claim have one, and only if they are to be deleted with it.
    """
    provisioner = annotations_of(volume).get(PROVISIONED_BY)
    if provisioner is None or not provisioner.startswith(IN_TREE_PREFIX):
        return None
    present = list((volume.metadata.finalizers if volume.metadata else None) or ())
    if provisioner in CSI_DRIVERS:
        wanted = [each for each in present if each != IN_TREE_FINALIZER]
        return wanted if wanted != present else None
    wanted = [each for each in present if each != EXTERNAL_FINALIZER]
    policy = volume.spec.persistent_volume_reclaim_policy if volume.spec else None
    if policy == "Delete" and IN_TREE_FINALIZER not in wanted:
        wanted.append(IN_TREE_FINALIZER)
    elif policy in ("Retain", "Recycle"):
        wanted = [each for each in wanted if each != IN_TREE_FINALIZER]
    return wanted if wanted != present else None


SOURCES: Final = {
    "aws_elastic_block_store": "kubernetes.io/aws-ebs",
    "azure_disk": "kubernetes.io/azure-disk",
    "azure_file": "kubernetes.io/azure-file",
    "cinder": "kubernetes.io/cinder",
    "gce_persistent_disk": "kubernetes.io/gce-pd",
    "portworx_volume": "kubernetes.io/portworx-volume",
    "vsphere_volume": "kubernetes.io/vsphere-volume",
}
"""The plugins for which drivers stand in, by the field of a volume that is theirs."""


def migrated_plugin(volume: PersistentVolume) -> str | None:
    """The plugin that a volume is of, if a driver stands in for it."""
    return next((plugin for source, plugin in SOURCES.items() if getattr(volume.spec, source, None) is not None), None)
