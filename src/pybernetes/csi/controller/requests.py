"""From a claim and its class to a CreateVolume request, and from the answer to a PersistentVolume. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pybernetes.api.core.v1 import (
    CSIPersistentVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    SecretReference,
    VolumeNodeAffinity,
)
from pybernetes.api.core.volumebinding import claim_class, wanted_size
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.storage.v1 import StorageClass
from pybernetes.csi import v1

PREFIX: Final = "csi.storage.k8s.io/"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
PV_FINALIZER: Final = "external-provisioner.volume.kubernetes.io/finalizer"
DELETION_SECRET: Final = "volume.kubernetes.io/provisioner-deletion-secret-"
"""With `name` and `namespace`."""
SECRETS: Final = {
    "provisioner": "provisioner",
    "controller-publish": "controller_publish_secret_ref",
    "node-stage": "node_stage_secret_ref",
    "node-publish": "node_publish_secret_ref",
    "controller-expand": "controller_expand_secret_ref",
    "node-expand": "node_expand_secret_ref",
}
"""In a class's parameters as `csi.storage.k8s.io/NAME-secret-name` and `-namespace`; who of the volume uses it."""
_REFERENCE = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Request:
    """The fields of CreateVolume for a claim, and those of its PersistentVolume beside the response."""

    name: str
    size: int
    parameters: dict[str, str]
    capabilities: list[Any]
    fs_type: str
    secrets: dict[str, SecretReference]
    """By the names of `SECRETS`."""


def volume_name(claim: PersistentVolumeClaim, prefix: str = "pvc") -> str:
    """The volume's name, made of the claim's uid so that a retry finds the first try's volume."""
    return f"{prefix}-{(claim.metadata.uid if claim.metadata else None) or ''}"


def request_for(claim: PersistentVolumeClaim, found: StorageClass, *, single_node_multi_writer: bool) -> Request:
    """The request; raises ValueError with the field of the class that is wrong."""
    spec = claim.spec or PersistentVolumeClaimSpec()
    if spec.selector is not None:
        raise ValueError("claim Selector is not supported")
    parameters = dict(found.parameters or {})
    fs_type = parameters.get(f"{PREFIX}fstype", parameters.get("fstype", ""))
    name = volume_name(claim)
    secrets = {each: made for each in SECRETS if (made := _secret(parameters, each, claim, name)) is not None}
    known = {f"{PREFIX}{each}-secret-{part}" for each in SECRETS for part in ("name", "namespace")}
    strange = [key for key in parameters if key.startswith(PREFIX) and key not in known | {f"{PREFIX}fstype"}]
    if strange:
        raise ValueError(f"StorageClass {_class_name(found)}: parameters: {', '.join(sorted(strange))} not known")
    block = spec.volume_mode == "Block"
    modes = list(spec.access_modes or ())
    return Request(
        name=name,
        size=wanted_size(claim).value(),
        parameters=drivers_parameters(found),
        capabilities=capabilities(modes, block, fs_type, found.mount_options or (), single_node_multi_writer),
        fs_type="" if block else fs_type,
        secrets=secrets,
    )


def drivers_parameters(found: StorageClass) -> dict[str, str]:
    """The parameters of a class that are the driver's own."""
    return {
        key: value for key, value in (found.parameters or {}).items() if not key.startswith(PREFIX) and key != "fstype"
    }


def claim_metadata(claim: PersistentVolumeClaim) -> dict[str, str]:
    """The parameters that a provisioner with --extra-create-metadata adds."""
    metadata = claim.metadata or ObjectMeta()
    return {
        f"{PREFIX}pvc/name": metadata.name or "",
        f"{PREFIX}pvc/namespace": metadata.namespace or "",
        f"{PREFIX}pv/name": volume_name(claim),
    }


def capabilities(
    modes: Sequence[str], block: bool, fs_type: str, options: Iterable[str], single_node_multi_writer: bool
) -> list[Any]:
    """One VolumeCapability for each access mode."""
    kinds = v1.AccessMode
    numbers = {
        "ReadWriteOnce": kinds.SINGLE_NODE_MULTI_WRITER if single_node_multi_writer else kinds.SINGLE_NODE_WRITER,
        "ReadWriteOncePod": kinds.SINGLE_NODE_SINGLE_WRITER if single_node_multi_writer else kinds.SINGLE_NODE_WRITER,
        "ReadOnlyMany": kinds.MULTI_NODE_READER_ONLY,
        "ReadWriteMany": kinds.MULTI_NODE_MULTI_WRITER,
    }
    made = []
    for mode in modes:
        capability = v1.VolumeCapability(access_mode=v1.AccessMode(mode=numbers[mode]))
        if block:
            capability.block.SetInParent()
        else:
            capability.mount.SetInParent()
            capability.mount.fs_type = fs_type
            capability.mount.mount_flags.extend(options)
        made.append(capability)
    return made


def persistent_volume(
    claim: PersistentVolumeClaim, found: StorageClass, request: Request, volume: Any, driver: str, *, read_only: bool
) -> PersistentVolume:
    """The PersistentVolume for what the driver has made, for this claim alone."""
    spec, metadata = claim.spec or PersistentVolumeClaimSpec(), claim.metadata or ObjectMeta()
    deletion = request.secrets.get("provisioner")
    annotations = {PROVISIONED_BY: driver}
    if deletion is not None:
        annotations |= {
            f"{DELETION_SECRET}name": deletion.name or "",
            f"{DELETION_SECRET}namespace": deletion.namespace or "",
        }
    source = CSIPersistentVolumeSource(
        driver=driver,
        volume_handle=volume.volume_id,
        fs_type=request.fs_type or None,
        read_only=read_only or None,
        volume_attributes=dict(volume.volume_context) or None,
    )
    for name, field in SECRETS.items():
        if name != "provisioner" and name in request.secrets:
            setattr(source, field, request.secrets[name])
    reference = ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )
    policy = found.reclaim_policy or "Delete"
    return PersistentVolume(
        api_version="v1",
        kind="PersistentVolume",
        metadata=ObjectMeta(
            name=request.name, annotations=annotations, finalizers=[PV_FINALIZER] if policy == "Delete" else None
        ),
        spec=PersistentVolumeSpec(
            capacity={"storage": amount(volume.capacity_bytes or request.size)},
            access_modes=list(spec.access_modes or ()),
            volume_mode=spec.volume_mode or "Filesystem",
            persistent_volume_reclaim_policy=policy,
            storage_class_name=claim_class(claim),
            mount_options=list(found.mount_options or ()) or None,
            claim_ref=reference,
            csi=source,
            node_affinity=affinity(volume.accessible_topology),
            volume_attributes_class_name=spec.volume_attributes_class_name,
        ),
    )


def affinity(topologies: Iterable[Any]) -> VolumeNodeAffinity | None:
    """The nodes that can reach a volume; None for all."""
    terms = [
        NodeSelectorTerm(
            match_expressions=[
                NodeSelectorRequirement(key=key, operator="In", values=[value])
                for key, value in sorted(each.segments.items())
            ]
        )
        for each in topologies
        if each.segments
    ]
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms)) if terms else None


def amount(size: int) -> str:
    """Bytes as a quantity, in the largest unit that has no fraction."""
    for unit, name in ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def _secret(parameters: dict[str, str], kind: str, claim: PersistentVolumeClaim, name: str) -> SecretReference | None:
    template = parameters.get(f"{PREFIX}{kind}-secret-name")
    namespace = parameters.get(f"{PREFIX}{kind}-secret-namespace")
    if not template and not namespace:
        return None
    if not template or not namespace:
        raise ValueError(f"parameters {PREFIX}{kind}-secret-name and -secret-namespace must both be set")
    metadata = claim.metadata or ObjectMeta()
    values = {"pv.name": name, "pvc.namespace": metadata.namespace or "", "pvc.name": metadata.name or ""}
    annotations = metadata.annotations or {}

    def value(found: re.Match[str]) -> str:
        key = found[1]
        if key in values:
            return values[key]
        if key.startswith("pvc.annotations['") and key.endswith("']"):
            return annotations.get(key[len("pvc.annotations['") : -2], "")
        raise ValueError(f"parameters: {PREFIX}{kind}-secret: unknown reference ${{{key}}}")

    return SecretReference(name=_REFERENCE.sub(value, template), namespace=_REFERENCE.sub(value, namespace))


def _class_name(found: StorageClass) -> str:
    return (found.metadata.name if found.metadata else None) or ""
