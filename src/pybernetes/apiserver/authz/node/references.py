"""The objects that pods and volumes refer to: those a node may read to run them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pybernetes.api.core.podconfigmaps import config_map_names
from pybernetes.api.core.podsecrets import secret_names
from pybernetes.api.core.v1.persistentvolume import PersistentVolume
from pybernetes.api.core.v1.pod import Pod

MIRROR = "kubernetes.io/config.mirror"

Vertex = tuple[str, str, str]
"""Resource, namespace, name."""


def pod_references(pod: Pod) -> Iterator[Vertex]:
    """The objects a pod refers to. A mirror pod, which a node makes itself, grants it nothing."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    if meta is None or spec is None or MIRROR in (meta.annotations or {}):
        return
    namespace = meta.namespace or ""
    if spec.service_account_name:
        yield "serviceaccounts", namespace, spec.service_account_name
    for name in secret_names(pod):
        if name:
            yield "secrets", namespace, name
    for name in config_map_names(pod):
        if name:
            yield "configmaps", namespace, name
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield "persistentvolumeclaims", namespace, volume.persistent_volume_claim.claim_name or ""
        elif volume.ephemeral is not None:
            yield "persistentvolumeclaims", namespace, f"{meta.name}-{volume.name}"
    made = {each.name: each.resource_claim_name for each in (status and status.resource_claim_statuses) or ()}
    for claim in spec.resource_claims or ():
        name = claim.resource_claim_name or made.get(claim.name) or ""
        if name:
            yield "resourceclaims", namespace, name
    extended = status.extended_resource_claim_status if status else None
    if extended is not None and extended.resource_claim_name:
        yield "resourceclaims", namespace, extended.resource_claim_name


def volume_secrets(volume: PersistentVolume) -> Iterator[Vertex]:
    """The Secrets that a kubelet needs to mount a bound volume."""
    spec = volume.spec
    if spec is None or spec.claim_ref is None:
        return
    usual = spec.claim_ref.namespace or ""
    if spec.azure_file is not None and spec.azure_file.secret_name:
        yield "secrets", spec.azure_file.secret_namespace or usual, spec.azure_file.secret_name
    with_usual: tuple[Any, ...] = (spec.cephfs, spec.flex_volume, spec.rbd, spec.scale_io, spec.iscsi)
    for source in with_usual:
        if source is not None and source.secret_ref is not None and source.secret_ref.name:
            yield "secrets", source.secret_ref.namespace or usual, source.secret_ref.name
    references: list[Any] = [source.secret_ref for source in (spec.cinder, spec.storageos) if source is not None]
    if spec.csi is not None:
        csi = spec.csi
        references += [csi.node_publish_secret_ref, csi.node_stage_secret_ref, csi.node_expand_secret_ref]
    for reference in references:
        if reference is not None and reference.name:
            yield "secrets", reference.namespace or "", reference.name
