"""The checks of the level baseline: what lets a pod out of its sandbox."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.core.containers import AnyContainer, all_containers
from pybernetes.api.core.v1 import PodSpec
from pybernetes.api.gocompat.quote import quote

from .wording import Annotations, Judge, Violation, named, offending, plural, quoted, setters

_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_CAPABILITIES: Final = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
SYSCTLS: Final = {
    0: (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ),
    27: ("net.ipv4.ip_local_reserved_ports",),
    29: (
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ),
    32: ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
}
"""The sysctls that are safe, by the release from which on they are."""
SE_LINUX: Final = ("", "container_t", "container_init_t", "container_kvm_t")
_PROFILES: Final = ("RuntimeDefault", "Localhost")


def app_armor(annotations: Annotations, spec: PodSpec) -> Violation | None:
    """AppArmor stays on, as the runtime or the node has it."""
    values: set[str] = set()

    def wrong(context: Any) -> bool:
        profile = context.app_armor_profile if context is not None else None
        if profile is None or profile.type in _PROFILES:
            return False
        values.add(profile.type or "")
        return True

    pod = wrong(spec.security_context)
    who = [setters(pod, offending(spec, lambda each: wrong(each.security_context)))]
    shown = sorted(values)
    notes = sorted(
        f"{key}={quote(value)}"
        for key, value in annotations.items()
        if key.startswith(_APP_ARMOR) and value and value != "runtime/default" and not value.startswith("localhost/")
    )
    if notes:
        shown += notes
        who.append(plural("annotation", notes))
    if not any(who):
        return None
    short = plural("forbidden AppArmor profile", shown)
    said = " and ".join(each for each in who if each)
    return short, f"{said} must not set AppArmor profile type to {quoted(shown)}"


def capabilities(_: Annotations, spec: PodSpec) -> Violation | None:
    """No capabilities beyond those that runtimes give by default."""
    added: set[str] = set()

    def wrong(container: AnyContainer) -> bool:
        context = container.security_context
        wanted = context.capabilities.add if context is not None and context.capabilities is not None else None
        more = set(wanted or ()) - _CAPABILITIES
        added.update(more)
        return bool(more)

    bad = offending(spec, wrong)
    if not bad:
        return None
    text = f"{named(bad)} must not include {quoted(sorted(added))} in securityContext.capabilities.add"
    return "non-default capabilities", text


def host_namespaces(_: Annotations, spec: PodSpec) -> Violation | None:
    """None of the node's namespaces."""
    flags = (("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc))
    used = [f"{name}=true" for name, value in flags if value]
    return ("host namespaces", ", ".join(used)) if used else None


def host_path(_: Annotations, spec: PodSpec) -> Violation | None:
    """None of the node's folders."""
    bad = [each.name or "" for each in spec.volumes or () if each.host_path is not None]
    return ("hostPath volumes", f"{plural('volume', bad)} {quoted(bad)}") if bad else None


def host_ports(_: Annotations, spec: PodSpec) -> Violation | None:
    """None of the node's ports."""
    ports: set[str] = set()

    def wrong(container: AnyContainer) -> bool:
        used = {str(each.host_port) for each in container.ports or () if each.host_port}
        ports.update(used)
        return bool(used)

    bad = offending(spec, wrong)
    if not bad:
        return None
    uses = plural("uses", bad, "use")
    return "hostPort", f"{named(bad)} {uses} {plural('hostPort', ports)} {', '.join(sorted(ports))}"


def probe_hosts(_: Annotations, spec: PodSpec) -> Violation | None:
    """Probes and hooks ask the pod itself, not others in its stead."""
    hosts: set[str] = set()

    def wrong(container: AnyContainer) -> bool:
        cycle = container.lifecycle
        handlers: list[Any] = [container.liveness_probe, container.readiness_probe, container.startup_probe]
        handlers += [cycle.post_start, cycle.pre_stop] if cycle is not None else []
        actions = [action for each in handlers if each is not None for action in (each.http_get, each.tcp_socket)]
        used = {each.host for each in actions if each is not None and each.host}
        hosts.update(used)
        return bool(used)

    bad = sorted(set(offending(spec, wrong)))
    if not bad:
        return None
    what = plural("probe or lifecycle host", hosts)
    return "probe or lifecycle host", f"{named(bad)} {plural('uses', bad, 'use')} {what} {quoted(sorted(hosts))}"


def privileged(_: Annotations, spec: PodSpec) -> Violation | None:
    """No privileged containers."""
    bad = offending(spec, lambda each: each.security_context is not None and bool(each.security_context.privileged))
    return ("privileged", f"{named(bad)} must not set securityContext.privileged=true") if bad else None


def proc_mount(_: Annotations, spec: PodSpec) -> Violation | None:
    """/proc is masked."""
    values: set[str] = set()

    def wrong(container: AnyContainer) -> bool:
        value = container.security_context.proc_mount if container.security_context is not None else None
        if value is None or value == "Default":
            return False
        values.add(value)
        return True

    bad = offending(spec, wrong)
    if not bad:
        return None
    return "procMount", f"{named(bad)} must not set securityContext.procMount to {quoted(sorted(values))}"


def se_linux(types: tuple[str, ...]) -> Judge:
    """SELinux types that confine, and no user or role."""

    def judge(_: Annotations, spec: PodSpec) -> Violation | None:
        bad_types: set[str] = set()
        fields: set[str] = set()

        def wrong(context: Any) -> bool:
            options = context.se_linux_options if context is not None else None
            if options is None:
                return False
            faults = {name for name in ("user", "role") if getattr(options, name)}
            fields.update(faults)
            if (options.type or "") not in types:
                bad_types.add(options.type)
                return True
            return bool(faults)

        pod = wrong(spec.security_context)
        who = setters(pod, offending(spec, lambda each: wrong(each.security_context)))
        if not who:
            return None
        data = [f"{plural('type', bad_types)} {quoted(sorted(bad_types))}"] if bad_types else []
        data += [f"{name} may not be set" for name in ("user", "role") if name in fields]
        return "seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"

    return judge


def seccomp_annotations(annotations: Annotations, spec: PodSpec) -> Violation | None:
    """Seccomp as it was said before there were fields for it."""
    keys = [_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{each.name}" for each in all_containers(spec))]
    bad = {
        f"{key}={quote(annotations[key])}"
        for key in keys
        if key in annotations
        and annotations[key] not in ("runtime/default", "docker/default")
        and not annotations[key].startswith("localhost/")
    }
    return ("seccompProfile", f"forbidden {plural('annotation', bad)} {', '.join(sorted(bad))}") if bad else None


def seccomp(_: Annotations, spec: PodSpec) -> Violation | None:
    """Seccomp is not switched off."""
    values: set[str] = set()

    def wrong(context: Any) -> bool:
        profile = context.seccomp_profile if context is not None else None
        if profile is None or profile.type in _PROFILES:
            return False
        values.add(profile.type or "")
        return True

    pod = wrong(spec.security_context)
    who = setters(pod, offending(spec, lambda each: wrong(each.security_context)))
    if not who:
        return None
    return "seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {quoted(sorted(values))}"


def sysctls(minor: int) -> Judge:
    """Only namespaced sysctls that do not affect other pods."""
    safe = frozenset(name for since, names in SYSCTLS.items() if since <= minor for name in names)

    def judge(_: Annotations, spec: PodSpec) -> Violation | None:
        context = spec.security_context
        used = [each.name or "" for each in (context.sysctls if context is not None else None) or ()]
        bad = [each for each in used if each not in safe]
        return ("forbidden sysctls", ", ".join(bad)) if bad else None

    return judge


def windows_host_process(_: Annotations, spec: PodSpec) -> Violation | None:
    """No processes of the Windows node itself."""

    def wrong(context: Any) -> bool:
        options = context.windows_options if context is not None else None
        return options is not None and bool(options.host_process)

    who = setters(wrong(spec.security_context), offending(spec, lambda each: wrong(each.security_context)))
    return ("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true") if who else None
