"""Validation of volumes with external storage: disks of clouds, network filesystems, CSI drivers.

Most of the plugins are gone from Kubernetes; their fields stay in the API and are still checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError, Path, invalid, not_supported, required
from ...names import range_error
from .common import (
    dns1123_subdomain,
    validate_csi_driver_name,
    validate_dns1123_label,
    validate_local_descending_path,
)

_IQN: Final = re.compile(r"iqn\.\d{4}-\d{2}\.([a-zA-Z0-9.-]+)(:[^,;*&$|\s]+)$", re.ASCII)
_EUI: Final = re.compile(r"^eui.[a-zA-Z0-9]{16}$")
_NAA: Final = re.compile(r"^naa.[a-zA-Z0-9]{32}$")
_REGISTRY: Final = "must be a host:port pair or multiple pairs separated by commas"
_AZURE_MANAGED: Final = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
)
_AZURE_BLOB: Final = ("https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",)

Check = Callable[[Any, Path], list[FieldError]]


def validate_outside_source(field: str, source: Any, path: Path) -> list[FieldError]:
    """Check the source a volume has under this field."""
    wire, check = _SOURCES[field]
    return check(source, path.child(wire))


def _needs(*fields: tuple[str, str]) -> Check:
    """Some fields must be there."""

    def check(source: Any, path: Path) -> list[FieldError]:
        return [required(path.child(wire)) for field, wire in fields if not getattr(source, field)]

    return check


def _partition(field: str, wire: str) -> Check:
    def check(source: Any, path: Path) -> list[FieldError]:
        errors = [] if getattr(source, field) else [required(path.child(wire))]
        if not 0 <= (source.partition or 0) <= 255:
            errors.append(invalid(path.child("partition"), source.partition, range_error(1, 255)))
        return errors

    return check


def _nfs(source: Any, path: Path) -> list[FieldError]:
    errors = [required(path.child(name)) for name in ("server", "path") if not getattr(source, name)]
    if not (source.path or "").startswith("/"):
        errors.append(invalid(path.child("path"), source.path or "", "must be an absolute path"))
    return errors


def _git_repo(source: Any, path: Path) -> list[FieldError]:
    errors = [] if source.repository else [required(path.child("repository"))]
    return errors + validate_local_descending_path(source.directory or "", path.child("directory"))


def is_initiator(name: str) -> bool:
    """Whether a name of an iSCSI node has the form its first letters promise."""
    if name.startswith("iqn"):
        return _IQN.search(name) is not None
    if name.startswith("eui"):
        return _EUI.search(name) is not None
    return not name.startswith("naa") or _NAA.search(name) is not None


def _iscsi(source: Any, path: Path) -> list[FieldError]:
    errors = [] if source.target_portal else [required(path.child("targetPortal"))]
    if not source.iqn:
        errors.append(required(path.child("iqn")))
    elif not source.iqn.startswith(("iqn", "eui", "naa")):
        errors.append(invalid(path.child("iqn"), source.iqn, "must be valid format starting with iqn, eui, or naa"))
    elif not is_initiator(source.iqn):
        errors.append(invalid(path.child("iqn"), source.iqn, "must be valid format"))
    if not 0 <= (source.lun or 0) <= 255:
        errors.append(invalid(path.child("lun"), source.lun, range_error(0, 255)))
    if (source.chap_auth_discovery or source.chap_auth_session) and source.secret_ref is None:
        errors.append(required(path.child("secretRef")))
    initiator = source.initiator_name
    if initiator is not None:
        if not initiator.startswith(("iqn", "eui", "naa")):
            detail = "must be valid format starting with iqn, eui, or naa"
            errors.append(invalid(path.child("initiatorname"), initiator, detail))
        elif not is_initiator(initiator):
            errors.append(invalid(path.child("initiatorname"), initiator, "must be valid format"))
    return errors


def _flocker(source: Any, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    name = source.dataset_name or ""
    if not name and not source.dataset_uuid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and source.dataset_uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid(path, "resource", detail))
    if "/" in name:
        errors.append(invalid(path.child("datasetName"), name, "must not contain '/'"))
    return errors


def _secret_name(source: Any, path: Path) -> list[FieldError]:
    if source.secret_ref is not None and not source.secret_ref.name:
        return [required(path.child("secretRef", "name"))]
    return []


def _cinder(source: Any, path: Path) -> list[FieldError]:
    errors = [] if source.volume_id else [required(path.child("volumeID"))]
    return errors + _secret_name(source, path)


def _is_host_port(pair: str) -> bool:
    """Whether Go's `net.SplitHostPort` takes it: one colon after the host, brackets around colons inside."""
    host, colon, _ = pair.rpartition(":")
    if not colon:
        return False
    if host.startswith("["):
        return host.endswith("]") and "[" not in host[1:] and "]" not in host[:-1]
    return ":" not in host and "[" not in pair and "]" not in pair


def _quobyte(source: Any, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not source.registry:
        errors.append(required(path.child("registry"), _REGISTRY))
    elif len(source.tenant or "") >= 65:
        detail = "must be a UUID and may not exceed a length of 64 characters"
        errors.append(required(path.child("tenant"), detail))
    else:
        for pair in source.registry.split(","):
            if not _is_host_port(pair):
                errors.append(invalid(path.child("registry"), source.registry, _REGISTRY))
    if not source.volume:
        errors.append(required(path.child("volume")))
    return errors


def _fc(source: Any, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not source.target_wwns and not source.wwids:
        detail = "must specify either targetWWNs or wwids, but not both"
        errors.append(required(path.child("targetWWNs"), detail))
    if source.target_wwns and source.wwids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(path.child("targetWWNs"), source.target_wwns, detail))
    if source.target_wwns:
        if source.lun is None:
            errors.append(required(path.child("lun"), "lun is required if targetWWNs is specified"))
        elif not 0 <= source.lun <= 255:
            errors.append(invalid(path.child("lun"), source.lun, range_error(0, 255)))
    return errors


def _flex(source: Any, path: Path) -> list[FieldError]:
    errors = [] if source.driver else [required(path.child("driver"))]
    for key in source.options or ():
        if f".{key.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(path.child("options").key(key), key, detail))
    return errors


def _azure_disk(source: Any, path: Path) -> list[FieldError]:
    errors = _needs(("disk_name", "diskName"), ("disk_uri", "diskURI"))(source, path)
    uri, kind = source.disk_uri or "", source.kind
    modes, kinds = ("None", "ReadOnly", "ReadWrite"), ("Dedicated", "Managed", "Shared")
    if source.caching_mode is not None and source.caching_mode not in modes:
        errors.append(not_supported(path.child("cachingMode"), source.caching_mode, modes))
    if kind is not None and kind not in kinds:
        errors.append(not_supported(path.child("kind"), kind, kinds))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        errors.append(not_supported(path.child("diskURI"), uri, _AZURE_MANAGED))
    if kind is not None and kind != "Managed" and not uri.startswith("https://"):
        errors.append(not_supported(path.child("diskURI"), uri, _AZURE_BLOB))
    return errors


def _storage_os(source: Any, path: Path) -> list[FieldError]:
    if not source.volume_name:
        errors = [required(path.child("volumeName"))]
    else:
        errors = validate_dns1123_label(source.volume_name, path.child("volumeName"))
    if source.volume_namespace:
        errors += validate_dns1123_label(source.volume_namespace, path.child("volumeNamespace"))
    return errors + _secret_name(source, path)


def _csi(source: Any, path: Path) -> list[FieldError]:
    errors = validate_csi_driver_name(source.driver, path.child("driver"))
    secret = source.node_publish_secret_ref
    if secret is not None:
        if not secret.name:
            errors.append(required(path.child("nodePublishSecretRef", "name")))
        else:
            errors += [invalid(path.child("name"), secret.name, each) for each in dns1123_subdomain(secret.name)]
    return errors


# The path of one of them is not its name: upstream reports it so.
_SOURCES: Final[dict[str, tuple[str, Check]]] = {
    "git_repo": ("gitRepo", _git_repo),
    "gce_persistent_disk": ("persistentDisk", _partition("pd_name", "pdName")),
    "aws_elastic_block_store": ("awsElasticBlockStore", _partition("volume_id", "volumeID")),
    "nfs": ("nfs", _nfs),
    "iscsi": ("iscsi", _iscsi),
    "glusterfs": ("glusterfs", _needs(("endpoints", "endpoints"), ("path", "path"))),
    "flocker": ("flocker", _flocker),
    "rbd": ("rbd", _needs(("monitors", "monitors"), ("image", "image"))),
    "cinder": ("cinder", _cinder),
    "cephfs": ("cephfs", _needs(("monitors", "monitors"))),
    "quobyte": ("quobyte", _quobyte),
    "fc": ("fc", _fc),
    "flex_volume": ("flexVolume", _flex),
    "azure_file": ("azureFile", _needs(("secret_name", "secretName"), ("share_name", "shareName"))),
    "vsphere_volume": ("vsphereVolume", _needs(("volume_path", "volumePath"))),
    "photon_persistent_disk": ("photonPersistentDisk", _needs(("pd_id", "pdID"))),
    "portworx_volume": ("portworxVolume", _needs(("volume_id", "volumeID"))),
    "azure_disk": ("azureDisk", _azure_disk),
    "storageos": ("storageos", _storage_os),
    "scale_io": (
        "scaleIO",
        _needs(("gateway", "gateway"), ("system", "system"), ("volume_name", "volumeName")),
    ),
    "csi": ("csi", _csi),
}
