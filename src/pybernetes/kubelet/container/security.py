"""Security contexts as the runtime wants them: who a container runs as, and what it may do.

The container's own settings take precedence over its pod's, field by field. A container with `runAsNonRoot` is refused
unless it is certain that its user is not root.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pybernetes.api import names
from pybernetes.api.core.containers import all_containers
from pybernetes.api.core.v1 import (
    Capabilities,
    Pod,
    PodSecurityContext,
    PodSpec,
    SeccompProfile,
    SecurityContext,
    SELinuxOptions,
)
from pybernetes.api.gocompat.quote import quote
from pybernetes.cri.hidden import MASKED_PATHS, READONLY_PATHS

from ..runtime.types import AnyContainer, full_name
from . import apparmor
from .config_error import ConfigError

if TYPE_CHECKING:
    from pybernetes.cri import v1 as cri

_CPUS: Final = "/sys/devices/system/cpu"


def effective(pod: Pod, container: AnyContainer) -> SecurityContext:
    """The security context in force for a container: its own fields, else its pod's."""
    own = container.security_context or SecurityContext()
    of_pod = (pod.spec.security_context if pod.spec else None) or PodSecurityContext()
    return SecurityContext(
        capabilities=own.capabilities,
        privileged=own.privileged,
        se_linux_options=own.se_linux_options or of_pod.se_linux_options,
        run_as_user=of_pod.run_as_user if own.run_as_user is None else own.run_as_user,
        run_as_group=of_pod.run_as_group if own.run_as_group is None else own.run_as_group,
        run_as_non_root=of_pod.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root,
        read_only_root_filesystem=own.read_only_root_filesystem,
        allow_privilege_escalation=own.allow_privilege_escalation,
        proc_mount=own.proc_mount,
        seccomp_profile=own.seccomp_profile or of_pod.seccomp_profile,
    )


def verify_non_root(pod: Pod, container: AnyContainer, image_uid: int | None, image_user: str) -> None:
    """Raises `ConfigError` if a container that must not run as root would, or could."""
    context = effective(pod, container)
    if not context.run_as_non_root:
        return
    where = f"(pod: {quote(full_name(pod))}, container: {container.name})"
    if context.run_as_user is not None:
        if context.run_as_user == 0:
            raise ConfigError(f"container's runAsUser breaks non-root policy {where}")
        return
    if image_uid is None:
        if image_user:
            raise ConfigError(
                f"container has runAsNonRoot and image has non-numeric user ({image_user}),"
                f" cannot verify user is non-root {where}"
            )
        return
    if image_uid == 0:
        raise ConfigError(f"container has runAsNonRoot and image will run as root {where}")
    if wrong := names.is_user_id(image_uid):
        raise ConfigError(
            f"container has runAsNonRoot and image has an invalid user id ({image_uid})."
            f" (Must be 1-({2**31 - 1})): {'; '.join(wrong)} {where}"
        )


def container_security(
    pod: Pod,
    container: AnyContainer,
    *,
    image_uid: int | None,
    image_user: str,
    seccomp_root: str,
    seccomp_default: bool,
    target_id: str = "",
) -> cri.LinuxContainerSecurityContext:
    """The CRI's security context of a container."""
    from pybernetes.cri import v1 as cri

    context = effective(pod, container)
    unmasked = context.proc_mount == "Unmasked"
    options: dict[str, Any] = {
        "namespace_options": namespaces(pod, target_id),
        "supplemental_groups": supplemental_groups(pod),
        "no_new_privs": context.allow_privilege_escalation is False,
        "masked_paths": [] if unmasked else masked_paths(),
        "readonly_paths": [] if unmasked else READONLY_PATHS,
        "seccomp": seccomp(context.seccomp_profile, seccomp_root, seccomp_default),
        "privileged": bool(context.privileged),
        "readonly_rootfs": bool(context.read_only_root_filesystem),
        "supplemental_groups_policy": groups_policy(pod),
    }
    if context.run_as_user is not None:
        options["run_as_user"] = cri.Int64Value(value=context.run_as_user)
    elif image_uid is not None:
        options["run_as_user"] = cri.Int64Value(value=image_uid)
    else:
        options["run_as_username"] = image_user
    if context.run_as_group is not None:
        options["run_as_group"] = cri.Int64Value(value=context.run_as_group)
    if context.capabilities is not None:
        options["capabilities"] = _capabilities(context.capabilities)
    if context.se_linux_options is not None:
        options["selinux_options"] = selinux(context.se_linux_options)
    return cri.LinuxContainerSecurityContext(**options, **_apparmor(pod, container))


def sandbox_security(pod: Pod) -> cri.LinuxSandboxSecurityContext:
    """The CRI's security context of a sandbox, which itself always runs with the runtime's seccomp profile."""
    from pybernetes.cri import v1 as cri

    spec = pod.spec or PodSpec()
    options: dict[str, Any] = {
        "privileged": any(each.security_context and each.security_context.privileged for each in all_containers(spec)),
        "seccomp": cri.SecurityProfile(profile_type=cri.SecurityProfile.RuntimeDefault),
        "namespace_options": namespaces(pod),
        "supplemental_groups": supplemental_groups(pod),
        "supplemental_groups_policy": groups_policy(pod),
    }
    context = spec.security_context or PodSecurityContext()
    if context.run_as_user is not None:
        options["run_as_user"] = cri.Int64Value(value=context.run_as_user)
    if context.run_as_group is not None:
        options["run_as_group"] = cri.Int64Value(value=context.run_as_group)
    if context.se_linux_options is not None:
        options["selinux_options"] = selinux(context.se_linux_options)
    return cri.LinuxSandboxSecurityContext(**options)


def namespaces(pod: Pod, target_id: str = "") -> cri.NamespaceOption:
    """Which namespaces are the pod's, the container's own, or the node's; `target_id` lends its processes.

    Users are always the node's: a pod that wants its own (`hostUsers: false`) is refused.
    """
    from pybernetes.cri import v1 as cri

    spec = pod.spec or PodSpec()
    pid = cri.CONTAINER
    if spec.host_pid:
        pid = cri.NODE
    elif spec.share_process_namespace:
        pid = cri.POD
    if spec.host_users is False:
        raise ConfigError("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
    options: dict[str, Any] = {
        "userns_options": cri.UserNamespace(mode=cri.NODE),
        "network": cri.NODE if spec.host_network else cri.POD,
        "ipc": cri.NODE if spec.host_ipc else cri.POD,
        "pid": pid,
    }
    if target_id and pid == cri.CONTAINER:
        options |= {"pid": cri.TARGET, "target_id": target_id}
    return cri.NamespaceOption(**options)


def supplemental_groups(pod: Pod) -> list[int]:
    """`fsGroup` first, then those that the pod names."""
    context = (pod.spec.security_context if pod.spec else None) or PodSecurityContext()
    own = [] if context.fs_group is None else [context.fs_group]
    return own + list(context.supplemental_groups or ())


def groups_policy(pod: Pod) -> int:
    """Whether groups of the image's `/etc/group` are added."""
    from pybernetes.cri import v1 as cri

    context = (pod.spec.security_context if pod.spec else None) or PodSecurityContext()
    return int(cri.Strict if context.supplemental_groups_policy == "Strict" else cri.Merge)


def seccomp(profile: SeccompProfile | None, root: str, runtime_default: bool) -> cri.SecurityProfile:
    """The seccomp profile; without one nothing is filtered, or by the runtime's if the node says so."""
    from pybernetes.cri import v1 as cri

    kind = profile.type if profile else ("RuntimeDefault" if runtime_default else "Unconfined")
    if kind == "RuntimeDefault":
        return cri.SecurityProfile(profile_type=cri.SecurityProfile.RuntimeDefault)
    if kind == "Localhost":
        if profile is None or not profile.localhost_profile:
            raise ConfigError("localhostProfile must be set if seccompProfile type is Localhost.")
        path = os.path.normpath(os.path.join(root, profile.localhost_profile.lstrip("/")))
        return cri.SecurityProfile(profile_type=cri.SecurityProfile.Localhost, localhost_ref=path)
    return cri.SecurityProfile(profile_type=cri.SecurityProfile.Unconfined)


def selinux(options: SELinuxOptions) -> cri.SELinuxOption:
    """SELinux labels, for a runtime that knows them."""
    from pybernetes.cri import v1 as cri

    return cri.SELinuxOption(
        user=options.user or "", role=options.role or "", type=options.type or "", level=options.level or ""
    )


@cache
def masked_paths() -> tuple[str, ...]:
    """The paths of /proc and /sys that are hidden from containers, as far as they exist."""
    try:
        cpus = sorted(name for name in os.listdir(_CPUS) if re.fullmatch(r"cpu\d+", name))
    except OSError:
        cpus = []
    throttles = [f"{_CPUS}/{cpu}/thermal_throttle" for cpu in cpus]
    return MASKED_PATHS + tuple(path for path in throttles if os.path.exists(path))


def _capabilities(found: Capabilities) -> cri.Capability:
    from pybernetes.cri import v1 as cri

    return cri.Capability(add_capabilities=found.add or (), drop_capabilities=found.drop or ())


def _apparmor(pod: Pod, container: AnyContainer) -> dict[str, Any]:
    from pybernetes.cri import v1 as cri

    profile = apparmor.profile_of(pod, container)
    if profile is None:
        return {}
    match profile.type:
        case "RuntimeDefault":
            kind, reference, old = cri.SecurityProfile.RuntimeDefault, "", apparmor.RUNTIME_DEFAULT
        case "Unconfined":
            kind, reference, old = cri.SecurityProfile.Unconfined, "", apparmor.UNCONFINED
        case "Localhost":
            if profile.localhost_profile is None:
                raise ConfigError("missing localhost apparmor profile name")
            reference = profile.localhost_profile
            kind, old = cri.SecurityProfile.Localhost, f"{apparmor.LOCALHOST}{reference}"
        case _:
            raise ConfigError(f"unknown apparmor profile type: {quote(profile.type or '')}")
    return {"apparmor": cri.SecurityProfile(profile_type=kind, localhost_ref=reference), "apparmor_profile": old}
