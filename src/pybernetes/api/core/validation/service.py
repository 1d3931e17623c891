"""Validation of Services.

Addresses and families of a Service hang together (`clusterIP`, `clusterIPs`, `ipFamilies`, `ipFamilyPolicy`); those
rules are in `service_addresses.py`, which the allocator asks too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...addresses import is_valid_cidr_for_legacy_field, is_valid_ip_for_legacy_field, parse_ip
from ...field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from ...gocompat.godiff import in_order
from ...meta.validation import validate_labels, validate_object_meta, validate_object_meta_update
from ...names import (
    is_dns1123_label,
    is_dns1123_subdomain,
    is_port_number,
    is_qualified_name,
    name_is_dns_label,
)
from ..defaults.service import externally_accessible
from ..v1.service import (
    LoadBalancerStatus,
    Service,
    ServicePort,
    ServiceSpec,
)
from .common import validate_port_number_or_name
from .endpoints import validate_endpoint_ip
from .ports import validate_app_protocol, validate_protocol
from .service_addresses import (
    is_headless,
    validate_address_fields,
    validate_addresses_update,
    validate_families_update,
)

MAX_AFFINITY_SECONDS: Final = 86_400
SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
TOPOLOGY_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
TRAFFIC_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")

_META: Final = Path("metadata")
_SPEC: Final = Path("spec")
_PORTS: Final = _SPEC.child("ports")
_ONLY_BALANCER: Final = "may only be used when `type` is 'LoadBalancer'"


def validate_service(obj: Service) -> list[FieldError]:
    """Validate a new Service."""
    return validate_object_meta(obj.metadata, True, name_is_dns_label, _META) + _validate(obj, None)


def validate_service_update(new: Service, old: Service) -> list[FieldError]:
    """Addresses stay, unless the Service is or was an ExternalName; so does the class of a load balancer."""
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    spec, before = new.spec or ServiceSpec(), old.spec or ServiceSpec()
    errors += validate_addresses_update(spec, before)
    errors += validate_families_update(spec, before)
    if spec.type == before.type == "LoadBalancer" and spec.load_balancer_class != before.load_balancer_class:
        errors.append(invalid(_SPEC.child("loadBalancerClass"), spec.load_balancer_class, "may not change once set"))
    errors += _validate_load_balancer_class(spec)
    moved = (spec.health_check_node_port or 0) != (before.health_check_node_port or 0)
    if moved and needs_health_check(spec) and needs_health_check(before):
        errors.append(forbidden(_SPEC.child("healthCheckNodePort"), "field is immutable"))
    return errors + _validate(new, old)


def validate_service_status_update(new: Service, old: Service) -> list[FieldError]:
    """The addresses of a load balancer."""
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    balancer = new.status.load_balancer if new.status else None
    before = old.status.load_balancer if old.status else None
    errors += validate_load_balancer_status(
        balancer or LoadBalancerStatus(), before, Path("status", "loadBalancer"), new.spec or ServiceSpec()
    )
    return errors


def needs_health_check(spec: ServiceSpec) -> bool:
    """Whether a load balancer asks each node if it has endpoints."""
    return spec.type == "LoadBalancer" and spec.external_traffic_policy == "Local"


def _validate(obj: Service, old: Service | None) -> list[FieldError]:
    errors: list[FieldError] = []
    spec = obj.spec or ServiceSpec()
    before = old.spec if old else None
    annotations = (obj.metadata and obj.metadata.annotations) or {}
    if TOPOLOGY_HINTS in annotations and TOPOLOGY_MODE in annotations:
        mode = annotations[TOPOLOGY_MODE]
        if mode != annotations[TOPOLOGY_HINTS]:
            detail = f"must match annotations[{TOPOLOGY_HINTS}] when both are specified"
            errors.append(invalid(_META.child("annotations").key(TOPOLOGY_MODE), mode, detail))
    headless = is_headless(spec)
    if not spec.ports and not headless and spec.type != "ExternalName":
        errors.append(required(_PORTS))
    _validate_type(spec, headless, errors)
    names: set[str] = set()
    several = len(spec.ports or ()) > 1
    for index, port in enumerate(spec.ports or ()):
        _validate_port(port, several, names, _PORTS.index(index), errors)
    if spec.selector:
        errors += validate_labels(spec.selector, _SPEC.child("selector"))
    _validate_affinity(spec, errors)
    errors += validate_address_fields(spec, before)
    existing = frozenset((before and before.external_ips) or ())
    for index, ip in enumerate(spec.external_ips or ()):
        at = _SPEC.child("externalIPs").index(index)
        errors += is_valid_ip_for_legacy_field(at, ip, old=existing) or validate_endpoint_ip(ip, at)
    if not spec.type:
        errors.append(required(_SPEC.child("type")))
    elif spec.type not in TYPES:
        errors.append(not_supported(_SPEC.child("type"), spec.type, TYPES))
    _validate_port_numbers(spec, errors)
    _validate_source_ranges(spec, annotations, old, errors)
    if spec.allocate_load_balancer_node_ports is not None and spec.type != "LoadBalancer":
        errors.append(forbidden(_SPEC.child("allocateLoadBalancerNodePorts"), _ONLY_BALANCER))
    if spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is None:
        errors.append(required("allocateLoadBalancerNodePorts"))
    errors += _validate_load_balancer_class(spec)
    _validate_external_traffic_policy(spec, errors)
    _validate_internal_traffic_policy(spec, errors)
    if spec.traffic_distribution is not None and spec.traffic_distribution not in TRAFFIC_DISTRIBUTIONS:
        at = _SPEC.child("trafficDistribution")
        errors.append(not_supported(at, spec.traffic_distribution, TRAFFIC_DISTRIBUTIONS))
    return errors


def _validate_type(spec: ServiceSpec, headless: bool, errors: list[FieldError]) -> None:
    if spec.type in ("LoadBalancer", "NodePort"):
        if headless:
            detail = f"may not be set to 'None' for {spec.type} services"
            errors.append(invalid(_SPEC.child("clusterIPs").index(0), "None", detail))
    elif spec.type == "ExternalName":
        for name, value in (
            ("clusterIPs", spec.cluster_ips),
            ("ipFamilies", spec.ip_families),
            ("ipFamilyPolicy", spec.ip_family_policy),
        ):
            if value:
                errors.append(forbidden(_SPEC.child(name), "may not be set for ExternalName services"))
        # A DNS name may end with a dot to say that it is complete.
        name = (spec.external_name or "").removesuffix(".")
        if not name:
            errors.append(required(_SPEC.child("externalName")))
        for problem in is_dns1123_subdomain(name) if name else ():
            errors.append(invalid(_SPEC.child("externalName"), name, problem))


def _validate_port(port: ServicePort, several: bool, names: set[str], path: Path, errors: list[FieldError]) -> None:
    if port.name:
        errors += [invalid(path.child("name"), port.name, problem) for problem in is_dns1123_label(port.name)]
        if port.name in names:
            errors.append(duplicate(path.child("name"), port.name))
        names.add(port.name)
    elif several:
        errors.append(required(path.child("name")))
    number = port.port or 0
    errors += [invalid(path.child("port"), number, problem) for problem in is_port_number(number)]
    validate_protocol(port.protocol, path, errors)
    errors += validate_port_number_or_name(port.target_port or 0, path.child("targetPort"))
    validate_app_protocol(port.app_protocol, path, errors)


def _validate_affinity(spec: ServiceSpec, errors: list[FieldError]) -> None:
    affinity = spec.session_affinity
    if not affinity:
        errors.append(required(_SPEC.child("sessionAffinity")))
    elif affinity not in ("ClientIP", "None"):
        errors.append(not_supported(_SPEC.child("sessionAffinity"), affinity, ("ClientIP", "None")))
    path = _SPEC.child("sessionAffinityConfig")
    config = spec.session_affinity_config
    if affinity == "ClientIP":
        missing = "when session affinity type is ClientIP"
        if config is None:
            errors.append(required(path, missing))
        elif config.client_ip is None:
            errors.append(required(path.child("clientIP"), missing))
        elif config.client_ip.timeout_seconds is None:
            errors.append(required(path.child("clientIP", "timeoutSeconds"), missing))
        elif not 0 < config.client_ip.timeout_seconds <= MAX_AFFINITY_SECONDS:
            detail = f"must be greater than 0 and less than {MAX_AFFINITY_SECONDS}"
            errors.append(invalid(path.child("clientIP", "timeoutSeconds"), config.client_ip.timeout_seconds, detail))
    elif affinity == "None" and config is not None:
        errors.append(forbidden(path, "must not be set when session affinity is None"))


def _validate_port_numbers(spec: ServiceSpec, errors: list[FieldError]) -> None:
    """No node ports without nodes; no protocol and number twice."""
    ports = spec.ports or ()
    if spec.type == "ClusterIP":
        for index, port in enumerate(ports):
            if port.node_port:
                at = _PORTS.index(index).child("nodePort")
                errors.append(forbidden(at, "may not be used when `type` is 'ClusterIP'"))
    taken: set[tuple[str | None, int]] = set()
    for index, port in enumerate(ports):
        if port.node_port:
            if (port.protocol, port.node_port) in taken:
                errors.append(duplicate(_PORTS.index(index).child("nodePort"), port.node_port))
            taken.add((port.protocol, port.node_port))
    seen: set[tuple[str | None, int | None]] = set()
    for index, port in enumerate(ports):
        if (port.protocol, port.port) in seen:
            # Upstream prints a port with nothing but these two set, in its internal form.
            value = {
                "Name": "",
                "Protocol": port.protocol or "",
                "AppProtocol": None,
                "Port": port.port or 0,
                "TargetPort": 0,
                "NodePort": 0,
            }
            errors.append(duplicate(_PORTS.index(index), in_order(value)))
        seen.add((port.protocol, port.port))


def _validate_source_ranges(
    spec: ServiceSpec, annotations: dict[str, str], old: Service | None, errors: list[FieldError]
) -> None:
    """Validate the load balancer's source ranges: the field, or the annotation it was before. Stored ranges stay
    valid."""
    if spec.load_balancer_source_ranges:
        path = _SPEC.child("LoadBalancerSourceRanges")
        if spec.type != "LoadBalancer":
            errors.append(forbidden(path, _ONLY_BALANCER))
        before = (old.spec and old.spec.load_balancer_source_ranges) if old else None
        existing = {each.strip() for each in before or ()}
        for index, cidr in enumerate(spec.load_balancer_source_ranges):
            errors += is_valid_cidr_for_legacy_field(path.index(index), cidr.strip(), old=existing)
    elif SOURCE_RANGES in annotations:
        path = _META.child("annotations").key(SOURCE_RANGES)
        if spec.type != "LoadBalancer":
            errors.append(forbidden(path, _ONLY_BALANCER))
        value = annotations[SOURCE_RANGES]
        known = (old.metadata and old.metadata.annotations) if old else None
        if value != (known or {}).get(SOURCE_RANGES) and value.strip():
            for cidr in value.split(","):
                errors += is_valid_cidr_for_legacy_field(path, cidr.strip())


def _validate_load_balancer_class(spec: ServiceSpec) -> list[FieldError]:
    name = spec.load_balancer_class
    if name is None:
        return []
    path = _SPEC.child("loadBalancerClass")
    if spec.type != "LoadBalancer":
        return [forbidden(path, _ONLY_BALANCER)]
    return [invalid(path, name, problem) for problem in is_qualified_name(name)]


def _validate_external_traffic_policy(spec: ServiceSpec, errors: list[FieldError]) -> None:
    path = _SPEC.child("externalTrafficPolicy")
    policy = spec.external_traffic_policy
    if not externally_accessible(spec):
        if policy:
            errors.append(invalid(path, policy, "may only be set for externally-accessible services"))
    elif not policy:
        errors.append(required(path))
    elif policy not in ("Cluster", "Local"):
        errors.append(not_supported(path, policy, ("Cluster", "Local")))
    path = _SPEC.child("healthCheckNodePort")
    port = spec.health_check_node_port or 0
    if needs_health_check(spec):
        if not port:
            errors.append(required(path))
        else:
            errors += [invalid(path, port, problem) for problem in is_port_number(port)]
    elif port:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid(path, port, detail))


def _validate_internal_traffic_policy(spec: ServiceSpec, errors: list[FieldError]) -> None:
    path = _SPEC.child("internalTrafficPolicy")
    policy = spec.internal_traffic_policy
    if policy is None:
        if spec.type in ("NodePort", "LoadBalancer", "ClusterIP"):
            errors.append(required(path))
    elif policy not in ("Cluster", "Local"):
        errors.append(not_supported(path, policy, ("Cluster", "Local")))


def validate_load_balancer_status(
    status: LoadBalancerStatus, old: LoadBalancerStatus | None, path: Path, spec: ServiceSpec
) -> list[FieldError]:
    """Addresses and names under which the load balancer answers."""
    path = path.child("ingress")
    if spec.type != "LoadBalancer" and status.ingress:
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    errors: list[FieldError] = []
    existing = {each.ip for each in (old and old.ingress) or () if each.ip}
    for index, ingress in enumerate(status.ingress or ()):
        at = path.index(index)
        if ingress.ip:
            errors += is_valid_ip_for_legacy_field(at.child("ip"), ingress.ip, old=existing)
        if ingress.ip_mode is None:
            if ingress.ip:
                errors.append(required(at.child("ipMode"), "must be specified when `ip` is set"))
        elif not ingress.ip:
            errors.append(forbidden(at.child("ipMode"), "may not be specified when `ip` is not set"))
        elif ingress.ip_mode not in ("Proxy", "VIP"):
            errors.append(not_supported(at.child("ipMode"), ingress.ip_mode, ("Proxy", "VIP")))
        if ingress.hostname:
            at = at.child("hostname")
            errors += [invalid(at, ingress.hostname, problem) for problem in is_dns1123_subdomain(ingress.hostname)]
            if parse_ip(ingress.hostname) is not None:
                errors.append(invalid(at, ingress.hostname, "must be a DNS name, not an IP address"))
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "Service": validate_service,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "Service": validate_service_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "Service": validate_service_status_update,
}
