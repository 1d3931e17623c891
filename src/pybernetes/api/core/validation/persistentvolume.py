"""Validation of PersistentVolumes."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Any, Final

from ...equality import semantically_equal
from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ...gocompat.godiff import diff
from ...gocompat.goform import go_form, go_values
from ...meta.validation import IMMUTABLE, validate_immutable, validate_object_meta, validate_object_meta_update
from ...names import is_label_value, name_is_dns_subdomain, range_error
from ...quantity import parse
from ..v1.affinity import NodeSelectorRequirement
from ..v1.persistentvolume import PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity
from ..v1.reference import SecretReference
from .common import (
    dns1123_label,
    dns1123_subdomain,
    validate_csi_driver_name,
    validate_path_no_backsteps,
    validate_positive_quantity,
)
from .scheduling import validate_node_selector
from .volumes import validate_host_path
from .volumesources import is_initiator, validate_outside_source

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
VOLUME_MODES: Final = ("Block", "Filesystem")
MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"

_META: Final = Path("metadata")
_SPEC: Final = Path("spec")
_ONE: Final = "may not specify more than 1 volume type"


def validate_persistent_volume(obj: PersistentVolume) -> list[FieldError]:
    """Validate a new volume."""
    return _validate(obj) + _validate_mount_options(obj)


def validate_persistent_volume_update(new: PersistentVolume, old: PersistentVolume) -> list[FieldError]:
    """Validate an update: the source and the way a volume is used are immutable."""
    lenient = _has_invalid_values(old)
    errors = _validate(new, invalid_values=lenient) + _validate_mount_options(new)
    errors += _validate(new, invalid_values=lenient)  # upstream checks the object twice here, and reports it twice
    spec, before = new.spec or PersistentVolumeSpec(), old.spec or PersistentVolumeSpec()
    if not _same_source(spec, before):
        text = diff(_sources_form(before), _sources_form(spec))
        detail = f"spec.persistentvolumesource is immutable after creation\n{text}"
        errors.append(forbidden(_SPEC.child("persistentvolumesource"), detail))
    errors += validate_immutable(spec.volume_mode, before.volume_mode, Path("volumeMode"))
    if before.node_affinity is not None and not _same_affinity(spec.node_affinity, before.node_affinity):
        detail = f"{IMMUTABLE}, except for updating from beta label to GA"
        errors.append(invalid(Path("nodeAffinity"), go_form(spec.node_affinity), detail))
    if before.volume_attributes_class_name is not None and spec.volume_attributes_class_name is None:
        at = _SPEC.child("volumeAttributesClassName")
        errors.append(forbidden(at, "update from non-nil value to nil is forbidden"))
    return errors


def validate_persistent_volume_status_update(new: PersistentVolume, old: PersistentVolume) -> list[FieldError]:
    """The status is free."""
    return validate_object_meta_update(new.metadata, old.metadata, _META)


def _validate(obj: PersistentVolume, *, invalid_values: bool = False) -> list[FieldError]:
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain, _META)
    name = (obj.metadata and obj.metadata.name) or ""
    return errors + validate_persistent_volume_spec(
        obj.spec or PersistentVolumeSpec(), name, _SPEC, invalid_values=invalid_values
    )


def validate_access_modes(modes: list[str] | None, path: Path) -> list[FieldError]:
    """Known modes; one pod alone or others, not both."""
    errors = [not_supported(path, mode, ACCESS_MODES) for mode in modes or () if mode not in ACCESS_MODES]
    known = {mode for mode in modes or () if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def validate_persistent_volume_spec(
    spec: PersistentVolumeSpec, name: str, path: Path, *, inline: bool = False, invalid_values: bool = False
) -> list[FieldError]:
    """A volume, or the part of one that a VolumeAttachment carries (`inline`)."""
    errors: list[FieldError] = []
    context = "in the context of inline volumes"
    if inline:
        if spec.claim_ref is not None:
            errors.append(forbidden(path.child("claimRef"), f"may not be specified {context}"))
        if spec.capacity:
            errors.append(forbidden(path.child("capacity"), f"may not be specified {context}"))
        if spec.csi is None:
            errors.append(required(path.child("csi"), f"has to be specified {context}"))
    if not spec.access_modes:
        errors.append(required(path.child("accessModes")))
    errors += validate_access_modes(spec.access_modes, path.child("accessModes"))
    if not inline:
        errors += _validate_capacity(spec.capacity, path.child("capacity"))
    policy = spec.persistent_volume_reclaim_policy
    at = path.child("persistentVolumeReclaimPolicy")
    if policy and inline and policy != "Retain":
        errors.append(forbidden(at, f"may only be Retain {context}"))
    elif policy and not inline and policy not in RECLAIM_POLICIES:
        errors.append(not_supported(at, policy, RECLAIM_POLICIES))
    affinity = spec.node_affinity
    if affinity is not None:
        at = path.child("nodeAffinity")
        if inline:
            errors.append(forbidden(at, f"may not be specified {context}"))
        elif affinity.required is None:
            errors.append(required(at.child("required"), "must specify required node constraints"))
        else:
            errors += validate_node_selector(affinity.required, at.child("required"), invalid_values=invalid_values)
    errors += _validate_sources(spec, name, path, inline)
    if spec.host_path is not None and policy == "Recycle" and _clean(spec.host_path.path or "") == "/":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden(path.child("persistentVolumeReclaimPolicy"), detail))
    errors += _validate_class(spec, path, inline)
    mode = spec.volume_mode
    if mode is not None and inline and mode != "Filesystem":
        detail = f"may not specify volumeMode other than Filesystem {context}"
        errors.append(forbidden(path.child("volumeMode"), detail))
    elif mode is not None and not inline and mode not in VOLUME_MODES:
        errors.append(not_supported(path.child("volumeMode"), mode, VOLUME_MODES))
    # Upstream has this option off where a VolumeAttachment is checked.
    return errors if inline else errors + _validate_attributes_class(spec, path)


def _clean(path: str) -> str:
    """The path without detours; as in Go, two leading slashes are one."""
    cleaned = posixpath.normpath(path)
    return "/" if cleaned == "//" else cleaned


def _validate_capacity(capacity: dict[str, Any] | None, path: Path) -> list[FieldError]:
    errors = [] if capacity else [required(path)]
    if list(capacity or ()) != ["storage"]:
        # Upstream prints the map of quantities, which is JSON of their texts.
        errors.append(not_supported(path, capacity, ("storage",)))
    for name, value in (capacity or {}).items():
        quantity = parse(str(value))
        if quantity.value() < 0:
            errors.append(invalid(path.key(name), quantity.value(), "must be a valid resource quantity"))
        errors += validate_positive_quantity(quantity, path.key(name))
    return errors


def _validate_class(spec: PersistentVolumeSpec, path: Path, inline: bool) -> list[FieldError]:
    name = spec.storage_class_name
    if not name:
        return []
    at = path.child("storageClassName")
    if inline:
        return [forbidden(at, "may not be specified in the context of inline volumes")]
    return [invalid(at, name, problem) for problem in dns1123_subdomain(name)]


def _validate_attributes_class(spec: PersistentVolumeSpec, path: Path) -> list[FieldError]:
    name = spec.volume_attributes_class_name
    if name is None:
        return []
    at = path.child("volumeAttributesClassName")
    errors = [invalid(at, name, problem) for problem in dns1123_subdomain(name)] if name else []
    if not name:
        errors.append(required(at, "an empty string is disallowed"))
    if spec.csi is None:
        errors.append(required(path.child("csi"), "has to be specified when using volumeAttributesClassName"))
    return errors


# --- sources


def _validate_sources(spec: PersistentVolumeSpec, name: str, path: Path, inline: bool) -> list[FieldError]:
    """Exactly one of them. The order, and a name that is spelled in two ways, are upstream's."""
    errors: list[FieldError] = []
    found = 0
    for field, wire, check in _SOURCES:
        source = getattr(spec, field)
        if source is None:
            continue
        if found and field != "flex_volume":
            errors.append(forbidden(path.child("cephFS" if field == "cephfs" else wire), _ONE))
            continue
        found += 1
        if field == "iscsi":
            errors += _iscsi(source, name, path.child(wire))
        elif check is None:
            errors += validate_outside_source(field, source, path)
        else:
            errors += check(source, path.child(wire))
        if field == "local" and (spec.node_affinity is None or inline):
            errors.append(required(path.child("nodeAffinity"), "Local volume requires node affinity"))
    if not found:
        errors.append(required(path, "must specify a volume type"))
    return errors


def _needs(source: Any, path: Path, *fields: tuple[str, str]) -> list[FieldError]:
    return [required(path.child(wire)) for field, wire in fields if not getattr(source, field)]


def _glusterfs(source: Any, path: Path) -> list[FieldError]:
    errors = _needs(source, path, ("endpoints", "endpoints"), ("path", "path"))
    namespace = source.endpoints_namespace
    at = path.child("endpointsNamespace")
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        errors.append(invalid(at, namespace, detail))
    elif namespace:
        errors += [invalid(at, namespace, problem) for problem in dns1123_label(namespace)]
    return errors


def _secret_needs_both(source: Any, path: Path) -> list[FieldError]:
    secret = source.secret_ref
    return _needs(secret, path.child("secretRef"), ("name", "name"), ("namespace", "namespace")) if secret else []


def _cinder(source: Any, path: Path) -> list[FieldError]:
    return _needs(source, path, ("volume_id", "volumeID")) + _secret_needs_both(source, path)


def _azure_file(source: Any, path: Path) -> list[FieldError]:
    errors = _needs(source, path, ("secret_name", "secretName"), ("share_name", "shareName"))
    if source.secret_namespace == "":
        errors.append(required(path.child("secretNamespace")))
    return errors


def _iscsi(source: Any, name: str, path: Path) -> list[FieldError]:
    errors = _needs(source, path, ("target_portal", "targetPortal"))
    portal = source.target_portal or ""
    if source.initiator_name is not None and len(f"{name}:{portal}") > 64:
        detail = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
            "if iscsi.initiatorName is specified."
        )
        errors.append(invalid(path.child("targetportal"), portal, detail))
    if not source.iqn:
        errors.append(required(path.child("iqn")))
    elif not _is_iscsi_name(source.iqn):
        errors.append(invalid(path.child("iqn"), source.iqn, "must be valid format"))
    if not 0 <= (source.lun or 0) <= 255:
        errors.append(invalid(path.child("lun"), source.lun, range_error(0, 255)))
    if (source.chap_auth_discovery or source.chap_auth_session) and source.secret_ref is None:
        errors.append(required(path.child("secretRef")))
    if source.secret_ref is not None and not source.secret_ref.name:
        errors.append(required(path.child("secretRef", "name")))
    initiator = source.initiator_name
    if initiator is not None and not _is_iscsi_name(initiator):
        errors.append(invalid(path.child("initiatorname"), initiator, "must be valid format"))
    return errors


def _is_iscsi_name(name: str) -> bool:
    return name.startswith(("iqn", "eui", "naa")) and is_initiator(name)


def _local(source: Any, path: Path) -> list[FieldError]:
    at = path.child("path")
    return validate_path_no_backsteps(source.path, at) if source.path else [required(at)]


def _storage_os(source: Any, path: Path) -> list[FieldError]:
    errors = _needs(source, path, ("volume_name", "volumeName"))
    for value, wire in ((source.volume_name, "volumeName"), (source.volume_namespace, "volumeNamespace")):
        if value:
            errors += [invalid(path.child(wire), value, problem) for problem in dns1123_label(value)]
    return errors + _secret_needs_both(source, path)


def _csi(source: Any, path: Path) -> list[FieldError]:
    errors = validate_csi_driver_name(source.driver, path.child("driver"))
    errors += _needs(source, path, ("volume_handle", "volumeHandle"))
    for field, wire in (
        ("controller_publish_secret_ref", "controllerPublishSecretRef"),
        ("controller_expand_secret_ref", "controllerExpandSecretRef"),
        ("node_publish_secret_ref", "nodePublishSecretRef"),
        ("node_expand_secret_ref", "nodeExpandSecretRef"),
    ):
        secret = getattr(source, field)
        if secret is not None:
            errors += _secret(secret, path.child(wire))
    return errors


def _secret(secret: SecretReference, path: Path) -> list[FieldError]:
    errors = _needs(secret, path, ("name", "name"))
    errors += [invalid(path.child("name"), secret.name, each) for each in dns1123_subdomain(secret.name or "x")]
    errors += _needs(secret, path, ("namespace", "namespace"))
    errors += [
        invalid(path.child("namespace"), secret.namespace, each) for each in dns1123_label(secret.namespace or "x")
    ]
    return errors


Check = Callable[[Any, Path], list[FieldError]]
# Where there is no check, the rules are those of the same source in a pod.
_SOURCES: Final[tuple[tuple[str, str, Check | None], ...]] = (
    ("host_path", "hostPath", validate_host_path),
    ("gce_persistent_disk", "gcePersistentDisk", None),
    ("aws_elastic_block_store", "awsElasticBlockStore", None),
    ("glusterfs", "glusterfs", _glusterfs),
    ("flocker", "flocker", None),
    ("nfs", "nfs", None),
    ("rbd", "rbd", None),
    ("quobyte", "quobyte", None),
    ("cephfs", "cephfs", None),
    ("iscsi", "iscsi", None),
    ("cinder", "cinder", _cinder),
    ("fc", "fc", None),
    ("flex_volume", "flexVolume", None),
    ("azure_file", "azureFile", _azure_file),
    ("vsphere_volume", "vsphereVolume", None),
    ("photon_persistent_disk", "photonPersistentDisk", None),
    ("portworx_volume", "portworxVolume", None),
    ("azure_disk", "azureDisk", None),
    ("scale_io", "scaleIO", None),
    ("local", "local", _local),
    ("storageos", "storageos", _storage_os),
    ("csi", "csi", _csi),
)
# In the order of upstream's internal type, under its names.
_GO_SOURCES: Final = {
    "gce_persistent_disk": "GCEPersistentDisk",
    "aws_elastic_block_store": "AWSElasticBlockStore",
    "host_path": "HostPath",
    "glusterfs": "Glusterfs",
    "nfs": "NFS",
    "rbd": "RBD",
    "quobyte": "Quobyte",
    "iscsi": "ISCSI",
    "flex_volume": "FlexVolume",
    "cinder": "Cinder",
    "cephfs": "CephFS",
    "fc": "FC",
    "flocker": "Flocker",
    "azure_file": "AzureFile",
    "vsphere_volume": "VsphereVolume",
    "azure_disk": "AzureDisk",
    "photon_persistent_disk": "PhotonPersistentDisk",
    "portworx_volume": "PortworxVolume",
    "scale_io": "ScaleIO",
    "local": "Local",
    "storageos": "StorageOS",
    "csi": "CSI",
}


def _sources_form(spec: PersistentVolumeSpec) -> dict[str, Any]:
    return {name: go_values(getattr(spec, field)) for field, name in _GO_SOURCES.items()}


def _same_source(new: PersistentVolumeSpec, old: PersistentVolumeSpec) -> bool:
    for field in _GO_SOURCES:
        mine, before = getattr(new, field), getattr(old, field)
        if field == "csi" and mine is not None and before is not None and before.controller_expand_secret_ref is None:
            # The only thing that may be added: volumes from before drivers could expand.
            secret, mine.controller_expand_secret_ref = mine.controller_expand_secret_ref, None
            same = semantically_equal(mine, before)
            mine.controller_expand_secret_ref = secret
        else:
            same = semantically_equal(mine, before)
        if not same:
            return False
    return True


_GA_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def _same_affinity(new: VolumeNodeAffinity | None, old: VolumeNodeAffinity) -> bool:
    """Whether both select the same nodes, if labels may be replaced by those that took their place."""
    if new is None or new.required is None or old.required is None:
        return semantically_equal(new, old)
    mine, before = new.required.node_selector_terms or [], old.required.node_selector_terms or []
    return len(mine) == len(before) and all(
        semantically_equal(one.match_fields, other.match_fields)
        and len(one.match_expressions or ()) == len(other.match_expressions or ())
        and all(map(_same_requirement, one.match_expressions or (), other.match_expressions or ()))
        for one, other in zip(mine, before, strict=True)
    )


def _same_requirement(new: NodeSelectorRequirement, old: NodeSelectorRequirement) -> bool:
    same_key = new.key == old.key or (old.key in _GA_LABELS and new.key == _GA_LABELS[old.key])
    return same_key and new.operator == old.operator and semantically_equal(new.values, old.values)


def _has_invalid_values(obj: PersistentVolume) -> bool:
    affinity = obj.spec.node_affinity if obj.spec else None
    if affinity is None or affinity.required is None:
        return False
    return any(
        is_label_value(value)
        for term in affinity.required.node_selector_terms or ()
        for requirement in term.match_expressions or ()
        for value in requirement.values or ()
    )


_WITH_MOUNT_OPTIONS: Final = (
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azure_file",
    "vsphere_volume",
    "azure_disk",
    "photon_persistent_disk",
)


def _validate_mount_options(obj: PersistentVolume) -> list[FieldError]:
    annotations = (obj.metadata and obj.metadata.annotations) or {}
    if MOUNT_OPTIONS not in annotations or any(getattr(obj.spec, name, None) for name in _WITH_MOUNT_OPTIONS):
        return []
    at = _META.child("annotations", MOUNT_OPTIONS)
    return [forbidden(at, "may not specify mount options for this volume type")]


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"PersistentVolume": validate_persistent_volume}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "PersistentVolume": validate_persistent_volume_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "PersistentVolume": validate_persistent_volume_status_update,
}
