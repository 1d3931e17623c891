"""When a Job counts a failed pod, and when it has succeeded early."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ... import names
from ...field import OMIT, FieldError, Path, duplicate, invalid, not_supported, required, too_long, too_many
from ...gocompat.quote import quote
from ...meta.validation import validate_not_negative
from ..v1 import (
    JobSpec,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
    SuccessPolicyRule,
)
from .indexes import IndexesError, count_indexes

MAX_RULES: Final = 20
MAX_EXIT_CODES: Final = 255
MAX_CONDITIONS: Final = 20
MAX_SUCCEEDED_INDEXES_BYTES: Final = 64 * 1024

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")


def validate_pod_failure_policy(spec: JobSpec, path: Path) -> list[FieldError]:
    """Rules about exit codes or conditions of failed pods."""
    policy = spec.pod_failure_policy
    rules = policy.rules or [] if policy else []
    path = path.child("rules")
    errors = [too_many(path, len(rules), MAX_RULES)] if len(rules) > MAX_RULES else []
    pod = spec.template.spec if spec.template else None
    containers = {each.name or "" for each in [*(pod.containers or ()), *(pod.init_containers or ())]} if pod else set()
    for index, rule in enumerate(rules):
        errors += _validate_failure_rule(spec, rule, path.index(index), containers)
    return errors


def _validate_failure_rule(
    spec: JobSpec, rule: PodFailurePolicyRule, path: Path, containers: set[str]
) -> list[FieldError]:
    errors: list[FieldError] = []
    action = rule.action or ""
    if not action:
        errors.append(required(path.child("action"), _valid_values(_ACTIONS)))
    elif action == "FailIndex":
        if spec.backoff_limit_per_index is None:
            errors.append(invalid(path.child("action"), action, "requires the backoffLimitPerIndex to be set"))
    elif action not in _ACTIONS:
        errors.append(not_supported(path.child("action"), action, _ACTIONS))
    codes, conditions = rule.on_exit_codes, rule.on_pod_conditions
    if codes is not None:
        errors += _validate_exit_codes(codes, path.child("onExitCodes"), containers)
    if conditions:
        errors += _validate_conditions(conditions, path.child("onPodConditions"))
    if codes is not None and conditions:
        errors.append(invalid(path, OMIT, "specifying both OnExitCodes and OnPodConditions is not supported"))
    if codes is None and not conditions:
        errors.append(invalid(path, OMIT, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def _validate_exit_codes(
    requirement: PodFailurePolicyOnExitCodesRequirement, path: Path, containers: set[str]
) -> list[FieldError]:
    errors: list[FieldError] = []
    operator = requirement.operator or ""
    if not operator:
        errors.append(required(path.child("operator"), _valid_values(_OPERATORS)))
    elif operator not in _OPERATORS:
        errors.append(not_supported(path.child("operator"), operator, _OPERATORS))
    container = requirement.container_name
    if container is not None and container not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(path.child("containerName"), container, detail))
    path, values = path.child("values"), requirement.values or []
    if not values:
        errors.append(invalid(path, requirement.values, "at least one value is required"))
    elif len(values) > MAX_EXIT_CODES:
        errors.append(too_many(path, len(values), MAX_EXIT_CODES))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(path.index(index), value, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(duplicate(path.index(index), value))
        seen.add(value)
    if any(before > after for before, after in pairwise(values)):
        errors.append(invalid(path, values, "must be ordered"))
    return errors


def _validate_conditions(patterns: Sequence[PodFailurePolicyOnPodConditionsPattern], path: Path) -> list[FieldError]:
    errors = [too_many(path, len(patterns), MAX_CONDITIONS)] if len(patterns) > MAX_CONDITIONS else []
    for index, pattern in enumerate(patterns):
        at = path.index(index)
        for problem in names.is_qualified_name(pattern.type or ""):
            errors.append(invalid(at.child("type"), pattern.type or "", problem))
        if not pattern.status:
            errors.append(required(at.child("status"), _valid_values(_STATUSES)))
        elif pattern.status not in _STATUSES:
            errors.append(not_supported(at.child("status"), pattern.status, _STATUSES))
    return errors


def validate_success_policy(spec: JobSpec, path: Path) -> list[FieldError]:
    """Rules about which indexes, or how many, are enough."""
    policy = spec.success_policy
    rules = policy.rules or [] if policy else []
    path = path.child("rules")
    errors: list[FieldError] = []
    if not rules:
        errors.append(required(path, "at least one rules must be specified when the successPolicy is specified"))
    if len(rules) > MAX_RULES:
        errors.append(too_many(path, len(rules), MAX_RULES))
    for index, rule in enumerate(rules):
        errors += _validate_success_rule(spec.completions or 0, rule, path.index(index))
    return errors


def _validate_success_rule(completions: int, rule: SuccessPolicyRule, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    indexes, count = rule.succeeded_indexes, rule.succeeded_count
    if count is None and indexes is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if indexes is not None:
        at = path.child("succeededIndexes")
        if len(indexes) > MAX_SUCCEEDED_INDEXES_BYTES:
            errors.append(too_long(at, "", MAX_SUCCEEDED_INDEXES_BYTES))
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            errors.append(invalid(at, indexes, f"error parsing succeededIndexes: {error}"))
    if count is not None:
        at = path.child("succeededCount")
        errors += validate_not_negative(count, at)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(invalid(at, count, detail))
        if indexes is not None and count > total:
            detail = (
                f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            )
            errors.append(invalid(at, count, detail))
    return errors


def _valid_values(values: Sequence[str]) -> str:
    return f"valid values: [{' '.join(map(quote, values))}]"
