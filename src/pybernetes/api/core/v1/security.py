"""core/v1: security.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ...base import Struct
from ...types import Always, Enum, Int64, ListType, Pointer, Required, Union


class SecurityContext(Struct):
    capabilities: Capabilities | None = None
    privileged: Annotated[bool | None, Pointer] = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Annotated[Int64 | None, Pointer] = None
    run_as_group: Annotated[Int64 | None, Pointer] = None
    run_as_non_root: Annotated[bool | None, Pointer] = None
    read_only_root_filesystem: Annotated[bool | None, Pointer] = None
    allow_privilege_escalation: Annotated[bool | None, Pointer] = None
    proc_mount: Annotated[str | None, Pointer, Enum("Default", "Unmasked")] = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None


class PodSecurityContext(Struct):
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Annotated[Int64 | None, Pointer] = None
    run_as_group: Annotated[Int64 | None, Pointer] = None
    run_as_non_root: Annotated[bool | None, Pointer] = None
    supplemental_groups: Annotated[list[Int64] | None, ListType("atomic")] = None
    supplemental_groups_policy: Annotated[str | None, Pointer, Enum("Merge", "Strict")] = None
    fs_group: Annotated[Int64 | None, Pointer] = None
    sysctls: Annotated[list[Sysctl] | None, ListType("atomic")] = None
    fs_group_change_policy: Annotated[str | None, Pointer, Enum("Always", "OnRootMismatch")] = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    se_linux_change_policy: Annotated[str | None, Pointer] = None


class AppArmorProfile(Struct):
    union: ClassVar = Union("type", {"localhostProfile": "LocalhostProfile"})

    type: Annotated[str | None, Required, Always(""), Enum("Localhost", "RuntimeDefault", "Unconfined")] = None
    localhost_profile: Annotated[str | None, Pointer] = None


class Capabilities(Struct):
    add: Annotated[list[str] | None, ListType("atomic")] = None
    drop: Annotated[list[str] | None, ListType("atomic")] = None


class SELinuxOptions(Struct):
    user: str | None = None
    role: str | None = None
    type: str | None = None
    level: str | None = None


class SeccompProfile(Struct):
    union: ClassVar = Union("type", {"localhostProfile": "LocalhostProfile"})

    type: Annotated[str | None, Required, Always(""), Enum("Localhost", "RuntimeDefault", "Unconfined")] = None
    localhost_profile: Annotated[str | None, Pointer] = None


class Sysctl(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    value: Annotated[str | None, Required, Always("")] = None


class WindowsSecurityContextOptions(Struct):
    gmsa_credential_spec_name: Annotated[str | None, Pointer] = None
    gmsa_credential_spec: Annotated[str | None, Pointer] = None
    run_as_user_name: Annotated[str | None, Pointer] = None
    host_process: Annotated[bool | None, Pointer] = None
