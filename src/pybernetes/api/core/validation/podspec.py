"""The spec of a pod, in a pod or in the template of one."""

from __future__ import annotations

from typing import Final

from ...addresses import is_valid_ip_for_legacy_field
from ...field import FieldError, Path, duplicate, forbidden, invalid, not_found, not_supported, required, too_long
from ...meta.v1.objectmeta import ObjectMeta
from ...meta.validation import validate_labels
from ...names import is_dns1123_subdomain_with_underscore, range_error
from ..containers import all_containers, all_containers_with_path
from ..v1.pod import PodDNSConfig, PodResourceClaim, PodSchedulingGroup, PodSpec
from ..v1.volume import Volume
from .common import InternalForm, dns1123_subdomain, validate_dns1123_label, validate_dns1123_subdomain
from .container import validate_containers, validate_ephemeral_containers, validate_init_containers
from .options import PodOptions
from .os import validate_os, validate_windows_host_process
from .resources import validate_container_resources, validate_pod_resources
from .scheduling import (
    validate_affinity,
    validate_readiness_gates,
    validate_scheduling_gates,
    validate_tolerations,
    validate_topology_spread_constraints,
)
from .security import validate_host_users, validate_pod_security_context
from .volumes import validate_volumes

MIRROR_POD: Final = "kubernetes.io/config.mirror"
RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_MAX_INT32: Final = (1 << 31) - 1
_MAX_HOSTNAME: Final = 64
_MAX_NAMESERVERS: Final = 3
_MAX_SEARCHES: Final = 32
_MAX_SEARCH_CHARACTERS: Final = 2048
_NO_VOLUMES: Final[dict[str, Volume]] = {}
_NO_CLAIMS: Final[frozenset[str]] = frozenset()


def validate_pod_spec(spec: PodSpec, meta: ObjectMeta | None, path: Path, options: PodOptions) -> list[FieldError]:
    """Everything about a spec; `meta` only if it is that of a real pod."""
    errors: list[FieldError] = []
    if spec.termination_grace_period_seconds is None:
        errors.append(required(path.child("terminationGracePeriodSeconds")))
    volumes = _NO_VOLUMES
    if spec.volumes:
        volumes, problems = validate_volumes(spec.volumes, meta, path.child("volumes"), options)
        errors += problems
    claims = _NO_CLAIMS
    if spec.resource_claims:
        claims = frozenset(claim.name for claim in spec.resource_claims if claim.name)
        errors += _validate_resource_claims(spec.resource_claims, meta, path.child("resourceClaims"))
    errors += validate_containers(spec, volumes, claims, path.child("containers"), options)
    if spec.init_containers:
        errors += validate_init_containers(spec, volumes, claims, path.child("initContainers"), options)
    if spec.ephemeral_containers:
        errors += validate_ephemeral_containers(spec, volumes, claims, path.child("ephemeralContainers"), options)
    if spec.resources is not None:
        errors += validate_pod_resources(spec, claims, path, options)
    if spec.host_network:
        errors += _validate_host_network_ports(spec, path.child("containers"), options)
    if spec.restart_policy not in RESTART_POLICIES:
        errors.append(_unsupported(path.child("restartPolicy"), spec.restart_policy, RESTART_POLICIES))
    if spec.dns_policy not in _DNS_POLICIES:
        errors.append(_unsupported(path.child("dnsPolicy"), spec.dns_policy, _DNS_POLICIES))
    if spec.node_selector:
        errors += validate_labels(spec.node_selector, path.child("nodeSelector"))
    if spec.security_context is not None:
        at = path.child("securityContext")
        errors += validate_pod_security_context(spec.security_context, spec, at, options)
    if spec.affinity is not None:
        errors += validate_affinity(
            spec.affinity,
            path.child("affinity"),
            invalid_selector_values=options.invalid_selector_values,
            invalid_node_values=options.invalid_node_affinity_values,
        )
    if spec.dns_config is not None or spec.dns_policy == "None":
        errors += _validate_dns_config(spec.dns_config, spec.dns_policy, path.child("dnsConfig"))
    if spec.readiness_gates:
        errors += validate_readiness_gates(spec.readiness_gates, path.child("readinessGates"))
    if spec.scheduling_gates:
        errors += validate_scheduling_gates(spec.scheduling_gates, path.child("schedulingGates"))
    if spec.topology_spread_constraints:
        errors += validate_topology_spread_constraints(
            spec.topology_spread_constraints,
            path.child("topologySpreadConstraints"),
            legacy_keys=options.legacy_match_label_keys,
            invalid_selectors=options.invalid_spread_selectors,
        )
    errors += validate_windows_host_process(spec, path)
    if spec.host_users is False:
        errors += validate_host_users(spec, path, options)
    if spec.hostname_override is not None:
        errors += _validate_hostname_override(spec.hostname_override, spec, path)
    _validate_names(spec, path, errors)
    if spec.tolerations:
        at = path.child("tolerations")
        errors += validate_tolerations(spec.tolerations, at, comparing=options.comparing_tolerations)
    if spec.host_aliases:
        for index, alias in enumerate(spec.host_aliases):
            at = path.child("hostAliases").index(index)
            errors += is_valid_ip_for_legacy_field(at.child("ip"), alias.ip or "")
            for number, hostname in enumerate(alias.hostnames or ()):
                errors += validate_dns1123_subdomain(hostname, at.child("hostnames").index(number))
    if spec.priority_class_name:
        errors += validate_dns1123_subdomain(spec.priority_class_name, path.child("priorityClassName"))
    if spec.runtime_class_name is not None:
        errors += validate_dns1123_subdomain(spec.runtime_class_name, path.child("runtimeClassName"))
    if spec.preemption_policy is not None and spec.preemption_policy not in _PREEMPTION_POLICIES:
        errors.append(_unsupported(path.child("preemptionPolicy"), spec.preemption_policy, _PREEMPTION_POLICIES))
    if spec.overhead:
        from ..v1.compute import ResourceRequirements

        wanted = ResourceRequirements(limits=spec.overhead)
        errors += validate_container_resources(wanted, _NO_CLAIMS, path.child("overhead"), options)
    if spec.os is not None:
        errors += validate_os(spec, path)
    if spec.scheduling_group is not None:
        errors += _validate_scheduling_group(spec.scheduling_group, path.child("schedulingGroup", "podGroupName"))
    errors += _validate_file_key_volumes(spec, path)
    return errors


def _unsupported(path: Path, value: str | None, supported: tuple[str, ...]) -> FieldError:
    return not_supported(path, value, supported) if value else required(path)


def _validate_names(spec: PodSpec, path: Path, errors: list[FieldError]) -> None:
    for wire, value in (("serviceAccountName", spec.service_account_name), ("nodeName", spec.node_name)):
        if value and dns1123_subdomain(value):
            errors += validate_dns1123_subdomain(value, path.child(wire))
    seconds = spec.active_deadline_seconds
    if seconds is not None and not 1 <= seconds <= _MAX_INT32:
        errors.append(invalid(path.child("activeDeadlineSeconds"), seconds, range_error(1, _MAX_INT32)))
    if spec.hostname:
        errors += validate_dns1123_label(spec.hostname, path.child("hostname"))
    if spec.subdomain:
        errors += validate_dns1123_label(spec.subdomain, path.child("subdomain"))


def _validate_resource_claims(claims: list[PodResourceClaim], meta: ObjectMeta | None, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        if meta is not None and MIRROR_POD in (meta.annotations or ()):
            errors.append(forbidden("", "static pods do not support resource claims"))
            continue
        at, name = path.index(index), claim.name
        if not name:
            errors.append(required(at.child("name")))
        elif name in seen:
            errors.append(duplicate(at.child("name"), name))
        else:
            errors += validate_dns1123_label(name, at.child("name"))
            seen.add(name)
        sources = (
            ("resourceClaimName", claim.resource_claim_name),
            ("resourceClaimTemplateName", claim.resource_claim_template_name),
        )
        count = sum(value is not None for _, value in sources)
        if count > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(at, InternalForm(claim), detail))
        if not count:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(at, InternalForm(claim), detail))
        for wire, value in sources:
            if value is not None:
                errors += validate_dns1123_subdomain(value, at.child(wire))
    return errors


def _validate_host_network_ports(spec: PodSpec, path: Path, options: PodOptions) -> list[FieldError]:
    """On the host's network a port is itself; a template may leave that to the pod made from it."""
    errors: list[FieldError] = []
    for index, container in enumerate(spec.containers or ()):
        for number, port in enumerate(container.ports or ()):
            host = port.host_port or 0
            if (options.is_pod or host) and host != (port.container_port or 0):
                at = path.index(index).child("ports").index(number).child("hostPort")
                errors.append(invalid(at, host, "must match `containerPort` when `hostNetwork` is true"))
    return errors


def _validate_dns_config(config: PodDNSConfig | None, policy: str | None, path: Path) -> list[FieldError]:
    if policy == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.nameservers:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(path.child("nameservers"), detail)]
    if config is None:
        return []
    errors: list[FieldError] = []
    servers, searches = config.nameservers or [], config.searches or []
    if len(servers) > _MAX_NAMESERVERS:
        detail = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        errors.append(invalid(path.child("nameservers"), servers, detail))
    for index, server in enumerate(servers):
        errors += is_valid_ip_for_legacy_field(path.child("nameservers").index(index), server)
    if len(searches) > _MAX_SEARCHES:
        detail = f"must not have more than {_MAX_SEARCHES} search paths"
        errors.append(invalid(path.child("searches"), searches, detail))
    if len(" ".join(searches).encode()) > _MAX_SEARCH_CHARACTERS:
        detail = f"must not have more than {_MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        errors.append(invalid(path.child("searches"), searches, detail))
    for index, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            at = path.child("searches").index(index)
            errors += [invalid(at, domain, problem) for problem in is_dns1123_subdomain_with_underscore(domain)]
    for index, option in enumerate(config.options or ()):
        if not option.name:
            errors.append(required(path.child("options").index(index), "must not be empty"))
    return errors


def _validate_hostname_override(name: str, spec: PodSpec, path: Path) -> list[FieldError]:
    at = path.child("hostnameOverride")
    errors: list[FieldError] = []
    if spec.set_hostname_as_fqdn:
        errors.append(forbidden(at, "may not be specified when setHostnameAsFQDN is true"))
    if spec.host_network:
        errors.append(forbidden(at, "may not be specified when hostNetwork is true"))
    if len(name.encode()) > _MAX_HOSTNAME:
        errors.append(too_long(at, "", _MAX_HOSTNAME))
    return errors + validate_dns1123_subdomain(name, at)


def _validate_scheduling_group(group: PodSchedulingGroup, path: Path) -> list[FieldError]:
    if group.pod_group_name is None:
        return [invalid(path, None, "must specify one of: `podGroupName`")]
    return validate_dns1123_subdomain(group.pod_group_name, path)


def _validate_file_key_volumes(spec: PodSpec, path: Path) -> list[FieldError]:
    """Files that variables are read from are in empty directories of the pod."""
    if not any(
        variable.value_from is not None and variable.value_from.file_key_ref is not None
        for container in all_containers(spec)
        if container.env
        for variable in container.env
    ):
        return []
    errors: list[FieldError] = []
    volumes = {volume.name or "": volume for volume in spec.volumes or ()}
    for container, at in all_containers_with_path(spec, path):
        for index, variable in enumerate(container.env or ()):
            source = variable.value_from.file_key_ref if variable.value_from is not None else None
            if source is None:
                continue
            where = at.child("env").index(index).child("valueFrom", "fileKeyRef", "volumeName")
            volume = volumes.get(source.volume_name or "")
            if volume is None:
                errors.append(not_found(where, source.volume_name or ""))
            elif volume.empty_dir is None:
                errors.append(invalid(where, source.volume_name or "", "referenced volume must be of type emptyDir"))
    return errors
