"""Volumes that are put together from several sources: the paths of their files must not collide."""

from __future__ import annotations

from ...field import FieldError, Path, forbidden, invalid, required
from ..v1.volume import KeyToPath, ProjectedVolumeSource, ServiceAccountTokenProjection, VolumeProjection
from .common import validate_file_mode, validate_local_non_reserved_path
from .options import PodOptions
from .volumes import validate_downward_api_file, validate_key_to_path

_MIN_TOKEN_SECONDS = 600
_MAX_TOKEN_SECONDS = 1 << 32


def validate_projected(source: ProjectedVolumeSource, path: Path, options: PodOptions) -> list[FieldError]:
    """All sources, each of exactly one kind."""
    errors = validate_file_mode(source.default_mode, path)
    paths: set[str] = set()
    for index, projection in enumerate(source.sources or ()):
        errors += _validate_projection(projection, path, path.child("sources").index(index), paths, options)
    return errors


def _validate_projection(
    projection: VolumeProjection, volume: Path, path: Path, paths: set[str], options: PodOptions
) -> list[FieldError]:
    errors: list[FieldError] = []
    count = 0
    for wire, source in (("secret", projection.secret), ("configMap", projection.config_map)):
        if source is not None:
            count += 1
            errors += _validate_keys(source.name or "", source.items or [], volume, path.child(wire), paths)
    if projection.downward_api is not None:
        count += 1
        for file in projection.downward_api.items or ():
            errors += validate_downward_api_file(file, path.child("downwardAPI"))
            _claim(file.path, file.path or "", volume, paths, errors)
    if projection.service_account_token is not None:
        count += 1
        errors += _validate_token(projection.service_account_token, volume, path.child("serviceAccountToken"), options)
    if count > 1:
        errors.append(forbidden(path, "may not specify more than 1 volume type per source"))
    return errors


def _validate_keys(name: str, items: list[KeyToPath], volume: Path, path: Path, paths: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    if not name:
        errors.append(required(path.child("name")))
    for index, item in enumerate(items):
        errors += validate_key_to_path(item, path.child("items").index(index))
        _claim(item.path, name, volume, paths, errors)
    return errors


def _claim(file: str | None, owner: str, volume: Path, paths: set[str], errors: list[FieldError]) -> None:
    """Record a path; an error if another source has it."""
    if file:
        if file in paths:
            errors.append(invalid(volume, owner, "conflicting duplicate paths"))
        paths.add(file)


def _validate_token(
    token: ServiceAccountTokenProjection, volume: Path, path: Path, options: PodOptions
) -> list[FieldError]:
    errors: list[FieldError] = []
    seconds = token.expiration_seconds or 0
    if seconds < _MIN_TOKEN_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
        errors.append(invalid(path.child("expirationSeconds"), seconds, detail))
    if seconds > _MAX_TOKEN_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(path.child("expirationSeconds"), seconds, detail))
    if not token.path:
        errors.append(required(volume.child("path")))
    elif not options.non_local_token_path:
        errors += validate_local_non_reserved_path(token.path, volume.child("path"))
    return errors
