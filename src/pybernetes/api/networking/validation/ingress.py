"""Validation of Ingresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...addresses import is_valid_ip_for_legacy_field, parse_ip
from ...core.v1.reference import TypedLocalObjectReference
from ...field import FieldError, Path, invalid, not_supported, required
from ...meta.validation import validate_object_meta, validate_object_meta_update
from ...names import (
    is_dns1123_label,
    is_dns1123_subdomain,
    is_path_segment_name,
    is_port_name,
    is_port_number,
    is_wildcard_dns1123_subdomain,
    name_is_dns_subdomain,
)
from ..v1 import HTTPIngressPath, Ingress, IngressBackend, IngressRule, IngressServiceBackend, IngressSpec, IngressTLS

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")

_META: Final = Path("metadata")
_SPEC: Final = Path("spec")
_BAD_PARTS: Final = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS: Final = ("/..", "/.")
_NO_ADDRESS: Final = "must be a DNS name, not an IP address"


def validate_ingress(obj: Ingress) -> list[FieldError]:
    """Validate a new Ingress."""
    errors = _validate(obj)
    annotation = ((obj.metadata and obj.metadata.annotations) or {}).get(CLASS_ANNOTATION)
    name = obj.spec.ingress_class_name if obj.spec else None
    if annotation is not None and name is not None and annotation != name:
        detail = "must match `ingressClassName` when both are specified"
        errors.append(invalid(Path("annotations", CLASS_ANNOTATION), annotation, detail))
    return errors


def validate_ingress_update(new: Ingress, old: Ingress) -> list[FieldError]:
    """Everything may change; what was accepted before stays accepted."""
    before = old.spec or IngressSpec()
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    return errors + _validate(
        new,
        invalid_secrets=any(_secret_problems(tls) for tls in before.tls or ()),
        invalid_wildcards=any(
            "*" in (rule.host or "") and _validate_rule_value(rule, _SPEC) for rule in before.rules or ()
        ),
    )


def validate_ingress_status_update(new: Ingress, old: Ingress) -> list[FieldError]:
    """Addresses and names under which it answers."""
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    balancer = new.status.load_balancer if new.status else None
    before = old.status.load_balancer if old.status else None
    existing = {each.ip for each in (before and before.ingress) or () if each.ip}
    for index, ingress in enumerate((balancer and balancer.ingress) or ()):
        path = Path("status", "loadBalancer", "ingress").index(index)
        if ingress.ip:
            errors += is_valid_ip_for_legacy_field(path.child("ip"), ingress.ip, old=existing)
        if ingress.hostname:
            at = path.child("hostname")
            errors += [invalid(at, ingress.hostname, problem) for problem in is_dns1123_subdomain(ingress.hostname)]
            if parse_ip(ingress.hostname) is not None:
                errors.append(invalid(at, ingress.hostname, _NO_ADDRESS))
    return errors


def _validate(obj: Ingress, *, invalid_secrets: bool = False, invalid_wildcards: bool = False) -> list[FieldError]:
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain, _META)
    spec = obj.spec or IngressSpec()
    if not spec.rules and spec.default_backend is None:
        errors.append(invalid(_SPEC, spec.rules, "either `defaultBackend` or `rules` must be specified"))
    if spec.default_backend is not None:
        errors += _validate_backend(spec.default_backend, _SPEC.child("defaultBackend"))
    for index, rule in enumerate(spec.rules or ()):
        errors += _validate_rule(rule, _SPEC.child("rules").index(index), invalid_wildcards)
    for index, tls in enumerate(spec.tls or ()):
        errors += _validate_tls(tls, _SPEC.child("tls").index(index), invalid_secrets)
    name = spec.ingress_class_name
    if name is not None:
        errors += [invalid(_SPEC.child("ingressClassName"), name, problem) for problem in is_dns1123_subdomain(name)]
    return errors


def _host_problems(host: str) -> list[str]:
    return is_wildcard_dns1123_subdomain(host) if "*" in host else is_dns1123_subdomain(host)


def _secret_problems(tls: IngressTLS) -> list[str]:
    return is_dns1123_subdomain(tls.secret_name) if tls.secret_name else []


def _validate_tls(tls: IngressTLS, path: Path, invalid_secrets: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, host in enumerate(tls.hosts or ()):
        errors += [invalid(path.child("hosts").index(index), host, problem) for problem in _host_problems(host)]
    if not invalid_secrets:
        errors += [invalid(path.child("secretName"), tls.secret_name, problem) for problem in _secret_problems(tls)]
    return errors


def _validate_rule(rule: IngressRule, path: Path, invalid_wildcards: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    host = rule.host or ""
    if host:
        if parse_ip(host) is not None:
            errors.append(invalid(path.child("host"), host, _NO_ADDRESS))
        errors += [invalid(path.child("host"), host, problem) for problem in _host_problems(host)]
    if "*" in host and invalid_wildcards:
        return errors
    return errors + _validate_rule_value(rule, path)


def _validate_rule_value(rule: IngressRule, path: Path) -> list[FieldError]:
    if rule.http is None:
        return []
    path = path.child("http", "paths")
    errors = [] if rule.http.paths else [required(path)]
    for index, each in enumerate(rule.http.paths or ()):
        errors += _validate_path(each, path.index(index))
    return errors


def _validate_path(entry: HTTPIngressPath, path: Path) -> list[FieldError]:
    kind, value = entry.path_type, entry.path or ""
    if kind is None:
        return [required(path.child("pathType"), "pathType must be specified")]
    errors: list[FieldError] = []
    at = path.child("path")
    if kind not in PATH_TYPES:
        errors.append(not_supported(path.child("pathType"), kind, PATH_TYPES))
    elif not value.startswith("/") and (value or kind != "ImplementationSpecific"):
        errors.append(invalid(at, value, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        errors += [invalid(at, value, f"must not contain '{part}'") for part in _BAD_PARTS if part in value]
        errors += [invalid(at, value, f"cannot end with '{end}'") for end in _BAD_ENDS if value.endswith(end)]
    return errors + _validate_backend(entry.backend or IngressBackend(), path.child("backend"))


def _validate_backend(backend: IngressBackend, path: Path) -> list[FieldError]:
    if backend.resource is not None and backend.service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if backend.resource is not None:
        return _validate_reference(backend.resource, path.child("resource"))
    if backend.service is not None:
        return _validate_service(backend.service, path)
    return [invalid(path, "", "resource or service backend is required")]


def _validate_service(service: IngressServiceBackend, path: Path) -> list[FieldError]:
    at = path.child("service", "name")
    errors = [] if service.name else [required(at)]
    errors += [
        invalid(at, service.name, problem) for problem in (is_dns1123_label(service.name) if service.name else ())
    ]
    name = service.port.name if service.port else None
    number = (service.port.number if service.port else None) or 0
    if name and number:
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif name:
        errors += [invalid(path.child("service", "port", "name"), name, problem) for problem in is_port_name(name)]
    elif number:
        at = path.child("service", "port", "number")
        errors += [invalid(at, number, problem) for problem in is_port_number(number)]
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


def _validate_reference(reference: TypedLocalObjectReference, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if reference.api_group is not None:
        at = path.child("apiGroup")
        errors += [invalid(at, reference.api_group, each) for each in is_dns1123_subdomain(reference.api_group)]
    return errors + validate_kind_and_name(reference.kind, reference.name, path)


def validate_kind_and_name(kind: str | None, name: str | None, path: Path) -> list[FieldError]:
    """Both there, and fit to stand in a URL."""
    errors: list[FieldError] = []
    for wire, value in (("kind", kind), ("name", name)):
        if not value:
            errors.append(required(path.child(wire)))
        else:
            errors += [invalid(path.child(wire), value, problem) for problem in is_path_segment_name(value)]
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"Ingress": validate_ingress}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"Ingress": validate_ingress_update}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"Ingress": validate_ingress_status_update}
