"""ValidatingAdmissionPolicyBindings and MutatingAdmissionPolicyBindings."""

from __future__ import annotations

from typing import Final

from ...field import FieldError, Path, duplicate, forbidden, invalid, not_supported, repeated, required
from ...meta.validation import validate_label_selector, validate_object_meta
from ...names import is_path_segment_name, name_is_dns_subdomain
from ..v1 import (
    MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicyBindingSpec,
    ParamRef,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec,
)
from .rules import validate_match_resources, validate_mutating_operations

ACTIONS: Final = ("Audit", "Deny", "Warn")

_SPEC = Path("spec")


def validate_validating_admission_policy_binding(obj: ValidatingAdmissionPolicyBinding) -> list[FieldError]:
    """Validate a new ValidatingAdmissionPolicyBinding."""
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain, custom=True)
    spec = obj.spec or ValidatingAdmissionPolicyBindingSpec()
    return errors + _validate_spec(spec) + _validate_actions(spec.validation_actions or [])


def validate_validating_admission_policy_binding_update(
    new: ValidatingAdmissionPolicyBinding, old: ValidatingAdmissionPolicyBinding
) -> list[FieldError]:
    """Everything may change."""
    return validate_validating_admission_policy_binding(new)


def validate_mutating_admission_policy_binding(obj: MutatingAdmissionPolicyBinding) -> list[FieldError]:
    """Validate a new MutatingAdmissionPolicyBinding."""
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain, custom=True)
    spec = obj.spec or MutatingAdmissionPolicyBindingSpec()
    errors += _validate_spec(spec)
    return errors + validate_mutating_operations(spec.match_resources, _SPEC.child("matchResources"))


def validate_mutating_admission_policy_binding_update(
    new: MutatingAdmissionPolicyBinding, old: MutatingAdmissionPolicyBinding
) -> list[FieldError]:
    """Everything may change."""
    return validate_mutating_admission_policy_binding(new)


def _validate_spec(
    spec: ValidatingAdmissionPolicyBindingSpec | MutatingAdmissionPolicyBindingSpec,
) -> list[FieldError]:
    name, at = spec.policy_name or "", _SPEC.child("policyName")
    errors = [] if name else [required(at)]
    errors += [invalid(at, name, problem) for problem in name_is_dns_subdomain(name, False) if name]
    errors += _validate_param_ref(spec.param_ref, _SPEC.child("paramRef"))
    return errors + validate_match_resources(spec.match_resources, _SPEC.child("matchResources"))


def _validate_param_ref(ref: ParamRef | None, path: Path) -> list[FieldError]:
    """Parameters by their name or by their labels."""
    if ref is None:
        return []
    errors: list[FieldError] = []
    name, exclusive = ref.name or "", "name and selector are mutually exclusive"
    if name:
        errors += [invalid(path.child("name"), name, problem) for problem in is_path_segment_name(name)]
        if ref.selector is not None:
            errors.append(forbidden(path.child("name"), exclusive))
    if ref.selector is not None:
        errors += validate_label_selector(ref.selector, path.child("selector"))
        if name:
            errors.append(forbidden(path.child("selector"), exclusive))
    elif not name:
        errors.append(required(path, "one of name or selector must be specified"))
    action, at = ref.parameter_not_found_action, path.child("parameterNotFoundAction")
    if not action:
        errors.append(required(at))
    elif action not in ("Deny", "Allow"):
        errors.append(not_supported(at, action, ("Deny", "Allow")))
    return errors


def _validate_actions(actions: list[str]) -> list[FieldError]:
    path = _SPEC.child("validationActions")
    errors: list[FieldError] = []
    again = repeated(actions)
    for index, action in enumerate(actions):
        if action not in ACTIONS:
            errors.append(not_supported(path.index(index), action, ACTIONS))
        if index in again:
            errors.append(duplicate(path.index(index), action))
    if "Deny" in actions and "Warn" in actions:
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure information "
            "in the API response and headers serves no purpose)"
        )
        errors.append(invalid(path, actions, detail))
    if not actions:
        errors.append(required(path, "at least one validation action is required"))
    return errors
