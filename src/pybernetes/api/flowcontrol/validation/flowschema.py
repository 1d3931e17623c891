"""FlowSchemas."""

from __future__ import annotations

from typing import Final

from ...equality import semantically_equal
from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ...gocompat.goform import go_form
from ...meta.validation import validate_object_meta
from ...names import name_is_dns_label, name_is_dns_subdomain
from ..mandatory import EXEMPT, flow_schemas
from ..v1 import (
    FlowSchema,
    FlowSchemaSpec,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    ResourcePolicyRule,
    ServiceAccountSubject,
    Subject,
)
from .conditions import validate_conditions

DISTINGUISHER_METHODS: Final = ("ByNamespace", "ByUser")
MAX_MATCHING_PRECEDENCE: Final = 10000
VERBS: Final = frozenset({"get", "list", "create", "update", "delete", "deletecollection", "patch", "watch", "proxy"})

_SPEC = Path("spec")
# Kinds of subjects and the fields that hold them, in the order of upstream's complaints.
_SUBJECTS: Final = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_ATTRIBUTES: Final = {"ServiceAccount": "service_account", "User": "user", "Group": "group"}


def validate_flow_schema(obj: FlowSchema) -> list[FieldError]:
    """Validate a new FlowSchema."""
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain)
    name = (obj.metadata and obj.metadata.name) or ""
    spec = obj.spec or FlowSchemaSpec()
    errors += _validate_spec(name, spec)
    wanted = flow_schemas().get(name)
    if wanted is not None and not semantically_equal(spec, wanted):
        errors.append(invalid(_SPEC, go_form(spec), f"spec of '{name}' must equal the fixed value"))
    return errors + validate_conditions(obj.status)


def validate_flow_schema_update(new: FlowSchema, old: FlowSchema) -> list[FieldError]:
    """Everything may change."""
    return validate_flow_schema(new)


def validate_flow_schema_status_update(new: FlowSchema, old: FlowSchema) -> list[FieldError]:
    """Only the status is looked at."""
    return validate_conditions(new.status)


def _validate_spec(name: str, spec: FlowSchemaSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    precedence, at = spec.matching_precedence or 0, _SPEC.child("matchingPrecedence")
    if precedence <= 0:
        errors.append(invalid(at, precedence, "must be a positive value"))
    if precedence > MAX_MATCHING_PRECEDENCE:
        errors.append(invalid(at, precedence, f"must not be greater than {MAX_MATCHING_PRECEDENCE}"))
    if precedence == 1 and name != EXEMPT:
        errors.append(invalid(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
    method = spec.distinguisher_method
    if method is not None and method.type not in DISTINGUISHER_METHODS:
        path = _SPEC.child("distinguisherMethod", "type")
        errors.append(not_supported(path, go_form(method), DISTINGUISHER_METHODS))
    level = (spec.priority_level_configuration and spec.priority_level_configuration.name) or ""
    at = _SPEC.child("priorityLevelConfiguration", "name")
    if level:
        errors += [invalid(at, level, problem) for problem in name_is_dns_subdomain(level, False)]
    else:
        errors.append(required(at, "must reference a priority level"))
    for index, rule in enumerate(spec.rules or ()):
        errors += _validate_rules(rule, _SPEC.child("rules").index(index))
    return errors


def _validate_rules(rule: PolicyRulesWithSubjects, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, subject in enumerate(rule.subjects or ()):
        errors += _validate_subject(subject, path.child("subjects").index(index))
    if not rule.subjects:
        errors.append(required(path.child("subjects"), "subjects must contain at least one value"))
    if not rule.resource_rules and not rule.non_resource_rules:
        detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(required(path, detail))
    for index, resource in enumerate(rule.resource_rules or ()):
        errors += _validate_resource_rule(resource, path.child("resourceRules").index(index))
    for index, other in enumerate(rule.non_resource_rules or ()):
        errors += _validate_non_resource_rule(other, path.child("nonResourceRules").index(index))
    return errors


def _validate_subject(subject: Subject, path: Path) -> list[FieldError]:
    kind = subject.kind or ""
    if kind not in _SUBJECTS:
        return [not_supported(path.child("kind"), kind, frozenset(_SUBJECTS))]
    field = _SUBJECTS[kind]
    at, who = path.child(field), getattr(subject, _ATTRIBUTES[kind])
    errors: list[FieldError] = []
    if who is None:
        errors.append(required(at, f"{field} is required when subject kind is '{kind}'"))
    elif isinstance(who, ServiceAccountSubject):
        errors += _validate_service_account(who, at)
    elif not who.name:
        errors.append(required(at.child("name")))
    for other, name in _SUBJECTS.items():
        if other != kind and getattr(subject, _ATTRIBUTES[other]) is not None:
            errors.append(forbidden(path.child(name), f"{name} is forbidden when subject kind is not '{other}'"))
    return errors


def _validate_service_account(who: ServiceAccountSubject, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    name, namespace = who.name or "", who.namespace or ""
    if not name:
        errors.append(required(path.child("name")))
    elif name != "*":
        errors += [invalid(path.child("name"), name, problem) for problem in name_is_dns_subdomain(name, False)]
    at = path.child("namespace")
    if not namespace:
        errors.append(required(at, "must specify namespace for service account"))
    return errors + [invalid(at, namespace, each) for each in _namespace_problems(namespace) if namespace]


def _namespace_problems(namespace: str) -> list[str]:
    return name_is_dns_label(namespace, False)


def _validate_verbs(verbs: list[str], path: Path) -> list[FieldError]:
    if not verbs:
        return [required(path, "verbs must contain at least one value")]
    if "*" in verbs:
        return _alone(verbs, path, "verbs")
    return [] if VERBS.issuperset(verbs) else [not_supported(path, verbs, VERBS)]


def _alone(values: list[str], path: Path, what: str) -> list[FieldError]:
    """A `*` says all there is to say."""
    if len(values) > 1 and "*" in values:
        return [invalid(path, values, f"if '*' is present, must not specify other {what}")]
    return []


def _validate_resource_rule(rule: ResourcePolicyRule, path: Path) -> list[FieldError]:
    errors = _validate_verbs(rule.verbs or [], path.child("verbs"))
    groups, resources, namespaces = rule.api_groups or [], rule.resources or [], rule.namespaces or []
    if not groups:
        errors.append(required(path.child("apiGroups"), "resource rules must supply at least one api group"))
    errors += _alone(groups, path.child("apiGroups"), "api groups")
    if not resources:
        errors.append(required(path.child("resources"), "resource rules must supply at least one resource"))
    errors += _alone(resources, path.child("resources"), "resources")
    at = path.child("namespaces")
    if not namespaces and not rule.cluster_scope:
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.append(required(at, detail))
    elif "*" in namespaces:
        errors += _alone(namespaces, at, "namespaces")
    else:
        intro = "each member of this list must be '*' or a DNS-1123 label; "
        for index, namespace in enumerate(namespaces):
            errors += [invalid(at.index(index), namespace, intro + each) for each in _namespace_problems(namespace)]
    return errors


def _validate_non_resource_rule(rule: NonResourcePolicyRule, path: Path) -> list[FieldError]:
    errors = _validate_verbs(rule.verbs or [], path.child("verbs"))
    urls, at = rule.non_resource_urls or [], path.child("nonResourceURLs")
    if not urls:
        errors.append(required(at, "nonResourceURLs must contain at least one value"))
    elif "*" in urls:
        errors += _alone(urls, at, "non-resource URLs")
    else:
        for index, url in enumerate(urls):
            if problem := _url_problem(url):
                errors.append(invalid(at.index(index), url, problem))
    return errors


def _url_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count("*")
    if stars > 1 or (stars == 1 and not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""
