"""Validation of LimitRanges and ResourceQuotas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import MAX_REPEATED, FieldError, Path, duplicate, forbidden, invalid, required
from ...gocompat.godiff import in_order
from ...meta.validation import IMMUTABLE, validate_object_meta, validate_object_meta_update
from ...names import is_qualified_name, name_is_dns_subdomain
from ...quantity import Quantity, parse
from ..resourcenames import (
    HUGEPAGES_PREFIX,
    REQUESTS_PREFIX,
    is_extended,
    is_native,
    is_overcommit_allowed,
    is_standard_for_container,
)
from ..v1.quota import LimitRange, LimitRangeItem, ResourceQuota, ResourceQuotaSpec
from .resources import validate_resource_name, validate_resource_quantity

SCOPES: Final = frozenset(
    {
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "VolumeAttributesClass",
    }
)
_META: Final = Path("metadata")
_ONE: Final = Quantity(1)
_MAX_MILLI: Final = ((1 << 63) - 1) // 1000
_QUOTA_RESOURCES: Final = frozenset(
    {
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_POD_RESOURCES: Final = frozenset(
    {"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
)
_CLAIM_RESOURCES: Final = frozenset({"persistentvolumeclaims", "requests.storage"})
_EXISTS_ONLY: Final = frozenset(
    {"BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"}
)


# --- LimitRange


def validate_limit_range(obj: LimitRange) -> list[FieldError]:
    """Each type once; defaults between minimum and maximum."""
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain, _META)
    seen: set[str] = set()
    for index, item in enumerate((obj.spec and obj.spec.limits) or ()):
        path = Path("spec", "limits").index(index)
        kind = item.type or ""
        errors += _validate_limit_type(kind, path.child("type"))
        if kind in seen:
            errors.append(duplicate(path.child("type"), kind))
        seen.add(kind)
        errors += _validate_limit(item, kind, path)
    return errors


def _validate_limit_type(kind: str, path: Path) -> list[FieldError]:
    errors = [invalid(path, kind, problem) for problem in is_qualified_name(kind)]
    if not errors and "/" not in kind and kind not in ("Pod", "Container", "PersistentVolumeClaim"):
        errors.append(invalid(path, kind, "must be a standard limit type or fully qualified"))
    return errors


def _validate_limit(item: LimitRangeItem, kind: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    given: dict[str, dict[str, Quantity]] = {}

    def collect(name: str, resources: dict[str, Any] | None) -> None:
        given[name] = {key: parse(str(value)) for key, value in (resources or {}).items()}
        for key in resources or ():
            errors.extend(_validate_limit_resource(kind, key, path.child(name).key(key)))

    collect("max", item.max)
    collect("min", item.min)
    if kind == "Pod":
        for name, resources in (("default", item.default), ("defaultRequest", item.default_request)):
            given[name] = {}
            if resources:
                errors.append(forbidden(path.child(name), "may not be specified when `type` is 'Pod'"))
    else:
        collect("default", item.default)
        collect("defaultRequest", item.default_request)
    if kind == "PersistentVolumeClaim" and "storage" not in given["min"] and "storage" not in given["max"]:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(path.child("limits"), detail))
    collect("maxLimitRequestRatio", item.max_limit_request_ratio)
    for key in sorted({key for resources in given.values() for key in resources}):
        errors += _validate_amounts(key, {name: values.get(key) for name, values in given.items()}, path)
    return errors


def _validate_limit_resource(kind: str, name: str, path: Path) -> list[FieldError]:
    errors = validate_resource_name(name, path)
    if kind in ("Pod", "Container"):
        if "/" not in name:
            if not is_standard_for_container(name):
                errors.append(invalid(path, name, "must be a standard resource for containers"))
        elif not is_native(name) and not is_extended(name):
            errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def _validate_amounts(key: str, given: dict[str, Quantity | None], path: Path) -> list[FieldError]:
    """How the amounts of one resource compare: min <= default request <= default <= max."""
    errors: list[FieldError] = []
    low, high = given["min"], given["max"]
    limit, request, ratio = given["default"], given["defaultRequest"], given["maxLimitRequestRatio"]

    def wrong(field: str, value: Quantity, detail: str) -> None:
        errors.append(invalid(path.child(field).key(key), str(value), detail))

    if low is not None and high is not None and low > high:
        wrong("min", low, f"min value {low} is greater than max value {high}")
    if request is not None and low is not None and low > request:
        wrong("defaultRequest", request, f"min value {low} is greater than default request value {request}")
    if request is not None and high is not None and request > high:
        wrong("defaultRequest", request, f"default request value {request} is greater than max value {high}")
    if request is not None and limit is not None and request > limit:
        wrong("defaultRequest", request, f"default request value {request} is greater than default limit value {limit}")
    if limit is not None and low is not None and low > limit:
        wrong("default", low, f"min value {low} is greater than default value {limit}")
    if limit is not None and high is not None and limit > high:
        wrong("default", high, f"default value {limit} is greater than max value {high}")
    if ratio is not None and ratio < _ONE:
        wrong("maxLimitRequestRatio", ratio, f"ratio {ratio} is less than 1")
    if ratio is not None and low is not None and high is not None:
        most = _max_ratio(ratio, low, high)
        if most is not None:
            wrong("maxLimitRequestRatio", ratio, f"ratio {ratio} is greater than max/min = {most}")
    if not is_overcommit_allowed(key) and limit is not None and request is not None and limit.cmp(request) != 0:
        wrong("defaultRequest", request, f"default value {limit} must equal to defaultRequest value {request} in {key}")
    return errors


def _max_ratio(ratio: Quantity, low: Quantity, high: Quantity) -> str | None:
    """max/min if the ratio is above it. Counted in thousandths unless that would overflow a 64-bit number."""
    value, least, most = float(ratio.value()), low.value(), high.value()
    if max(ratio.value(), least, most) < _MAX_MILLI:
        value, least, most = ratio.milli_value() / 1000, low.milli_value(), high.milli_value()
    if not least:
        return None  # infinity, or not a number: no ratio is above it
    return f"{most / least:f}" if value > most / least else None


def validate_limit_range_update(new: LimitRange, old: LimitRange) -> list[FieldError]:
    """Everything may change."""
    return validate_limit_range(new)


# --- ResourceQuota


def validate_resource_quota(obj: ResourceQuota) -> list[FieldError]:
    """Validate a new quota."""
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain, _META)
    errors += _validate_quota_spec(obj.spec or ResourceQuotaSpec())
    return errors + _validate_quota_status(obj)


def validate_resource_quota_update(new: ResourceQuota, old: ResourceQuota) -> list[FieldError]:
    """Scopes stay."""
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    spec, before = new.spec or ResourceQuotaSpec(), old.spec or ResourceQuotaSpec()
    errors += _validate_quota_spec(spec)
    if set(spec.scopes or ()) != set(before.scopes or ()):
        errors.append(invalid(Path("spec", "scopes"), spec.scopes, IMMUTABLE))
    return errors


def validate_resource_quota_status_update(new: ResourceQuota, old: ResourceQuota) -> list[FieldError]:
    """Validate an update of the counted resources and their usage."""
    return validate_object_meta_update(new.metadata, old.metadata, _META) + _validate_quota_status(new)


def _validate_quota_status(obj: ResourceQuota) -> list[FieldError]:
    path = Path("status")
    status = obj.status
    if status is None:
        return []
    return _validate_quantities(status.hard, path.child("hard")) + _validate_quantities(status.used, path.child("used"))


def _validate_quota_spec(spec: ResourceQuotaSpec) -> list[FieldError]:
    path = Path("spec")
    errors = _validate_quantities(spec.hard, path.child("hard"))
    if spec.scopes:
        errors += _validate_scopes(spec, path.child("scopes"))
    if spec.scope_selector is not None:
        errors += _validate_scope_selector(spec, path.child("scopeSelector", "matchExpressions"))
    return errors


def _validate_quantities(resources: dict[str, Any] | None, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, value in (resources or {}).items():
        at = path.key(name)
        errors += validate_resource_name(name, at)
        if "/" not in name and not is_standard_for_quota(name):
            errors.append(invalid(at, name, "must be a standard resource for quota"))
        errors += validate_resource_quantity(name, parse(str(value)), at)
    return errors


def is_standard_for_quota(name: str) -> bool:
    """Whether a quota can count it without a domain in its name."""
    return name in _QUOTA_RESOURCES or name.startswith((HUGEPAGES_PREFIX, REQUESTS_PREFIX + HUGEPAGES_PREFIX))


def _fits_scope(scope: str, resource: str) -> bool:
    """Whether the objects of a scope can use the resource."""
    if scope == "BestEffort":
        return resource == "pods"
    if scope == "VolumeAttributesClass":
        return resource in _CLAIM_RESOURCES
    return resource in _POD_RESOURCES if scope in SCOPES else True


def _misfits(scope: str, spec: ResourceQuotaSpec) -> int:
    return sum(is_standard_for_quota(name) and not _fits_scope(scope, name) for name in spec.hard or ())


def _validate_scopes(spec: ResourceQuotaSpec, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    scopes = spec.scopes or []
    misfits = {scope: _misfits(scope, spec) for scope in SCOPES.intersection(scopes)}
    for scope in scopes:
        if scope not in SCOPES:
            errors.append(invalid(path, scopes, "unsupported scope"))
        misfit = invalid(path, scopes, "unsupported scope applied to resource")
        errors += [misfit] * min(misfits.get(scope, 0), MAX_REPEATED - len(errors))
    return errors + _validate_conflicts(set(scopes), scopes, path)


def _validate_conflicts(present: set[str], scopes: list[str] | None, path: Path) -> list[FieldError]:
    pairs = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
    return [invalid(path, scopes, "conflicting scopes") for pair in pairs if pair <= present]


def _validate_scope_selector(spec: ResourceQuotaSpec, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    selector = spec.scope_selector
    requirements = (selector and selector.match_expressions) or []
    misfits = {scope: _misfits(scope, spec) for scope in SCOPES.intersection(each.scope_name for each in requirements)}
    shown: dict[str, Any] | None = None
    for requirement in requirements:
        scope, operator = requirement.scope_name or "", requirement.operator or ""
        if scope not in SCOPES:
            errors.append(invalid(path.child("scopeName"), scope, "unsupported scope"))
        if misfits.get(scope):
            # Upstream prints the selector in its internal form.
            shown = shown or {
                "MatchExpressions": [
                    {"ScopeName": each.scope_name or "", "Operator": each.operator or "", "Values": each.values}
                    for each in requirements
                ]
            }
            misfit = invalid(path, in_order(shown), "unsupported scope applied to resource")
            errors += [misfit] * min(misfits[scope], MAX_REPEATED - len(errors))
        if scope in _EXISTS_ONLY and operator != "Exists":
            detail = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
                "ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            errors.append(invalid(path.child("operator"), operator, detail))
        if operator in ("In", "NotIn"):
            if not requirement.values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.append(required(path.child("values"), detail))
        elif operator in ("Exists", "DoesNotExist"):
            if requirement.values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.append(invalid(path.child("values"), requirement.values, detail))
        else:
            errors.append(invalid(path.child("operator"), operator, "not a valid selector operator"))
    return errors + _validate_conflicts({each.scope_name or "" for each in requirements}, spec.scopes, path)


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "LimitRange": validate_limit_range,
    "ResourceQuota": validate_resource_quota,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "LimitRange": validate_limit_range_update,
    "ResourceQuota": validate_resource_quota_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "ResourceQuota": validate_resource_quota_status_update,
}
