"""Validation of the kinds of admissionregistration/v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError
from .bindings import (
    validate_mutating_admission_policy_binding,
    validate_mutating_admission_policy_binding_update,
    validate_validating_admission_policy_binding,
    validate_validating_admission_policy_binding_update,
)
from .initializers import validate_initializer_configuration, validate_initializer_configuration_update
from .policies import (
    validate_mutating_admission_policy,
    validate_mutating_admission_policy_update,
    validate_validating_admission_policy,
    validate_validating_admission_policy_status_update,
    validate_validating_admission_policy_update,
)
from .webhooks import (
    validate_mutating_webhook_configuration,
    validate_mutating_webhook_configuration_update,
    validate_validating_webhook_configuration,
    validate_validating_webhook_configuration_update,
)

CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "InitializerConfiguration": validate_initializer_configuration,
    "MutatingAdmissionPolicy": validate_mutating_admission_policy,
    "MutatingAdmissionPolicyBinding": validate_mutating_admission_policy_binding,
    "MutatingWebhookConfiguration": validate_mutating_webhook_configuration,
    "ValidatingAdmissionPolicy": validate_validating_admission_policy,
    "ValidatingAdmissionPolicyBinding": validate_validating_admission_policy_binding,
    "ValidatingWebhookConfiguration": validate_validating_webhook_configuration,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "InitializerConfiguration": validate_initializer_configuration_update,
    "MutatingAdmissionPolicy": validate_mutating_admission_policy_update,
    "MutatingAdmissionPolicyBinding": validate_mutating_admission_policy_binding_update,
    "MutatingWebhookConfiguration": validate_mutating_webhook_configuration_update,
    "ValidatingAdmissionPolicy": validate_validating_admission_policy_update,
    "ValidatingAdmissionPolicyBinding": validate_validating_admission_policy_binding_update,
    "ValidatingWebhookConfiguration": validate_validating_webhook_configuration_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "ValidatingAdmissionPolicy": validate_validating_admission_policy_status_update,
}
