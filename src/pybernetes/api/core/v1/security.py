"""core/v1: security.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ...base import Struct
from ...types import Always, Enum, Int64, ListType, Required, Union


class SecurityContext(Struct):
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: Annotated[str | None, Enum("Default", "Unmasked")] = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None


class PodSecurityContext(Struct):
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: Annotated[list[Int64] | None, ListType("atomic")] = None
    supplemental_groups_policy: Annotated[str | None, Enum("Merge", "Strict")] = None
    fs_group: Int64 | None = None
    sysctls: Annotated[list[Sysctl] | None, ListType("atomic")] = None
    fs_group_change_policy: Annotated[str | None, Enum("Always", "OnRootMismatch")] = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    se_linux_change_policy: str | None = None


class AppArmorProfile(Struct):
    union: ClassVar = Union("type", {"localhostProfile": "LocalhostProfile"})

    type: Annotated[str | None, Required, Always(""), Enum("Localhost", "RuntimeDefault", "Unconfined")] = None
    localhost_profile: str | None = None


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
    localhost_profile: str | None = None


class Sysctl(Struct):
    name: Annotated[str | None, Required, Always("")] = None
    value: Annotated[str | None, Required, Always("")] = None


class WindowsSecurityContextOptions(Struct):
    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: bool | None = None
