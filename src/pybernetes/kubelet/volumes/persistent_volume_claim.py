"""`persistentVolumeClaim` and `ephemeral`: a claim, the volume behind it, and what that is made of.

Claim and volume must be each other's. What lies behind must be on this node (`hostPath`, `local`), on an NFS server, or
of a CSI driver that is registered here.
"""

from __future__ import annotations

import re
from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.nodeaffinity import node_selector_matches
from pybernetes.api.core.v1 import (
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
    Volume,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.keys import uid_of

from ..error_text import why
from ..runtime.types import all_containers
from . import host_path, local, nfs
from .base import MountedVolume, ProcessingError, StepError
from .host import Host

PROTECTION: Final = "kubernetes.io/pvc-protection"


async def set_up(host: Host, pod: Pod, volume: Volume) -> MountedVolume:
    """Find what is behind the claim and make it ready."""
    source = volume.persistent_volume_claim
    namespace = (pod.metadata.namespace if pod.metadata else None) or ""
    name = source.claim_name or "" if source else f"{pod.metadata.name if pod.metadata else ''}-{volume.name}"
    try:
        claim = await _claim(host, namespace, name)
        if source is None:
            _check_owner(pod, claim)
        found = await _volume(host, claim)
    except ProcessingError as error:
        raise ProcessingError(f"error processing PVC {namespace}/{name}: {error}") from None
    spec = found.spec or PersistentVolumeSpec()
    _check_mode(pod, volume.name or "", spec.volume_mode or "Filesystem")
    volume_name = (found.metadata.name if found.metadata else None) or ""
    _check_affinity(host, spec, volume_name)
    read_only = bool(source and source.read_only)
    if spec.csi is not None and host.csi is not None:
        return await host.csi.set_up(pod, volume.name or "", found, claim, read_only=read_only)
    try:
        if spec.host_path is not None:
            return await host_path.set_up_source(host, pod, spec.host_path, volume.name or "", read_only=read_only)
        if spec.local is not None:
            return await local.set_up(host, pod, found, volume.name or "", read_only=read_only)
        if spec.nfs is not None:
            options = spec.mount_options or ()
            return await nfs.set_up_source(
                host, pod, spec.nfs, volume.name or "", volume_name, options, read_only=read_only
            )
    except (OSError, ValueError) as error:
        raise StepError("MountVolume.SetUp failed", volume_name, why(error)) from None
    raise refusal(spec, volume_name)


def refusal(source: object, name: str) -> StepError:
    """Why a volume of a kind that is not supported cannot be mounted, and what can mount it."""
    csi = getattr(source, "csi", None)
    if csi is not None:
        why = f"driver name {csi.driver} not found in the list of registered CSI drivers"
        return StepError("MountVolume.NewMounter initialization failed", name, why)
    kinds = [each for each in INSTEAD if getattr(source, each, None) is not None]
    instead = f"; use {INSTEAD[kinds[0]]}" if kinds and INSTEAD[kinds[0]] else ""
    fields = ", ".join(_field(each) for each in kinds) or "unknown kind"
    problem = f"no volume plugin matched ({fields}){instead}"
    return StepError("MountVolume.FindPluginBySpec failed", name, problem)


def _field(name: str) -> str:
    """The API's name of a field of a kind."""
    return {"scale_io": "scaleIO"}.get(name) or re.sub(r"_(.)", lambda found: found[1].upper(), name)


INSTEAD: Final = {
    "aws_elastic_block_store": "the CSI driver ebs.csi.aws.com",
    "azure_disk": "the CSI driver disk.csi.azure.com",
    "azure_file": "the CSI driver file.csi.azure.com",
    "cephfs": "the CSI driver cephfs.csi.ceph.com",
    "cinder": "the CSI driver cinder.csi.openstack.org",
    "fc": "a CSI driver: this kubelet does not look for Fibre Channel devices",
    "flex_volume": "a CSI driver",
    "flocker": "",
    "gce_persistent_disk": "the CSI driver pd.csi.storage.gke.io",
    "git_repo": "an emptyDir and an init container with git",
    "glusterfs": "",
    "iscsi": "a CSI driver such as iscsi.csi.k8s.io: this kubelet does not call iscsiadm",
    "photon_persistent_disk": "",
    "portworx_volume": "the CSI driver pxd.portworx.com",
    "quobyte": "",
    "rbd": "the CSI driver rbd.csi.ceph.com",
    "scale_io": "",
    "storageos": "",
    "vsphere_volume": "the CSI driver csi.vsphere.vmware.com",
}
"""Kinds that nothing here mounts, and what does; empty where nothing of today's Kubernetes does."""


async def _claim(host: Host, namespace: str, name: str) -> PersistentVolumeClaim:
    if host.client is None:
        raise ProcessingError("no kubeClient defined")
    try:
        claim = await host.client.get(PersistentVolumeClaim, name, namespace)
    except (errors.APIError, OSError, TimeoutError) as error:
        raise ProcessingError(f"failed to fetch PVC from API server: {why(error)}") from None
    metadata = claim.metadata or ObjectMeta()
    if metadata.deletion_timestamp and PROTECTION not in (metadata.finalizers or ()):
        raise ProcessingError("PVC is being deleted")
    if claim.status is None or claim.status.phase != "Bound":
        raise ProcessingError("PVC is not bound")
    if not (claim.spec or PersistentVolumeClaimSpec()).volume_name:
        raise ProcessingError("PVC has empty pvc.Spec.VolumeName")
    return claim


async def _volume(host: Host, claim: PersistentVolumeClaim) -> PersistentVolume:
    assert host.client is not None
    name = (claim.spec.volume_name if claim.spec else None) or ""
    uid = claim.metadata.uid if claim.metadata else None
    try:
        volume = await host.client.get(PersistentVolume, name)
    except (errors.APIError, OSError, TimeoutError) as error:
        raise ProcessingError(f"failed to fetch PV {name} from API server: {why(error)}") from None
    reference = volume.spec.claim_ref if volume.spec else None
    if reference is None:
        raise ProcessingError(
            f"found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
        )
    if reference.uid != uid:
        raise ProcessingError(
            f"found PV object {name} but its pv.Spec.ClaimRef.UID {reference.uid or ''}"
            f" does not point to claim.UID {uid}"
        )
    return volume


def _check_owner(pod: Pod, claim: PersistentVolumeClaim) -> None:
    metadata = claim.metadata or ObjectMeta()
    controlled = any(each.controller and each.uid == uid_of(pod) for each in metadata.owner_references or ())
    if not controlled:
        owner = pod.metadata or ObjectMeta()
        raise ProcessingError(
            f"PVC {metadata.namespace}/{metadata.name} was not created for pod {owner.namespace}/{owner.name}"
            " (pod is not owner)"
        )


def _check_mode(pod: Pod, name: str, mode: str) -> None:
    for container in all_containers(pod.spec or PodSpec()):
        if mode != "Filesystem" and any(each.name == name for each in container.volume_mounts or ()):
            raise ProcessingError(f"volume {name} has volumeMode {mode}, but is specified in volumeMounts")
        if mode != "Block" and any(each.name == name for each in container.volume_devices or ()):
            raise ProcessingError(f"volume {name} has volumeMode {mode}, but is specified in volumeDevices")


def _check_affinity(host: Host, spec: PersistentVolumeSpec, name: str) -> None:
    required = spec.node_affinity.required if spec.node_affinity else None
    node = Node(metadata=ObjectMeta(name=host.facts.name, labels=dict(host.facts.labels)))
    if required is not None and not node_selector_matches(required, node):
        raise StepError("MountVolume.NodeAffinity check failed", name, "no matching NodeSelectorTerms")
