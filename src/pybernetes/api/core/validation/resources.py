"""Requests and limits of containers and of whole pods."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from ...field import FieldError, Path, duplicate, forbidden, invalid, not_found, not_supported, required
from ...quantity import Quantity
from ..podresources import aggregate_container_limits, aggregate_container_requests, quantity
from ..resourcenames import (
    REQUESTS_PREFIX,
    is_extended,
    is_hugepages,
    is_integer,
    is_native,
    is_overcommit_allowed,
    is_standard_for_container,
    is_supported_pod_level,
)
from ..v1.compute import ResourceClaim, ResourceRequirements
from ..v1.pod import PodSpec
from .common import qualified_name, validate_dns1123_label, validate_nonnegative_quantity
from .options import PodOptions, is_divisible_by_page

_STANDARD: Final = frozenset(
    {
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "storage",
        "requests.storage",
        "services.nodeports",
        "services.loadbalancers",
    }
)


@lru_cache(1024)
def _resource_name_problems(name: str) -> tuple[str, ...]:
    problems = qualified_name(name)
    if not problems and "/" not in name:
        known = name in _STANDARD or is_hugepages(name) or name.startswith(f"{REQUESTS_PREFIX}hugepages-")
        return () if known else ("must be a standard resource type or fully qualified",)
    return tuple(problems)


@lru_cache(1024)
def _container_resource_name_problems(name: str) -> tuple[str, ...]:
    problems = _resource_name_problems(name)
    if "/" not in name:
        return (
            problems if is_standard_for_container(name) else (*problems, "must be a standard resource for containers")
        )
    if not is_native(name) and not is_extended(name):
        return (*problems, "doesn't follow extended resource name standard")
    return problems


def validate_resource_name(name: str, path: Path) -> list[FieldError]:
    """The name of any resource that can be asked for or counted."""
    return [invalid(path, name, problem) for problem in _resource_name_problems(name)]


def validate_resource_quantity(name: str, value: Quantity, path: Path) -> list[FieldError]:
    """Not negative, and whole where it is counted."""
    errors = validate_nonnegative_quantity(value, path)
    if is_integer(name) and not value.is_whole():
        errors.append(invalid(path, str(value), "must be an integer"))
    return errors


def validate_container_resource_name(name: str, path: Path) -> list[FieldError]:
    """The name of something a container can have."""
    return [invalid(path, name, problem) for problem in _container_resource_name_problems(name)]


def _pod_name(name: str, path: Path) -> list[FieldError]:
    errors = validate_resource_name(name, path)
    if not errors and not is_supported_pod_level(name):
        return [not_supported(path, name, ("cpu", "hugepages-", "memory"))]
    return errors


def validate_container_resources(
    resources: ResourceRequirements, claims: Collection[str], path: Path, options: PodOptions
) -> list[FieldError]:
    """Validate the resources of one container."""
    return _validate(resources, validate_container_resource_name, claims, path, options)


def _validate(
    resources: ResourceRequirements,
    name_rule: Callable[[str, Path], list[FieldError]],
    claims: Collection[str],
    path: Path,
    options: PodOptions,
) -> list[FieldError]:
    errors: list[FieldError] = []
    limits, requests = resources.limits or {}, resources.requests or {}
    if not limits and not requests and not resources.claims:
        return errors
    compute = hugepages = False
    for part, values in (("limits", limits), ("requests", requests)):
        for name, value in values.items():
            amount = quantity(value)
            if name in ("cpu", "memory"):
                compute = True
                if amount.mantissa < 0:
                    errors += validate_nonnegative_quantity(amount, path.child(part).key(name))
            else:
                at = path.child(part).key(name)
                errors += name_rule(name, at)
                errors += validate_resource_quantity(name, amount, at)
            if part == "requests":
                _compare_with_limit(name, amount, limits, path, errors)
            if is_hugepages(name):
                hugepages = True
                if not options.indivisible_hugepages and not is_divisible_by_page(name, str(amount)):
                    detail = f"{amount} is not positive integer multiple of {name}"
                    errors.append(invalid(path.child(part).key(name), str(amount), detail))
    if hugepages and not compute:
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    if resources.claims:
        errors += _validate_claims(resources.claims, claims, path.child("claims"))
    return errors


def _compare_with_limit(
    name: str, amount: Quantity, limits: Mapping[str, Any], path: Path, errors: list[FieldError]
) -> None:
    limit = limits.get(name)
    if limit is not None:
        most = quantity(limit)
        if amount is most:
            return
        compared = amount.cmp(most)
        if compared and not is_overcommit_allowed(name):
            errors.append(invalid(path.child("requests"), str(amount), f"must be equal to {name} limit of {most}"))
        elif compared > 0:
            detail = f"must be less than or equal to {name} limit of {most}"
            errors.append(invalid(path.child("requests"), str(amount), detail))
    elif not is_overcommit_allowed(name):
        errors.append(required(path.child("limits"), "Limit must be set for non overcommitable resources"))


def _validate_claims(claims: list[ResourceClaim], known: Collection[str], path: Path) -> list[FieldError]:
    """Every claim is one of the pod's, and no device is asked for twice."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        at, name = path.index(index), claim.name
        if not name:
            errors.append(required(at))
            continue
        if name in seen:
            errors.append(duplicate(at, name))
        else:
            key = name
            if claim.request:
                errors += validate_dns1123_label(claim.request, at.child("request"))
                key = f"{name}/{claim.request}"
            if key in seen:
                errors.append(duplicate(at, key))
            elif not claim.request:
                errors += [duplicate(at, name) for each in seen if each.startswith(f"{name}/")]
            seen.add(key)
        if name not in known:
            error = not_found(at, name)
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            error.detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            errors.append(error)
    return errors


def validate_pod_resources(spec: PodSpec, claims: Collection[str], path: Path, options: PodOptions) -> list[FieldError]:
    """Validate the resources of a pod as a whole: enough for its containers."""
    resources = spec.resources
    if resources is None:
        return []
    at = path.child("resources")
    if spec.os is not None and spec.os.name == "windows":
        return [forbidden(at, "may not be set for a windows pod")]
    errors: list[FieldError] = []
    if resources.claims is not None:
        errors.append(forbidden(at.child("claims"), "claims may not be set for Resources at pod-level"))
    errors += _validate(resources, _pod_name, claims, at, options)
    requests, limits = resources.requests or {}, resources.limits or {}
    for name, total in aggregate_container_requests(spec).items():
        if name in requests and total > quantity(requests[name]):
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(invalid(at.child("requests").key(name), str(requests[name]), detail))
    for name, total in aggregate_container_limits(spec).items():
        if is_hugepages(name) and name in limits and total > quantity(limits[name]):
            detail = f"must be greater than or equal to aggregate container limits of {total}"
            errors.append(invalid(at.child("limits").key(name), str(limits[name]), detail))
    for index, container in enumerate(spec.containers or ()):
        own = container.resources.limits if container.resources is not None else None
        for name, limit in (own or {}).items():
            if name in limits and quantity(limit) > quantity(limits[name]):
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                where = at.child("containers").index(index).key(name).child("limits")
                errors.append(invalid(where, str(limit), detail))
    return errors
