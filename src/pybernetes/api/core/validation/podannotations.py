"""Annotations that mean something to pods: mirrors, seccomp and AppArmor from before they had fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ...field import FieldError, Path, forbidden, invalid
from ...gocompat.quote import quote
from ...meta.v1.objectmeta import ObjectMeta
from ..containers import all_containers, all_containers_with_path
from ..v1.affinity import Toleration
from ..v1.pod import Pod, PodSpec
from ..v1.security import AppArmorProfile, SeccompProfile
from .common import validate_local_descending_path
from .options import DELETION_COST, PodOptions, is_deletion_cost
from .podspec import MIRROR_POD
from .scheduling import validate_tolerations

TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_LOCALHOST: Final = "localhost/"
_RUNTIME_DEFAULT: Final = "runtime/default"
_DOCKER_DEFAULT: Final = "docker/default"
_UNCONFINED: Final = "unconfined"


def validate_pod_annotations(
    annotations: Mapping[str, str] | None, spec: PodSpec, path: Path, options: PodOptions
) -> list[FieldError]:
    """The meaning of annotations; their form is checked with the rest of the metadata."""
    if not annotations:
        return []
    errors: list[FieldError] = []
    if MIRROR_POD in annotations and not spec.node_name:
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(path.key(MIRROR_POD), annotations[MIRROR_POD], detail))
    if annotations.get(TOLERATIONS):
        errors += _validate_tolerations(annotations[TOLERATIONS], path, options)
    if not options.invalid_deletion_cost and not is_deletion_cost(annotations.get(DELETION_COST)):
        errors.append(invalid(path.key(DELETION_COST), annotations[DELETION_COST], "must be a 32bit integer"))
    for key, value in annotations.items():
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            errors += _validate_seccomp(value, path.child(key))
        elif key.startswith(APP_ARMOR):
            name = key.removeprefix(APP_ARMOR)
            if name not in {container.name for container in all_containers(spec)}:
                errors.append(invalid(path.key(key), name, "container not found"))
            if value not in ("", _RUNTIME_DEFAULT, _UNCONFINED) and not value.startswith(_LOCALHOST):
                errors.append(invalid(path.key(key), value, f"invalid AppArmor profile name: {quote(value)}"))
    return errors


def validate_pod_annotations_update(new: Pod, old: Pod, path: Path, options: PodOptions) -> list[FieldError]:
    """Some annotations stay what they were when the pod was made."""
    errors: list[FieldError] = []
    after = (new.metadata.annotations if new.metadata is not None else None) or {}
    before = (old.metadata.annotations if old.metadata is not None else None) or {}
    if after != before:
        for key, value in before.items():
            if after.get(key) != value:
                if key.startswith(APP_ARMOR):
                    errors.append(forbidden(path.key(key), "may not remove or update AppArmor annotations"))
                if key == MIRROR_POD:
                    errors.append(forbidden(path.key(key), "may not remove or update mirror pod annotation"))
        for key in after:
            if key not in before:
                if key.startswith(APP_ARMOR):
                    errors.append(forbidden(path.key(key), "may not add AppArmor annotations"))
                if key == MIRROR_POD:
                    errors.append(forbidden(path.key(key), "may not add mirror pod annotation"))
    return errors + validate_pod_annotations(after, new.spec or PodSpec(), path, options)


def _validate_tolerations(text: str, path: Path, options: PodOptions) -> list[FieldError]:
    try:
        tolerations = msgspec.json.decode(text, type=list[Toleration])
    except (msgspec.DecodeError, ValueError) as error:
        return [invalid(path, TOLERATIONS, str(error))]
    return validate_tolerations(tolerations, path.child(TOLERATIONS), comparing=options.comparing_tolerations)


def _validate_seccomp(value: str, path: Path) -> list[FieldError]:
    if value in (_RUNTIME_DEFAULT, _DOCKER_DEFAULT, _UNCONFINED):
        return []
    if value.startswith(_LOCALHOST):
        return validate_local_descending_path(value.removeprefix(_LOCALHOST), path)
    return [invalid(path, value, "must be a valid seccomp profile")]


def validate_annotations_match_fields(meta: ObjectMeta | None, spec: PodSpec, path: Path) -> list[FieldError]:
    """An annotation and the field that replaced it must not differ."""
    annotations = meta.annotations if meta is not None else None
    if not annotations or not any(
        key == SECCOMP_POD or key.startswith((SECCOMP_CONTAINER, APP_ARMOR)) for key in annotations
    ):
        return []
    errors: list[FieldError] = []
    context = spec.security_context
    whole = context.seccomp_profile if context is not None else None
    if whole is not None and SECCOMP_POD in annotations:
        at = path.child("securityContext", "seccompProfile")
        errors += _compare_seccomp(annotations[SECCOMP_POD], whole, at)
    for container, at in all_containers_with_path(spec, path):
        own = container.security_context
        profile = own.seccomp_profile if own is not None else None
        value = annotations.get(f"{SECCOMP_CONTAINER}{container.name}")
        if profile is not None and value is not None:
            errors += _compare_seccomp(value, profile, at.child("securityContext", "seccompProfile"))
    if spec.os is not None and spec.os.name == "windows":
        return errors
    pod_profile = context.app_armor_profile if context is not None else None
    for container, at in all_containers_with_path(spec, path):
        own = container.security_context
        armor = own.app_armor_profile if own is not None and own.app_armor_profile is not None else pod_profile
        value = annotations.get(f"{APP_ARMOR}{container.name}")
        if armor is not None and value is not None:
            errors += _compare_app_armor(value, armor, at.child("securityContext", "appArmorProfile"))
    return errors


def _compare_seccomp(value: str, profile: SeccompProfile, path: Path) -> list[FieldError]:
    allowed = {"Unconfined": (_UNCONFINED,), "RuntimeDefault": (_RUNTIME_DEFAULT, _DOCKER_DEFAULT)}
    return _compare(value, profile, allowed, "seccomp", path)


def _compare_app_armor(value: str, profile: AppArmorProfile, path: Path) -> list[FieldError]:
    allowed = {"Unconfined": (_UNCONFINED,), "RuntimeDefault": (_RUNTIME_DEFAULT,)}
    return _compare(value, profile, allowed, "apparmor", path)


def _compare(
    value: str, profile: SeccompProfile | AppArmorProfile, allowed: Mapping[str, tuple[str, ...]], what: str, path: Path
) -> list[FieldError]:
    kind = profile.type or ""
    if kind in allowed:
        matches = value in allowed[kind]
    elif kind == "Localhost":
        matches = value.startswith(_LOCALHOST)
        if matches and value.removeprefix(_LOCALHOST) != profile.localhost_profile:
            return [forbidden(path.child("localhostProfile"), f"{what} profile in annotation and field must match")]
    else:
        return []
    return [] if matches else [forbidden(path.child("type"), f"{what} type in annotation and field must match")]


def app_armor_from_annotation(value: str) -> AppArmorProfile | None:
    """The field an old annotation stands for; None if for none."""
    if value == _UNCONFINED:
        return AppArmorProfile(type="Unconfined")
    if value == _RUNTIME_DEFAULT:
        return AppArmorProfile(type="RuntimeDefault")
    profile = value.removeprefix(_LOCALHOST)
    return AppArmorProfile(type="Localhost", localhost_profile=profile) if profile and profile != value else None
