"""The volumes of a pod: names, one source each, and the sources that live inside the cluster.

Sources of external storage are in `volumesources.py`, projected ones in `projected.py`.
"""

from __future__ import annotations

from typing import Final

from ...field import FieldError, Path, forbidden, invalid, required
from ...field import duplicate as duplicate_error
from ...field import not_supported as not_supported_error
from ...meta.v1.objectmeta import ObjectMeta
from ...meta.validation import validate_template_meta
from ..podresources import quantity
from ..v1.persistentvolumeclaim import PersistentVolumeClaimSpec
from ..v1.volume import (
    ConfigMapVolumeSource,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    EphemeralVolumeSource,
    KeyToPath,
    ProjectedVolumeSource,
    SecretVolumeSource,
    Volume,
)
from ..v1.volumesource import EmptyDirVolumeSource, HostPathVolumeSource, ImageVolumeSource
from .common import (
    dns1123_label,
    dns1123_subdomain,
    validate_dns1123_label,
    validate_file_mode,
    validate_local_non_reserved_path,
    validate_path_no_backsteps,
    validate_pull_policy,
)
from .env import VOLUME_FIELDS, validate_object_field_selector, validate_resource_field_selector
from .options import PodOptions

HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def validate_volumes(
    volumes: list[Volume], meta: ObjectMeta | None, path: Path, options: PodOptions
) -> tuple[dict[str, Volume], list[FieldError]]:
    """The good volumes by name, and what is wrong with the others; `meta` is that of a real pod."""
    errors: list[FieldError] = []
    good: dict[str, Volume] = {}
    claims: set[str] = set()
    if meta is not None and meta.name:
        claims = {f"{meta.name}-{each.name or ''}" for each in volumes if each.ephemeral is not None}
    for index, volume in enumerate(volumes):
        at = path.index(index)
        name = volume.name or ""
        problems = _validate_source(volume, meta, at, options)
        if not name:
            problems.append(required(at.child("name")))
        elif dns1123_label(name):
            problems += validate_dns1123_label(name, at.child("name"))
        if name in good:
            problems.append(duplicate_error(at.child("name"), name))
        if problems:
            errors += problems
        else:
            good[name] = volume
        claim = volume.persistent_volume_claim
        if claims and claim is not None and claim.claim_name in claims:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(at.child("persistentVolumeClaim", "claimName"), claim.claim_name, detail))
    return good, errors


def _validate_source(volume: Volume, meta: ObjectMeta | None, path: Path, options: PodOptions) -> list[FieldError]:
    present = [name for name in _ORDER if getattr(volume, name) is not None]
    if not present:
        return [required(path, "must specify a volume type")]
    first = present[0]
    if first == "empty_dir":
        errors = _validate_empty_dir(volume.empty_dir or EmptyDirVolumeSource(), path)
    elif first == "config_map":
        errors = _validate_config_map(volume.config_map or ConfigMapVolumeSource(), path.child("configMap"))
    elif first == "secret":
        errors = _validate_secret(volume.secret or SecretVolumeSource(), path.child("secret"))
    elif first == "projected":
        from .projected import validate_projected

        errors = validate_projected(volume.projected or ProjectedVolumeSource(), path.child("projected"), options)
    elif first == "persistent_volume_claim":
        claim = volume.persistent_volume_claim
        named = claim is not None and claim.claim_name
        errors = [] if named else [required(path.child("persistentVolumeClaim", "claimName"))]
    elif first == "host_path":
        errors = validate_host_path(volume.host_path or HostPathVolumeSource(), path.child("hostPath"))
    elif first == "downward_api":
        errors = _validate_downward_api(volume.downward_api or DownwardAPIVolumeSource(), path.child("downwardAPI"))
    elif first == "ephemeral":
        errors = _validate_ephemeral(volume.ephemeral or EphemeralVolumeSource(), volume.name or "", meta, path)
    elif first == "image":
        errors = _validate_image(volume.image or ImageVolumeSource(), path.child("image"), options)
    else:
        from .volumesources import validate_outside_source

        errors = validate_outside_source(first, getattr(volume, first), path)
    for extra in present[1:]:
        wire = _MISSPELT.get(extra) or volume.__struct_encode_fields__[volume.__struct_fields__.index(extra)]
        errors.append(forbidden(path.child(wire), "may not specify more than 1 volume type"))
    if volume.iscsi is not None and volume.iscsi.initiator_name is not None:
        name = volume.name or ""
        if len(f"{name}:{volume.iscsi.target_portal or ''}") > 64:
            detail = (
                "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
                "if iscsi.initiatorName is specified."
            )
            errors.append(invalid(path.child("name"), name, detail))
    return errors


# The order decides which of several sources counts and which is too many.
_ORDER: Final = (
    "empty_dir",
    "host_path",
    "git_repo",
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistent_volume_claim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downward_api",
    "fc",
    "flex_volume",
    "config_map",
    "azure_file",
    "vsphere_volume",
    "photon_persistent_disk",
    "portworx_volume",
    "azure_disk",
    "storageos",
    "projected",
    "scale_io",
    "csi",
    "ephemeral",
    "image",
)
# Names that upstream misspells in this one message.
_MISSPELT: Final = {"downward_api": "downwarAPI", "cephfs": "cephFS"}


def _validate_empty_dir(source: EmptyDirVolumeSource, path: Path) -> list[FieldError]:
    if source.size_limit is not None and quantity(source.size_limit).sign() < 0:
        at = path.child("emptyDir", "sizeLimit")
        return [forbidden(at, "SizeLimit field must be a valid resource quantity")]
    return []


def _validate_downward_api(source: DownwardAPIVolumeSource, path: Path) -> list[FieldError]:
    errors = validate_file_mode(source.default_mode, path)
    for file in source.items or ():
        errors += validate_downward_api_file(file, path)
    return errors


def validate_host_path(source: HostPathVolumeSource, path: Path) -> list[FieldError]:
    """A path of the node; also the source of a PersistentVolume."""
    if not source.path:
        return [required(path.child("path"))]
    errors = validate_path_no_backsteps(source.path, path.child("path"))
    if source.type is not None and source.type not in HOST_PATH_TYPES:
        errors.append(not_supported_error(path.child("type"), source.type, HOST_PATH_TYPES))
    return errors


def _validate_secret(source: SecretVolumeSource, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not source.secret_name:
        errors.append(required(path.child("secretName")))
    errors += validate_file_mode(source.default_mode, path)
    for index, item in enumerate(source.items or ()):
        errors += validate_key_to_path(item, path.child("items").index(index))
    return errors


def _validate_config_map(source: ConfigMapVolumeSource, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not source.name:
        errors.append(required(path.child("name")))
    errors += validate_file_mode(source.default_mode, path)
    for index, item in enumerate(source.items or ()):
        errors += validate_key_to_path(item, path.child("items").index(index))
    return errors


def validate_key_to_path(item: KeyToPath, path: Path) -> list[FieldError]:
    """One key of a ConfigMap or Secret as a file."""
    errors: list[FieldError] = []
    if not item.key:
        errors.append(required(path.child("key")))
    if not item.path:
        errors.append(required(path.child("path")))
    else:
        errors += validate_local_non_reserved_path(item.path, path.child("path"))
    return errors + validate_file_mode(item.mode, path, "mode")


def validate_downward_api_file(file: DownwardAPIVolumeFile, path: Path) -> list[FieldError]:
    """One field of the pod as a file."""
    errors: list[FieldError] = []
    if not file.path:
        errors.append(required(path.child("path")))
    else:
        errors += validate_local_non_reserved_path(file.path, path.child("path"))
    if file.field_ref is not None:
        errors += validate_object_field_selector(file.field_ref, VOLUME_FIELDS, path.child("fieldRef"))
        if file.resource_field_ref is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", detail))
    elif file.resource_field_ref is not None:
        at = path.child("resourceFieldRef")
        errors += validate_resource_field_selector(file.resource_field_ref, at, in_volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + validate_file_mode(file.mode, path, "mode")


def _validate_ephemeral(
    source: EphemeralVolumeSource, name: str, meta: ObjectMeta | None, path: Path
) -> list[FieldError]:
    template = source.volume_claim_template
    at = path.child("ephemeral", "volumeClaimTemplate")
    if template is None:
        errors = [required(at)]
    else:
        from .persistentvolumeclaim import validate_persistent_volume_claim_spec

        errors = validate_template_meta(template.metadata, at.child("metadata"))
        errors += validate_persistent_volume_claim_spec(template.spec or PersistentVolumeClaimSpec(), at.child("spec"))
    if meta is not None and meta.name and name:
        claim = f"{meta.name}-{name}"
        for problem in dns1123_subdomain(claim):
            errors.append(invalid(path.child("name"), name, f'PVC name "{claim}": {problem}'))
    return errors


def _validate_image(source: ImageVolumeSource, path: Path, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.is_pod and not source.reference:
        errors.append(required(path.child("reference")))
    return errors + validate_pull_policy(source.pull_policy, path.child("pullPolicy"))
