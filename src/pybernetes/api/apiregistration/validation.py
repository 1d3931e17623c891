"""Validation of APIServices: a group and version, served here or by an extension server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .. import pem
from ..field import FieldError, Path, invalid, not_supported, required
from ..gocompat.quote import quote
from ..meta.validation import validate_object_meta, validate_object_meta_update
from ..names import is_dns1035_label, is_dns1123_subdomain, is_path_segment_name, is_port_number
from .v1 import APIService, APIServiceSpec, ServiceReference

MAX_GROUP_PRIORITY: Final = 20000
MAX_VERSION_PRIORITY: Final = 1000

_SPEC = Path("spec")


def validate_api_service(obj: APIService) -> list[FieldError]:
    """Validate a new APIService."""
    spec = obj.spec or APIServiceSpec()
    group, version = spec.group or "", spec.version or ""

    def name_rule(name: str, prefix: bool) -> list[str]:
        problems = is_path_segment_name(name)
        if not problems and name != f"{version}.{group}":
            wanted = quote(f"{version}.{group}")
            problems = [f'must be `spec.version+"."+spec.group`: {wanted}']
        return problems

    errors = validate_object_meta(obj.metadata, False, name_rule, custom=True)
    if not group and version != "v1":
        detail = "only v1 may have an empty group and it better be legacy kube"
        errors.append(required(_SPEC.child("group"), detail))
    if group:
        errors += [invalid(_SPEC.child("group"), group, problem) for problem in is_dns1123_subdomain(group)]
    errors += [invalid(_SPEC.child("version"), version, problem) for problem in is_dns1035_label(version)]
    group_priority, priority = spec.group_priority_minimum or 0, spec.version_priority or 0
    if not 0 < group_priority <= MAX_GROUP_PRIORITY:
        detail = "must be positive and less than 20000"
        errors.append(invalid(_SPEC.child("groupPriorityMinimum"), group_priority, detail))
    if not 0 < priority <= MAX_VERSION_PRIORITY:
        errors.append(invalid(_SPEC.child("versionPriority"), priority, "must be positive and less than 1000"))
    if spec.service is None:
        return errors + _validate_local(spec)
    return errors + _validate_service(spec, spec.service)


def _validate_local(spec: APIServiceSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.ca_bundle:
        size = f"{len(pem.decoded(spec.ca_bundle))} bytes"
        errors.append(invalid(_SPEC.child("caBundle"), size, "local APIServices may not have a caBundle"))
    if spec.insecure_skip_tls_verify:
        detail = "local APIServices may not have insecureSkipTLSVerify"
        errors.append(invalid(_SPEC.child("insecureSkipTLSVerify"), True, detail))
    return errors


def _validate_service(spec: APIServiceSpec, service: ServiceReference) -> list[FieldError]:
    path = _SPEC.child("service")
    errors: list[FieldError] = []
    if not service.namespace:
        errors.append(required(path.child("namespace")))
    if not service.name:
        errors.append(required(path.child("name")))
    port = service.port or 0
    if problems := is_port_number(port):
        errors.append(invalid(path.child("port"), port, f"port is not valid: {', '.join(problems)}"))
    if spec.insecure_skip_tls_verify and spec.ca_bundle:
        detail = "may not be true if caBundle is present"
        errors.append(invalid(_SPEC.child("insecureSkipTLSVerify"), True, detail))
    return errors


def validate_api_service_update(new: APIService, old: APIService) -> list[FieldError]:
    """Its name says what it is for; all else may change."""
    return validate_object_meta_update(new.metadata, old.metadata, custom=True) + validate_api_service(new)


def validate_api_service_status_update(new: APIService, old: APIService) -> list[FieldError]:
    """Condition statuses are True, False or Unknown."""
    errors = validate_object_meta_update(new.metadata, old.metadata, custom=True)
    path, states = Path("status", "conditions"), ("True", "False", "Unknown")
    for index, condition in enumerate((new.status and new.status.conditions) or ()):
        if condition.status not in states:
            errors.append(not_supported(path.index(index).child("status"), condition.status or "", states))
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"APIService": validate_api_service}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"APIService": validate_api_service_update}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "APIService": validate_api_service_status_update,
}
