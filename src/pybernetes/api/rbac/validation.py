"""Validation of roles and bindings. The role of a binding is immutable, its subjects are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from .. import names
from ..apps.shared import compiled, in_order
from ..field import FieldError, Path, invalid, not_supported, required
from ..meta.validation import validate_label_selector, validate_object_meta, validate_object_meta_update
from .defaults import GROUP
from .v1 import AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject

_RULES = Path("rules")
_SELECTORS = Path("aggregationRule", "clusterRoleSelectors")


def validate_name(name: str, prefix: bool) -> list[str]:
    """Names of roles may have colons; what fits into a path is fine, and so must the beginning of a name."""
    return names.is_path_segment_name(name)


def validate_role(role: Role) -> list[FieldError]:
    """A new role."""
    errors = validate_object_meta(role.metadata, True, validate_name)
    return errors + _validate_rules(role.rules or (), namespaced=True)


def validate_role_update(new: Role, old: Role) -> list[FieldError]:
    """A changed role."""
    return validate_role(new) + validate_object_meta_update(new.metadata, old.metadata)


def validate_cluster_role(role: ClusterRole) -> list[FieldError]:
    """A new role of the cluster."""
    return _validate_cluster_role(role, lenient=False)


def validate_cluster_role_update(new: ClusterRole, old: ClusterRole) -> list[FieldError]:
    """A changed role of the cluster."""
    before = old.aggregation_rule.cluster_role_selectors if old.aggregation_rule else None
    lenient = any(validate_label_selector(each, _SELECTORS) for each in before or ())
    return _validate_cluster_role(new, lenient=lenient) + validate_object_meta_update(new.metadata, old.metadata)


def _validate_cluster_role(role: ClusterRole, *, lenient: bool) -> list[FieldError]:
    errors = validate_object_meta(role.metadata, False, validate_name)
    errors += _validate_rules(role.rules or (), namespaced=False)
    return errors + _validate_aggregation(role.aggregation_rule, lenient) if role.aggregation_rule else errors


def _validate_aggregation(rule: AggregationRule, lenient: bool) -> list[FieldError]:
    if not rule.cluster_role_selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        return [required(_SELECTORS, detail)]
    errors: list[FieldError] = []
    for index, selector in enumerate(rule.cluster_role_selectors):
        path = _SELECTORS.index(index)
        errors += validate_label_selector(selector, path, allow_invalid_values=lenient)
        if compiled(selector) is None:
            errors.append(invalid(path, None, "invalid label selector."))
    return errors


def _validate_rules(rules: Sequence[PolicyRule], *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, rule in enumerate(rules):
        if not rule.verbs or not rule.api_groups or not rule.resources or rule.non_resource_urls:
            errors += validate_policy_rule(rule, _RULES.index(index), namespaced=namespaced)
    return errors


def validate_policy_rule(rule: PolicyRule, path: Path, *, namespaced: bool) -> list[FieldError]:
    """A rule is about resources or about URLs; in a namespace there are no URLs."""
    errors: list[FieldError] = []
    if not rule.verbs:
        errors.append(required(path.child("verbs"), "verbs must contain at least one value"))
    if rule.non_resource_urls:
        at, urls = path.child("nonResourceURLs"), rule.non_resource_urls
        if namespaced:
            errors.append(invalid(at, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.api_groups or rule.resources or rule.resource_names:
            errors.append(invalid(at, urls, "rules cannot apply to both regular resources and non-resource URLs"))
        return errors
    if not rule.api_groups:
        errors.append(required(path.child("apiGroups"), "resource rules must supply at least one api group"))
    if not rule.resources:
        errors.append(required(path.child("resources"), "resource rules must supply at least one resource"))
    return errors


def validate_role_binding(binding: RoleBinding) -> list[FieldError]:
    """A new binding."""
    return _validate_binding(binding, ("Role", "ClusterRole"), namespaced=True)


def validate_role_binding_update(new: RoleBinding, old: RoleBinding) -> list[FieldError]:
    """A changed binding."""
    return validate_role_binding(new) + _validate_binding_update(new, old)


def validate_cluster_role_binding(binding: ClusterRoleBinding) -> list[FieldError]:
    """A new binding for the whole cluster."""
    return _validate_binding(binding, ("ClusterRole",), namespaced=False)


def validate_cluster_role_binding_update(new: ClusterRoleBinding, old: ClusterRoleBinding) -> list[FieldError]:
    """A changed binding for the whole cluster."""
    return validate_cluster_role_binding(new) + _validate_binding_update(new, old)


def _validate_binding(
    binding: RoleBinding | ClusterRoleBinding, kinds: tuple[str, ...], *, namespaced: bool
) -> list[FieldError]:
    errors = validate_object_meta(binding.metadata, namespaced, validate_name)
    reference, path = binding.role_ref or RoleRef(), Path("roleRef")
    if reference.api_group != GROUP:
        errors.append(not_supported(path.child("apiGroup"), reference.api_group or "", (GROUP,)))
    if reference.kind not in kinds:
        errors.append(not_supported(path.child("kind"), reference.kind or "", kinds))
    name = reference.name or ""
    if not name:
        errors.append(required(path.child("name")))
    else:
        errors += [invalid(path.child("name"), name, problem) for problem in names.is_path_segment_name(name)]
    for index, subject in enumerate(binding.subjects or ()):
        errors += validate_subject(subject, Path("subjects").index(index), namespaced=namespaced)
    return errors


def _validate_binding_update(
    new: RoleBinding | ClusterRoleBinding, old: RoleBinding | ClusterRoleBinding
) -> list[FieldError]:
    errors = validate_object_meta_update(new.metadata, old.metadata)
    reference, before = new.role_ref or RoleRef(), old.role_ref or RoleRef()
    if reference != before:
        printed = in_order(APIGroup=reference.api_group or "", Kind=reference.kind or "", Name=reference.name or "")
        errors.append(invalid(Path("roleRef"), printed, "cannot change roleRef"))
    return errors


def validate_subject(subject: Subject, path: Path, *, namespaced: bool) -> list[FieldError]:
    """Users and groups are names of the authenticator's; a service account is an object and has a namespace."""
    errors: list[FieldError] = []
    name, kind, group = subject.name or "", subject.kind or "", subject.api_group or ""
    if not name:
        errors.append(required(path.child("name")))
    if kind == "ServiceAccount":
        if name:
            errors += [invalid(path.child("name"), name, problem) for problem in names.is_dns1123_subdomain(name)]
        if group:
            errors.append(not_supported(path.child("apiGroup"), group, ("",)))
        if not namespaced and not subject.namespace:
            errors.append(required(path.child("namespace")))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.append(not_supported(path.child("apiGroup"), group, (GROUP,)))
    else:
        errors.append(not_supported(path.child("kind"), kind, ("ServiceAccount", "User", "Group")))
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "ClusterRole": validate_cluster_role,
    "ClusterRoleBinding": validate_cluster_role_binding,
    "Role": validate_role,
    "RoleBinding": validate_role_binding,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "ClusterRole": validate_cluster_role_update,
    "ClusterRoleBinding": validate_cluster_role_binding_update,
    "Role": validate_role_update,
    "RoleBinding": validate_role_binding_update,
}
