"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from ...cel.escaping import RESERVED
from ...core.validation.common import validate_qualified_name
from ...equality import semantically_equal
from ...field import FieldError, Path, duplicate, invalid, not_supported, required
from ...gocompat.goform import go_form
from ...meta.validation import validate_conditions, validate_object_meta
from ...names import is_dns1035_label, is_dns1123_subdomain, name_is_dns_subdomain
from ..v1 import (
    AuditAnnotation,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicySpec,
    Mutation,
    ParamKind,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicySpec,
    ValidatingAdmissionPolicyStatus,
    Validation,
    Variable,
)
from .expressions import PolicyExpressions
from .rules import (
    FAILURE_POLICIES,
    REINVOCATION_POLICIES,
    validate_match_conditions,
    validate_match_resources,
    validate_mutating_operations,
)

MAX_AUDIT_ANNOTATIONS: Final = 20
MAX_VALUE_EXPRESSION_BYTES: Final = 5 * 1024
REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
PATCH_TYPES: Final = ("ApplyConfiguration", "JSONPatch")

_SPEC = Path("spec")
_STATUS = Path("status")
_is_identifier = re.compile("[_a-zA-Z][_a-zA-Z0-9]*").fullmatch


def validate_validating_admission_policy(obj: ValidatingAdmissionPolicy) -> list[FieldError]:
    """Validate a new ValidatingAdmissionPolicy."""
    return _validate_validating(obj, check_conditions=True, changed=True)


def validate_validating_admission_policy_update(
    new: ValidatingAdmissionPolicy, old: ValidatingAdmissionPolicy
) -> list[FieldError]:
    """Everything may change."""
    conditions_changed = _conditions_changed(new.spec, old.spec)
    return _validate_validating(new, check_conditions=conditions_changed, changed=new.spec != old.spec)


def validate_validating_admission_policy_status_update(
    new: ValidatingAdmissionPolicy, old: ValidatingAdmissionPolicy
) -> list[FieldError]:
    """Warnings about expressions, and conditions."""
    status = new.status or ValidatingAdmissionPolicyStatus()
    errors: list[FieldError] = []
    path = _STATUS.child("typeChecking", "expressionWarnings")
    warnings = (status.type_checking and status.type_checking.expression_warnings) or []
    for index, warning in enumerate(warnings):
        if not warning.warning:
            errors.append(required(path.index(index).child("warning")))
        if not (warning.field_ref or "").strip():
            errors.append(required(path.index(index).child("fieldRef")))
    return errors + validate_conditions(status.conditions, _STATUS.child("conditions"))


def validate_mutating_admission_policy(obj: MutatingAdmissionPolicy) -> list[FieldError]:
    """Validate a new MutatingAdmissionPolicy."""
    return _validate_mutating(obj, check_conditions=True, changed=True)


def validate_mutating_admission_policy_update(
    new: MutatingAdmissionPolicy, old: MutatingAdmissionPolicy
) -> list[FieldError]:
    """Everything may change."""
    conditions_changed = _conditions_changed(new.spec, old.spec)
    return _validate_mutating(new, check_conditions=conditions_changed, changed=new.spec != old.spec)


def _conditions_changed(new: Any, old: Any) -> bool:
    return not (
        semantically_equal(new.param_kind, old.param_kind)
        and semantically_equal(new.match_conditions, old.match_conditions)
    )


def _validate_common(
    spec: ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec,
    expressions: PolicyExpressions,
    *,
    mutates: bool,
    check_conditions: bool,
) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.failure_policy not in FAILURE_POLICIES:
        at = _SPEC.child("failurePolicy")
        errors.append(not_supported(at, spec.failure_policy or "", FAILURE_POLICIES))
    if spec.param_kind is not None:
        errors += _validate_param_kind(spec.param_kind, _SPEC.child("paramKind"))
    at = _SPEC.child("matchConstraints")
    if spec.match_constraints is None:
        errors.append(required(at))
    else:
        errors += validate_match_resources(spec.match_constraints, at)
        if not spec.match_constraints.resource_rules:
            errors.append(required(at.child("resourceRules")))
        if mutates:
            errors += validate_mutating_operations(spec.match_constraints, at)
    if check_conditions:
        params = spec.param_kind is not None
        errors += validate_match_conditions(spec.match_conditions, _SPEC.child("matchConditions"), params=params)
    variables: Sequence[Variable] = spec.variables or ()
    for index, variable in enumerate(variables):
        errors += _validate_variable(variable, expressions, _SPEC.child("variables").index(index))
    return errors


def _validate_validating(obj: ValidatingAdmissionPolicy, *, check_conditions: bool, changed: bool) -> list[FieldError]:
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain, custom=True)
    spec = obj.spec or ValidatingAdmissionPolicySpec()
    expressions = PolicyExpressions(spec, changed=changed)
    errors += _validate_common(spec, expressions, mutates=False, check_conditions=check_conditions)
    if not spec.validations and not spec.audit_annotations:
        detail = "validations or auditAnnotations must contain at least one item"
        errors.append(required(_SPEC.child("validations"), detail))
        errors.append(required(_SPEC.child("auditAnnotations"), detail))
        return errors
    for index, validation in enumerate(spec.validations or ()):
        errors += _validate_validation(validation, expressions, _SPEC.child("validations").index(index))
    name = (obj.metadata and obj.metadata.name) or ""
    return errors + _validate_audit_annotations(spec.audit_annotations or [], expressions, name)


def _validate_audit_annotations(
    annotations: list[AuditAnnotation], expressions: PolicyExpressions, policy: str
) -> list[FieldError]:
    path = _SPEC.child("auditAnnotations")
    errors: list[FieldError] = []
    if len(annotations) > MAX_AUDIT_ANNOTATIONS:
        detail = f"must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations"
        errors.append(invalid(path, [go_form(each) for each in annotations], detail))
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        at, key = path.index(index), annotation.key or ""
        errors += validate_qualified_name(f"{policy}/{key}", at.child("key"))
        expression = (annotation.value_expression or "").strip()
        if not expression:
            errors.append(required(at.child("valueExpression"), "valueExpression is not specified"))
        elif len(expression.encode()) > MAX_VALUE_EXPRESSION_BYTES:
            detail = f"must not exceed {MAX_VALUE_EXPRESSION_BYTES} bytes in length"
            errors.append(required(at.child("valueExpression"), detail))
        else:
            errors += expressions.annotation(annotation.value_expression or "", at.child("valueExpression"))
        if key in seen:
            errors.append(duplicate(at.child("key"), key))
        seen.add(key)
    return errors


def _validate_mutating(obj: MutatingAdmissionPolicy, *, check_conditions: bool, changed: bool) -> list[FieldError]:
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain, custom=True)
    spec = obj.spec or MutatingAdmissionPolicySpec()
    expressions = PolicyExpressions(spec, changed=changed)
    errors += _validate_common(spec, expressions, mutates=True, check_conditions=check_conditions)
    if not spec.mutations:
        errors.append(required(_SPEC.child("mutations"), "mutations must contain at least one item"))
    for index, mutation in enumerate(spec.mutations or ()):
        errors += _validate_mutation(mutation, expressions, _SPEC.child("mutations").index(index))
    policy, at = spec.reinvocation_policy, _SPEC.child("reinvocationPolicy")
    if not policy:
        errors.append(required(at))
    elif policy not in REINVOCATION_POLICIES:
        errors.append(not_supported(at, policy, REINVOCATION_POLICIES))
    return errors


def _validate_param_kind(kind: ParamKind, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    api_version, at = kind.api_version or "", path.child("apiVersion")
    if not api_version:
        errors.append(required(at))
    elif api_version.count("/") > 1:
        errors.append(invalid(at, api_version, f"unexpected GroupVersion string: {api_version}"))
    else:
        group, _, version = api_version.rpartition("/")
        if group and (problems := is_dns1123_subdomain(group)):
            errors.append(invalid(at, group, ",".join(problems)))
        if not version:
            errors.append(invalid(at, api_version, "version must be specified"))
        elif problems := is_dns1035_label(version):
            errors.append(invalid(at, version, ",".join(problems)))
    name = kind.kind or ""
    if not name:
        errors.append(required(path.child("kind")))
    elif problems := is_dns1035_label(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        errors.append(invalid(path.child("kind"), name, detail))
    return errors


def _validate_variable(variable: Variable, expressions: PolicyExpressions, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    name = variable.name or ""
    if not name.strip():
        errors.append(required(path.child("name"), "name is not specified"))
    elif not _is_identifier(name) or name in RESERVED:
        errors.append(invalid(path.child("name"), name, "must be a valid CEL identifier"))
    if not (variable.expression or "").strip():
        errors.append(required(path.child("expression"), "expression is not specified"))
    else:
        errors += expressions.variable(variable, path.child("expression"))
    return errors


def _validate_validation(validation: Validation, expressions: PolicyExpressions, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not (validation.expression or "").strip():
        errors.append(required(path.child("expression"), "expression is not specified"))
    else:
        errors += expressions.condition(validation.expression or "", path.child("expression"))
    expression, message = validation.message_expression or "", validation.message or ""
    if expression and not expression.strip():
        errors.append(invalid(path.child("messageExpression"), expression, "must be non-empty if specified"))
    elif expression:
        errors += expressions.message(expression, path.child("messageExpression"))
    if message and not message.strip():
        errors.append(invalid(path.child("message"), message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        errors.append(invalid(path.child("message"), message, "must not contain line breaks"))
    if validation.reason is not None and validation.reason not in REASONS:
        errors.append(not_supported(path.child("reason"), validation.reason, REASONS))
    return errors


def _validate_mutation(mutation: Mutation, expressions: PolicyExpressions, path: Path) -> list[FieldError]:
    kind = mutation.patch_type or ""
    if not kind:
        return [required(path.child("patchType"))]
    if kind not in PATCH_TYPES:
        return [not_supported(path.child("patchType"), kind, PATCH_TYPES)]
    parts = {"ApplyConfiguration": mutation.apply_configuration, "JSONPatch": mutation.json_patch}
    fields = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
    errors: list[FieldError] = []
    part, at = parts[kind], path.child(fields[kind])
    if part is None:
        errors.append(required(at, f"must be specified when patchType is {kind}"))
    elif not (part.expression or "").strip():
        errors.append(required(at.child("expression")))
    else:
        compiled = expressions.apply_configuration if kind == "ApplyConfiguration" else expressions.json_patch
        errors += compiled(part.expression or "", at.child("expression"))
    (other,) = (each for each in PATCH_TYPES if each != kind)
    if parts[other] is not None:
        detail = f"must not be specified when patchType is {kind}"
        errors.append(invalid(path.child(fields[other]), f"{{{fields[other]}}}", detail))
    return errors
