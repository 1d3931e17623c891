"""Defaults for the volumes of a pod."""

from __future__ import annotations

from typing import Final

from ...quantity import canonicalize
from ..image import default_pull_policy
from ..v1.env import ObjectFieldSelector, ResourceFieldSelector
from ..v1.persistentvolumeclaim import (
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
)
from ..v1.volume import DownwardAPIVolumeFile, ProjectedVolumeSource, Volume
from ..v1.volumesource import EmptyDirVolumeSource
from .resources import default_resource_list

MODE: Final = 0o644
TOKEN_SECONDS: Final = 3600


def default_volume(volume: Volume) -> None:
    """A volume without a source is an empty directory; files are readable to all."""
    if volume.empty_dir is not None:
        if volume.empty_dir.size_limit is not None:
            volume.empty_dir.size_limit = canonicalize(volume.empty_dir.size_limit)
    elif volume.secret is not None:
        if volume.secret.default_mode is None:
            volume.secret.default_mode = MODE
    elif volume.host_path is not None:
        if volume.host_path.type is None:
            volume.host_path.type = ""
    elif volume.persistent_volume_claim is None:
        _default_others(volume)


def default_object_field_selector(selector: ObjectFieldSelector) -> None:
    """A field of the v1 API."""
    if not selector.api_version:
        selector.api_version = "v1"


def default_resource_field_selector(selector: ResourceFieldSelector) -> None:
    """The unset divisor is written as 0 and means 1."""
    selector.divisor = "0" if selector.divisor is None else canonicalize(selector.divisor)


def _default_files(files: list[DownwardAPIVolumeFile] | None) -> None:
    for file in files or ():
        if file.field_ref is not None:
            default_object_field_selector(file.field_ref)
        if file.resource_field_ref is not None:
            default_resource_field_selector(file.resource_field_ref)


def _default_projected(projected: ProjectedVolumeSource) -> None:
    if projected.default_mode is None:
        projected.default_mode = MODE
    for source in projected.sources or ():
        if source.service_account_token is not None and source.service_account_token.expiration_seconds is None:
            source.service_account_token.expiration_seconds = TOKEN_SECONDS
        if source.downward_api is not None:
            _default_files(source.downward_api.items)


def _default_others(volume: Volume) -> None:
    """More than one source is an error, which upstream reports only for a source that is set."""
    if volume.config_map is not None and volume.config_map.default_mode is None:
        volume.config_map.default_mode = MODE
    if volume.downward_api is not None:
        if volume.downward_api.default_mode is None:
            volume.downward_api.default_mode = MODE
        _default_files(volume.downward_api.items)
    if volume.projected is not None:
        _default_projected(volume.projected)
    if volume.config_map is None:
        _default_seldom(volume)


def _default_seldom(volume: Volume) -> None:
    if volume.image is not None and not volume.image.pull_policy:
        volume.image.pull_policy = default_pull_policy(volume.image.reference)
    if volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
        _default_claim_template(volume.ephemeral.volume_claim_template)
    if volume.iscsi is not None:
        volume.iscsi.iscsi_interface = volume.iscsi.iscsi_interface or "default"
    if volume.rbd is not None:
        volume.rbd.pool = volume.rbd.pool or "rbd"
        volume.rbd.user = volume.rbd.user or "admin"
        volume.rbd.keyring = volume.rbd.keyring or "/etc/ceph/keyring"
    if volume.azure_disk is not None:
        disk = volume.azure_disk
        disk.caching_mode = "ReadWrite" if disk.caching_mode is None else disk.caching_mode
        disk.fs_type = "ext4" if disk.fs_type is None else disk.fs_type
        disk.read_only = False if disk.read_only is None else disk.read_only
        disk.kind = "Shared" if disk.kind is None else disk.kind
    if volume.scale_io is not None:
        volume.scale_io.storage_mode = volume.scale_io.storage_mode or "ThinProvisioned"
        volume.scale_io.fs_type = volume.scale_io.fs_type or "xfs"
    if not has_source(volume):
        volume.empty_dir = EmptyDirVolumeSource()


def _default_claim_template(template: PersistentVolumeClaimTemplate) -> None:
    if template.spec is None:
        template.spec = PersistentVolumeClaimSpec()
    spec = template.spec
    if spec.volume_mode is None:
        spec.volume_mode = "Filesystem"
    if spec.resources is not None:
        default_resource_list(spec.resources.limits)
        default_resource_list(spec.resources.requests)


def has_source(volume: Volume) -> bool:
    """Whether the volume says where it comes from."""
    return any(getattr(volume, name) is not None for name in volume.__struct_fields__ if name != "name")
