"""Validation of IngressClasses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError, Path, forbidden, invalid, not_supported, required, too_long
from ...meta.validation import validate_immutable, validate_object_meta, validate_object_meta_update
from ...names import is_dns1123_label, is_dns1123_subdomain, is_http_path, name_is_dns_subdomain
from ..v1 import IngressClass, IngressClassParametersReference, IngressClassSpec
from .ingress import validate_kind_and_name

MAX_CONTROLLER: Final = 250
_META: Final = Path("metadata")
_SPEC: Final = Path("spec")


def validate_ingress_class(obj: IngressClass) -> list[FieldError]:
    """Validate a new class."""
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain, _META)
    spec = obj.spec or IngressClassSpec()
    controller = spec.controller or ""
    if len(controller.encode("utf-8", "replace")) > MAX_CONTROLLER:
        errors.append(too_long(_SPEC.child("controller"), "", MAX_CONTROLLER))
    errors += validate_domain_prefixed_path(controller, _SPEC.child("controller"))
    if spec.parameters is not None:
        errors += _validate_parameters(spec.parameters, _SPEC.child("parameters"))
    return errors


def validate_ingress_class_update(new: IngressClass, old: IngressClass) -> list[FieldError]:
    """The controller stays."""
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    controller, before = (new.spec and new.spec.controller) or "", (old.spec and old.spec.controller) or ""
    errors += validate_immutable(controller, before, _SPEC.child("controller"))
    return errors + validate_ingress_class(new)


def validate_domain_prefixed_path(value: str, path: Path) -> list[FieldError]:
    """A domain, a slash and a path: `acme.io/foo`."""
    if not value:
        return [required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(path, host, problem) for problem in is_dns1123_subdomain(host)]
    return errors + [invalid(path, rest, problem) for problem in is_http_path(rest)]


def _validate_parameters(reference: IngressClassParametersReference, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if reference.api_group is not None:
        at = path.child("apiGroup")
        errors += [invalid(at, reference.api_group, each) for each in is_dns1123_subdomain(reference.api_group)]
    errors += validate_kind_and_name(reference.kind, reference.name, path)
    scope, namespace = reference.scope, reference.namespace
    at = path.child("namespace")
    if scope is None:
        errors.append(required(path.child("scope")))
    elif scope not in ("Cluster", "Namespace"):
        errors.append(not_supported(path.child("scope"), scope, ("Cluster", "Namespace")))
    elif scope == "Cluster" and namespace is not None:
        errors.append(forbidden(at, "`parameters.scope` is set to 'Cluster'"))
    elif scope == "Namespace" and namespace is None:
        errors.append(required(at, "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace":
        errors += [invalid(at, namespace, problem) for problem in is_dns1123_label(namespace or "")]
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"IngressClass": validate_ingress_class}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"IngressClass": validate_ingress_class_update}
