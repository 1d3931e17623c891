"""Which requests a webhook or a policy is asked about: rules, selectors, conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...core.validation.common import validate_qualified_name
from ...field import FieldError, Path, duplicate, invalid, not_supported, repeated, required, too_many
from ...meta.validation import validate_label_selector
from ...names import is_path_segment_name
from ..v1 import MatchCondition, MatchResources, NamedRuleWithOperations, RuleWithOperations
from .expressions import validate_expression

FAILURE_POLICIES: Final = ("Fail", "Ignore")
MATCH_POLICIES: Final = ("Equivalent", "Exact")
OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
MUTATING_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
SCOPES: Final = ("*", "Cluster", "Namespaced")
MAX_MATCH_CONDITIONS: Final = 64


def validate_rule(rule: RuleWithOperations | NamedRuleWithOperations, path: Path) -> list[FieldError]:
    """Operations on resources of groups in versions; a `*` says all there is to say."""
    operations = rule.operations or []
    at = path.child("operations")
    errors = validate_present(operations, at, "operations")
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            errors.append(not_supported(at.index(index), operation, OPERATIONS))
    errors += validate_present(rule.api_groups or [], path.child("apiGroups"), "API groups")
    versions, at = rule.api_versions or [], path.child("apiVersions")
    errors += validate_present(versions, at, "API versions")
    errors += [required(at.index(index)) for index, version in enumerate(versions) if not version]
    errors += _validate_resources(rule.resources or [], path.child("resources"))
    if rule.scope is not None and rule.scope not in SCOPES:
        errors.append(not_supported(path.child("scope"), rule.scope, SCOPES))
    return errors


def validate_present(values: list[str], path: Path, what: str) -> list[FieldError]:
    """Something is named, and if that is everything then nothing else."""
    if not values:
        return [required(path)]
    if len(values) > 1 and "*" in values:
        return [invalid(path, values, f"if '*' is present, must not specify other {what}")]
    return []


def _validate_resources(resources: list[str], path: Path) -> list[FieldError]:
    """Resources and subresources, none of which another one covers already."""
    errors: list[FieldError] = [] if resources else [required(path)]
    whole: set[str] = set()  # all subresources of these resources have been named
    everywhere: set[str] = set()  # these subresources of all resources have been named
    plain = False
    for index, name in enumerate(resources):
        at = path.index(index)
        if not name:
            errors.append(required(at))
            continue
        resource, slash, sub = name.partition("/")
        if not slash:
            plain = name != "*"
            continue
        if resource in whole:
            errors.append(invalid(at, name, f"if '{resource}/*' is present, must not specify {name}"))
        if sub in everywhere:
            errors.append(invalid(at, name, f"if '*/{sub}' is present, must not specify {name}"))
        if sub == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, detail))
    return errors


def validate_match_resources(match: MatchResources | None, path: Path) -> list[FieldError]:
    """Validate the matchResources of a policy or binding; None is valid."""
    if match is None:
        return []
    errors: list[FieldError] = []
    if match.match_policy not in MATCH_POLICIES:
        errors.append(not_supported(path.child("matchPolicy"), match.match_policy or "", MATCH_POLICIES))
    errors += validate_label_selector(match.namespace_selector, path.child("namespaceSelector"))
    errors += validate_label_selector(match.object_selector, path.child("objectSelector"))
    for field, rules in (
        ("resourceRules", match.resource_rules),
        ("excludeResourceRules", match.exclude_resource_rules),
    ):
        for index, rule in enumerate(rules or ()):
            errors += _validate_named_rule(rule, path.child(field).index(index))
    return errors


def _validate_named_rule(rule: NamedRuleWithOperations, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    names = rule.resource_names or []
    again = repeated(names)
    for index, name in enumerate(names):
        at = path.child("resourceNames").index(index)
        errors += [invalid(at, name, problem) for problem in is_path_segment_name(name)]
        if index in again:
            errors.append(duplicate(at, name))
    return errors + validate_rule(rule, path)


def validate_mutating_operations(match: MatchResources | None, path: Path) -> list[FieldError]:
    """Mutations cannot match DELETE."""
    at = path.child("resourceRules", "operations")
    return [
        not_supported(at, operation, MUTATING_OPERATIONS)
        for rule in (match and match.resource_rules) or ()
        for operation in rule.operations or ()
        if operation not in MUTATING_OPERATIONS
    ]


def validate_match_conditions(
    conditions: Sequence[MatchCondition] | None, path: Path, *, params: bool = False
) -> list[FieldError]:
    """Expressions with names, each of which comes once; `params` says whether they may speak of parameters."""
    errors: list[FieldError] = []
    if conditions and len(conditions) > MAX_MATCH_CONDITIONS:
        errors.append(too_many(path, len(conditions), MAX_MATCH_CONDITIONS))
    seen: set[str] = set()
    for index, condition in enumerate(conditions or ()):
        at, name = path.index(index), condition.name or ""
        expression = (condition.expression or "").strip()
        if expression:
            errors += validate_expression(expression, at.child("expression"), params=params)
        else:
            errors.append(required(at.child("expression")))
        errors += validate_qualified_name(name, at.child("name")) if name else [required(at.child("name"))]
        if name and name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen.add(name)
    return errors
