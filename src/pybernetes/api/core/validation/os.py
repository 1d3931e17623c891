"""Fields that a pod for one operating system must not set because they are for another."""

from __future__ import annotations

from typing import Final

from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ..containers import all_containers, all_containers_with_path
from ..v1.pod import PodSpec
from .capabilities import CAPABILITIES

_SYSTEMS: Final = ("linux", "windows")
_NOT_WINDOWS: Final = "cannot be set for a windows pod"
_NOT_LINUX: Final = "windows options cannot be set for a linux pod"

# Field and its name on the wire, in the order upstream looks at them.
_POD_SECURITY: Final = (
    ("app_armor_profile", "appArmorProfile"),
    ("se_linux_options", "seLinuxOptions"),
)
_POD_SECURITY_MORE: Final = (
    ("seccomp_profile", "seccompProfile"),
    ("fs_group", "fsGroup"),
    ("fs_group_change_policy", "fsGroupChangePolicy"),
    ("sysctls", "sysctls"),
)
_POD_SECURITY_USERS: Final = (
    ("run_as_user", "runAsUser"),
    ("run_as_group", "runAsGroup"),
    ("supplemental_groups", "supplementalGroups"),
    ("supplemental_groups_policy", "supplementalGroupsPolicy"),
    ("se_linux_change_policy", "seLinuxChangePolicy"),
)
_CONTAINER_SECURITY: Final = (
    ("app_armor_profile", "appArmorProfile"),
    ("se_linux_options", "seLinuxOptions"),
    ("seccomp_profile", "seccompProfile"),
    ("capabilities", "capabilities"),
    ("read_only_root_filesystem", "readOnlyRootFilesystem"),
    ("privileged", "privileged"),
    ("allow_privilege_escalation", "allowPrivilegeEscalation"),
    ("proc_mount", "procMount"),
    ("run_as_user", "runAsUser"),
    ("run_as_group", "runAsGroup"),
)


def validate_os(spec: PodSpec, path: Path) -> list[FieldError]:
    """A known system, and nothing that it does not have."""
    name = spec.os.name if spec.os is not None else None
    if not name:
        return [required(path.child("os", "name"))]
    if name == "linux":
        return _validate_linux(spec, path)
    if name == "windows":
        return _validate_windows(spec, path)
    return [not_supported(path.child("os"), name, _SYSTEMS)]


def _validate_linux(spec: PodSpec, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.security_context is not None and spec.security_context.windows_options is not None:
        errors.append(forbidden(path.child("securityContext", "windowsOptions"), _NOT_LINUX))
    for container, at in all_containers_with_path(spec, path):
        if container.security_context is not None and container.security_context.windows_options is not None:
            errors.append(forbidden(at.child("securityContext", "windowsOptions"), _NOT_LINUX))
    return errors


def _validate_windows(spec: PodSpec, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []

    def refuse(thing: object, fields: tuple[tuple[str, str], ...], at: Path) -> None:
        for field, wire in fields:
            value = getattr(thing, field)
            if value is not None and value is not False and value != []:
                errors.append(forbidden(at.child(wire), _NOT_WINDOWS))

    context, at = spec.security_context, path.child("securityContext")
    if context is not None:
        refuse(context, _POD_SECURITY, at)
        if spec.host_users is not None:
            errors.append(forbidden(path.child("hostUsers"), _NOT_WINDOWS))
        refuse(spec, (("host_pid", "hostPID"), ("host_ipc", "hostIPC")), path)
        refuse(context, _POD_SECURITY_MORE, at)
        if spec.share_process_namespace is not None:
            errors.append(forbidden(path.child("shareProcessNamespace"), _NOT_WINDOWS))
        refuse(context, _POD_SECURITY_USERS, at)
    for container, where in all_containers_with_path(spec, path):
        own = container.security_context
        if own is not None:
            for field, wire in _CONTAINER_SECURITY:
                if getattr(own, field) is not None:
                    errors.append(forbidden(where.child("securityContext", wire), _NOT_WINDOWS))
    return errors


def validate_windows_host_process(spec: PodSpec, path: Path) -> list[FieldError]:
    """Either all containers are processes of a Windows host or none."""
    context = spec.security_context
    whole = (
        context.windows_options.host_process if context is not None and context.windows_options is not None else None
    )
    if whole is None and not any(
        container.security_context is not None and container.security_context.windows_options is not None
        for container in all_containers(spec)
    ):
        return []
    errors: list[FieldError] = []
    count = processes = 0
    for container, at in all_containers_with_path(spec, path):
        count += 1
        options = container.security_context.windows_options if container.security_context is not None else None
        own = options.host_process if options is not None else None
        if whole is not None and own is not None and whole != own:
            detail = f"pod hostProcess value must be identical if both are specified, was {str(whole).lower()}"
            errors.append(invalid(at.child("securityContext", "windowsOptions", "hostProcess"), own, detail))
        processes += bool(own if own is not None else whole)
    if processes:
        if processes != count:
            detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
            errors.append(invalid(path, "", detail))
        if not spec.host_network:
            detail = "hostNetwork must be true if pod contains any hostProcess containers"
            errors.append(invalid(path.child("hostNetwork"), False, detail))
        if not CAPABILITIES.allow_privileged:
            errors.append(forbidden(path, "hostProcess containers are disallowed by cluster policy"))
    return errors
