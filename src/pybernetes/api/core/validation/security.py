"""Security contexts of pods and containers: users, seccomp, AppArmor, sysctls, Windows options."""

from __future__ import annotations

import re
from typing import Final

from ...field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required, too_long
from ...names import is_group_id
from ..containers import all_containers_with_path
from ..v1.pod import PodSpec
from ..v1.security import (
    AppArmorProfile,
    PodSecurityContext,
    SeccompProfile,
    SecurityContext,
    Sysctl,
    WindowsSecurityContextOptions,
)
from .capabilities import CAPABILITIES
from .common import InternalForm, dns1123_subdomain, validate_id, validate_local_descending_path
from .options import PodOptions, is_host_sysctl, sysctl_namespace

_EMPTY: Final = PodSecurityContext()
_PROFILE_TYPES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_MAX_APPARMOR_PROFILE: Final = 4095
_MAX_SYSCTL: Final = 253
_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL: Final = rf"^({_SEGMENT}[\./])*{_SEGMENT}$"
_is_sysctl = re.compile(_SYSCTL).fullmatch

_MAX_GMSA_KIB: Final = 64
_MAX_WINDOWS_DOMAIN: Final = 256
_MAX_WINDOWS_USER: Final = 104
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NET_BIOS: Final = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS: Final = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_BAD_USER: Final = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_DOTS: Final = re.compile(r"[. ]+")


def validate_container_security_context(context: SecurityContext, host_users: bool, path: Path) -> list[FieldError]:
    """Validate the security context of one container."""
    errors = []
    if context.privileged and not CAPABILITIES.allow_privileged:
        errors.append(forbidden(path.child("privileged"), "disallowed by cluster policy"))
    errors += validate_id(context.run_as_user, path, "runAsUser")
    errors += validate_id(context.run_as_group, path, "runAsGroup")
    mount = context.proc_mount
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            errors.append(not_supported(path.child("procMount"), mount, ("Default", "Unmasked")))
        if host_users and mount == "Unmasked":
            detail = "`hostUsers` must be false to use `Unmasked`"
            errors.append(invalid(path.child("procMount"), mount, detail))
    if context.seccomp_profile is not None:
        errors += _validate_seccomp(context.seccomp_profile, path.child("seccompProfile"))
    if context.allow_privilege_escalation is False:
        if context.privileged:
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(path, InternalForm(context), detail))
        if context.capabilities is not None and "CAP_SYS_ADMIN" in (context.capabilities.add or ()):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(path, InternalForm(context), detail))
    if context.windows_options is not None:
        errors += _validate_windows_options(context.windows_options, path.child("windowsOptions"))
    if context.app_armor_profile is not None:
        errors += validate_app_armor_profile(context.app_armor_profile, path.child("appArmorProfile"))
    return errors


def validate_pod_security_context(
    context: PodSecurityContext, spec: PodSpec, path: Path, options: PodOptions
) -> list[FieldError]:
    """Validate the security context of a pod."""
    if context == _EMPTY and not spec.share_process_namespace:
        return []
    errors = validate_id(context.fs_group, path, "fsGroup")
    errors += validate_id(context.run_as_user, path, "runAsUser")
    errors += validate_id(context.run_as_group, path, "runAsGroup")
    for index, group in enumerate(context.supplemental_groups or ()):
        errors += _validate_group(group, path.child("supplementalGroups").index(index))
    if spec.share_process_namespace and spec.host_pid:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(path.child("shareProcessNamespace"), True, detail))
    if context.sysctls:
        errors += _validate_sysctls(context.sysctls, spec, path.child("sysctls"), options)
    errors += _validate_choice(
        context.fs_group_change_policy, ("Always", "OnRootMismatch"), path, "fsGroupChangePolicy"
    )
    if context.seccomp_profile is not None:
        errors += _validate_seccomp(context.seccomp_profile, path.child("seccompProfile"))
    if context.windows_options is not None:
        errors += _validate_windows_options(context.windows_options, path.child("windowsOptions"))
    if context.app_armor_profile is not None:
        errors += validate_app_armor_profile(context.app_armor_profile, path.child("appArmorProfile"))
    groups = context.supplemental_groups_policy
    errors += _validate_choice(groups, ("Merge", "Strict"), path, "supplementalGroupsPolicy")
    policies = ("MountOption", "Recursive") if options.any_selinux_change_policy else ("Recursive",)
    errors += _validate_choice(context.se_linux_change_policy, policies, path, "seLinuxChangePolicy")
    return errors


def _validate_choice(value: str | None, supported: tuple[str, ...], path: Path, name: str) -> list[FieldError]:
    return [] if value is None or value in supported else [not_supported(path.child(name), value, supported)]


def _validate_group(group: int, path: Path) -> list[FieldError]:
    return [invalid(path, group, problem) for problem in is_group_id(group)]


def _validate_sysctls(sysctls: list[Sysctl], spec: PodSpec, path: Path, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, each in enumerate(sysctls):
        name, at = each.name or "", path.index(index).child("name")
        if not name:
            errors.append(required(at))
        elif len(name) > _MAX_SYSCTL or not _is_sysctl(name):
            detail = f"must have at most {_MAX_SYSCTL} characters and match regex {_SYSCTL}"
            errors.append(invalid(at, name, detail))
        elif name in seen:
            errors.append(duplicate(at, name))
        if not options.host_sysctls and is_host_sysctl(name, spec):
            field = "hostNetwork" if sysctl_namespace(name) == "net" else "hostIPC"
            errors.append(invalid(at, name, f"may not be specified when '{field}' is true"))
        seen.add(name)
    return errors


def _validate_seccomp(profile: SeccompProfile, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not profile.type:
        errors.append(required(path.child("type"), "type is required when seccompProfile is set"))
    elif profile.type not in _PROFILE_TYPES:
        errors.append(not_supported(path.child("type"), profile.type, _PROFILE_TYPES))
    at = path.child("localhostProfile")
    if profile.type == "Localhost":
        if profile.localhost_profile is None:
            errors.append(required(at, "must be set when seccomp type is Localhost"))
        else:
            errors += validate_local_descending_path(profile.localhost_profile, at)
    elif profile.localhost_profile is not None:
        errors.append(invalid(at, InternalForm(profile), "can only be set when seccomp type is Localhost"))
    return errors


def validate_app_armor_profile(profile: AppArmorProfile, path: Path) -> list[FieldError]:
    """Which AppArmor profile confines a container."""
    at, local = path.child("localhostProfile"), profile.localhost_profile
    if not profile.type:
        return [required(path.child("type"), "type is required when appArmorProfile is set")]
    if profile.type not in _PROFILE_TYPES:
        return [not_supported(path.child("type"), profile.type, _PROFILE_TYPES)]
    if profile.type != "Localhost":
        if local is None:
            return []
        return [invalid(at, local, "can only be set when AppArmor type is Localhost")]
    if local is None:
        return [required(at, "must be set when AppArmor type is Localhost")]
    errors: list[FieldError] = []
    if local.strip() != local:
        errors.append(invalid(at, local, "must not be padded with whitespace"))
    elif not local:
        errors.append(required(at, "must be set when AppArmor type is Localhost"))
    if len(local.encode()) > _MAX_APPARMOR_PROFILE:
        errors.append(too_long(at, "", _MAX_APPARMOR_PROFILE))
    return errors


def _validate_windows_options(options: WindowsSecurityContextOptions, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    name, spec = options.gmsa_credential_spec_name, options.gmsa_credential_spec
    if name is not None:
        at = path.child("gmsaCredentialSpecName")
        errors += [invalid(at, name, problem) for problem in dns1123_subdomain(name)]
    if spec is not None:
        at = path.child("gmsaCredentialSpec")
        if not spec:
            errors.append(invalid(at, spec, "gmsaCredentialSpec cannot be an empty string"))
        elif len(spec.encode()) > _MAX_GMSA_KIB * 1024:
            errors.append(invalid(at, spec, f"gmsaCredentialSpec size must be under {_MAX_GMSA_KIB} KiB"))
    if options.run_as_user_name is not None:
        for problem in _user_name_problems(options.run_as_user_name):
            errors.append(
                invalid(path.child("runAsUserName"), InternalForm(options.run_as_user_name), f"runAsUserName{problem}")
            )
    return errors


def _user_name_problems(name: str) -> list[str]:
    if not name:
        return [" cannot be an empty string"]
    if _CONTROL.search(name):
        return [" cannot contain control characters"]
    parts = name.split("\\")
    if len(parts) > 2:
        return [" cannot contain more than one backslash"]
    problems: list[str] = []
    domain, user = (parts[0], parts[1]) if len(parts) == 2 else (None, parts[0])
    if domain is not None:
        if len(domain) >= _MAX_WINDOWS_DOMAIN:
            problems.append(f"'s Domain length must be under {_MAX_WINDOWS_DOMAIN} characters")
        if not (_NET_BIOS.fullmatch(domain) or _DNS.fullmatch(domain)):
            problems.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        problems.append("'s User cannot be empty")
    elif len(user) > _MAX_WINDOWS_USER:
        problems.append(f"'s User length must not be longer than {_MAX_WINDOWS_USER} characters")
    if _DOTS.fullmatch(user):
        problems.append("'s User cannot contain only periods or spaces")
    if _BAD_USER.search(user):
        problems.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return problems


def validate_host_users(spec: PodSpec, path: Path, options: PodOptions) -> list[FieldError]:
    """A pod with users of its own cannot share the host's other namespaces."""
    if spec.host_users is not False:
        return []
    errors: list[FieldError] = []
    detail = "when `hostUsers` is false"
    if spec.host_network and not options.host_network_in_user_namespace:
        errors.append(forbidden(path.child("hostNetwork"), detail))
    if spec.host_pid:
        errors.append(forbidden(path.child("HostPID"), detail))
    if spec.host_ipc:
        errors.append(forbidden(path.child("HostIPC"), detail))
    if not options.devices_in_user_namespace:
        for container, at in all_containers_with_path(spec, path):
            if container.volume_devices:
                errors.append(forbidden(at.child("volumeDevices"), detail))
    return errors
