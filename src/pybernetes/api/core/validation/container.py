"""Containers: regular ones, init containers and sidecars, ephemeral ones.

All three obey the common rules; each list has its own about names, probes, restarts and host ports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ...field import FieldError, Path, duplicate, forbidden, invalid, not_found, not_supported, required, too_many
from ...names import is_port_number
from ..containers import AnyContainer
from ..podresources import is_sidecar
from ..v1.compute import ContainerResizePolicy, ResourceRequirements
from ..v1.container import Container, ContainerPort, EphemeralContainer
from ..v1.pod import PodSpec
from ..v1.volume import Volume
from .common import dns1123_label, port_name, validate_dns1123_label, validate_pull_policy
from .env import validate_env, validate_env_from
from .mounts import validate_volume_devices, validate_volume_mounts
from .options import PodOptions
from .probes import validate_lifecycle, validate_liveness_probe, validate_readiness_probe, validate_startup_probe
from .resources import validate_container_resources
from .security import validate_container_security_context

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS: Final = ("Restart", "RestartAllContainers")
_EXIT_CODE_OPERATORS: Final = ("In", "NotIn")
_RESIZE_RESOURCES: Final = ("cpu", "memory")
_RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
_MAX_RESTART_RULES: Final = 20
_MAX_EXIT_CODES: Final = 255
_ONLY_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_FORBIDDEN_FOR_EPHEMERAL: Final = (
    ("ports", "ports"),
    ("resources", "resources"),
    ("resize_policy", "resizePolicy"),
    ("restart_policy", "restartPolicy"),
    ("restart_policy_rules", "restartPolicyRules"),
    ("liveness_probe", "livenessProbe"),
    ("readiness_probe", "readinessProbe"),
    ("startup_probe", "startupProbe"),
    ("lifecycle", "lifecycle"),
)
_NO_RESOURCES: Final = ResourceRequirements()


def validate_containers(
    spec: PodSpec, volumes: Mapping[str, Volume], claims: Collection[str], path: Path, options: PodOptions
) -> list[FieldError]:
    """The regular containers, of which there must be one."""
    if not spec.containers:
        return [required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, container in enumerate(spec.containers):
        at = path.index(index)
        errors += _validate_common(container, spec, volumes, claims, at, options)
        name = container.name or ""
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen.add(name)
        _validate_hooks(container, spec, at, errors)
        if container.restart_policy is not None or container.restart_policy_rules:
            errors += _validate_restart_policy(container, at)
    errors += _validate_host_ports(enumerate(spec.containers), path)
    return errors


def validate_init_containers(
    spec: PodSpec, volumes: Mapping[str, Volume], claims: Collection[str], path: Path, options: PodOptions
) -> list[FieldError]:
    """Containers that run before the others; those that restart always stay beside them."""
    errors: list[FieldError] = []
    seen = {container.name or "" for container in spec.containers or ()}
    for index, container in enumerate(spec.init_containers or ()):
        at = path.index(index)
        errors += _validate_common(container, spec, volumes, claims, at, options)
        if container.restart_policy is not None:
            errors += _validate_restart_policy(container, at)
        elif container.restart_policy_rules:
            errors.append(required(at.child("restartPolicy"), "must specify restartPolicy when restart rules are used"))
        name = container.name or ""
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        elif name:
            seen.add(name)
        # They run one by one, so that ports conflict only within one.
        errors += _validate_host_ports(((0, container),), path)
        if is_sidecar(container):
            _validate_hooks(container, spec, at, errors)
            continue
        for wire, value in (
            ("lifecycle", container.lifecycle),
            ("livenessProbe", container.liveness_probe),
            ("readinessProbe", container.readiness_probe),
            ("startupProbe", container.startup_probe),
        ):
            if value is not None:
                errors.append(forbidden(at.child(wire), _ONLY_SIDECARS))
        if not options.restart_container_for_init:
            for number, policy in enumerate(container.resize_policy or ()):
                if policy.restart_policy == "RestartContainer":
                    where = at.child("resizePolicy").index(number).child("restartPolicy")
                    detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                    errors.append(invalid(where, policy.restart_policy, detail))
    return errors


def validate_ephemeral_containers(
    spec: PodSpec, volumes: Mapping[str, Volume], claims: Collection[str], path: Path, options: PodOptions
) -> list[FieldError]:
    """Containers put into a running pod to look at it: no promises about resources, ports or health."""
    errors: list[FieldError] = []
    others = {each.name or "" for each in (*(spec.containers or ()), *(spec.init_containers or ()))}
    seen = set(others)
    for index, container in enumerate(spec.ephemeral_containers or ()):
        at = path.index(index)
        errors += _validate_common(container, spec, volumes, claims, at, options)
        errors += validate_image_blanks(container.image, at)
        name = container.name or ""
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen.add(name)
        target = container.target_container_name
        if target and target not in others:
            errors.append(not_found(at.child("targetContainerName"), target))
        for field, wire in _FORBIDDEN_FOR_EPHEMERAL:
            value = getattr(container, field)
            if value is not None and value != _NO_RESOURCES:
                errors.append(forbidden(at.child(wire), _NOT_EPHEMERAL))
        for number, mount in enumerate(container.volume_mounts or ()):
            if mount.sub_path:
                errors.append(forbidden(at.child("volumeMounts").index(number).child("subPath"), _NOT_EPHEMERAL))
            if mount.sub_path_expr:
                errors.append(forbidden(at.child("volumeMounts").index(number).child("subPathExpr"), _NOT_EPHEMERAL))
    return errors


def validate_image_blanks(image: str | None, path: Path) -> list[FieldError]:
    """Templates may have blanks around an image's name, pods may not."""
    if image is not None and image != image.strip():
        return [invalid(path.child("image"), image, "must not have leading or trailing whitespace")]
    return []


def _validate_common(
    container: AnyContainer,
    spec: PodSpec,
    volumes: Mapping[str, Volume],
    claims: Collection[str],
    path: Path,
    options: PodOptions,
) -> list[FieldError]:
    errors: list[FieldError] = []
    name = container.name
    if not name:
        errors.append(required(path.child("name")))
    elif dns1123_label(name):
        errors += validate_dns1123_label(name, path.child("name"))
    if not container.image:
        errors.append(required(path.child("image")))
    policy = container.termination_message_policy
    if policy not in _MESSAGE_POLICIES:
        at = path.child("terminationMessagePolicy")
        errors.append(not_supported(at, policy, _MESSAGE_POLICIES) if policy else required(at))
    if container.ports:
        errors += _validate_ports(container.ports, path.child("ports"))
    if container.env:
        errors += validate_env(container.env, path.child("env"))
    if container.env_from:
        errors += validate_env_from(container.env_from, path.child("envFrom"))
    if container.volume_mounts:
        errors += validate_volume_mounts(container, volumes, path.child("volumeMounts"))
    if container.volume_devices:
        errors += validate_volume_devices(container, volumes, path.child("volumeDevices"))
    if container.image_pull_policy not in ("IfNotPresent", "Always"):
        errors += validate_pull_policy(container.image_pull_policy, path.child("imagePullPolicy"))
    if container.resources is not None:
        errors += validate_container_resources(container.resources, claims, path.child("resources"), options)
    if container.resize_policy:
        errors += _validate_resize_policy(container.resize_policy, spec.restart_policy, path.child("resizePolicy"))
    if container.security_context is not None:
        host_users = spec.host_users is not False
        at = path.child("securityContext")
        errors += validate_container_security_context(container.security_context, host_users, at)
    return errors


def _validate_hooks(container: Container, spec: PodSpec, path: Path, errors: list[FieldError]) -> None:
    grace = spec.termination_grace_period_seconds
    if container.lifecycle is not None:
        errors += validate_lifecycle(container.lifecycle, grace, spec.os, path.child("lifecycle"))
    if container.liveness_probe is not None:
        errors += validate_liveness_probe(container.liveness_probe, grace, path.child("livenessProbe"))
    if container.readiness_probe is not None:
        errors += validate_readiness_probe(container.readiness_probe, grace, path.child("readinessProbe"))
    if container.startup_probe is not None:
        errors += validate_startup_probe(container.startup_probe, grace, path.child("startupProbe"))


def _validate_ports(ports: list[ContainerPort], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        if port.name:
            problems = port_name(port.name)
            if problems:
                errors += [invalid(path.index(index).child("name"), port.name, problem) for problem in problems]
            elif port.name in seen:
                errors.append(duplicate(path.index(index).child("name"), port.name))
            else:
                seen.add(port.name)
        number = port.container_port or 0
        if not number:
            errors.append(required(path.index(index).child("containerPort")))
        elif not 0 < number < 65536:
            for problem in is_port_number(number):
                errors.append(invalid(path.index(index).child("containerPort"), number, problem))
        if port.host_port and not 0 < port.host_port < 65536:
            for problem in is_port_number(port.host_port):
                errors.append(invalid(path.index(index).child("hostPort"), port.host_port, problem))
        if port.protocol not in PROTOCOLS:
            at = path.index(index).child("protocol")
            errors.append(not_supported(at, port.protocol, PROTOCOLS) if port.protocol else required(at))
    return errors


def _validate_host_ports(containers: Iterable[tuple[int, Container]], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] | None = None
    for index, container in containers:
        for number, port in enumerate(container.ports or ()):
            if not port.host_port:
                continue
            seen = set() if seen is None else seen
            key = f"{port.protocol or ''}/{port.host_ip or ''}/{port.host_port}"
            if key in seen:
                errors.append(duplicate(path.index(index).child("ports").index(number).child("hostPort"), key))
            seen.add(key)
    return errors


def _validate_resize_policy(
    policies: list[ContainerResizePolicy], restarts: str | None, path: Path
) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy.resource_name or "", policy.restart_policy or ""
        if name in seen:
            errors.append(duplicate(path.index(index), name))
        seen.add(name)
        if name not in _RESIZE_RESOURCES:
            errors.append(not_supported(path, name, _RESIZE_RESOURCES) if name else required(path))
        if restart not in _RESIZE_POLICIES:
            errors.append(not_supported(path, restart, _RESIZE_POLICIES) if restart else required(path))
        if restarts == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, restart, detail))
    return errors


def _validate_restart_policy(container: Container | EphemeralContainer, path: Path) -> list[FieldError]:
    """When a container restarts by its own rules instead of the pod's."""
    errors: list[FieldError] = []
    policy, rules = container.restart_policy, container.restart_policy_rules or []
    if policy is None:
        if rules:
            detail = "must specify restartPolicy when restart rules are used"
            errors.append(required(path.child("restartPolicy"), detail))
    elif policy not in _RESTART_POLICIES:
        errors.append(not_supported(path.child("restartPolicy"), policy, _RESTART_POLICIES))
    if len(rules) > _MAX_RESTART_RULES:
        errors.append(too_many(path.child("restartPolicyRules"), len(rules), _MAX_RESTART_RULES))
    for index, rule in enumerate(rules):
        at = path.child("restartPolicyRules").index(index)
        if rule.action not in _RESTART_ACTIONS:
            errors.append(not_supported(at.child("action"), rule.action or "", _RESTART_ACTIONS))
        codes = rule.exit_codes
        if codes is None:
            errors.append(required(at.child("exitCodes"), "must be specified"))
            continue
        if codes.operator not in _EXIT_CODE_OPERATORS:
            where = at.child("exitCodes", "operator")
            errors.append(not_supported(where, codes.operator or "", _EXIT_CODE_OPERATORS))
        count = len(codes.values or ())
        if count > _MAX_EXIT_CODES:
            errors.append(too_many(at.child("exitCodes", "values"), count, _MAX_EXIT_CODES))
    return errors
