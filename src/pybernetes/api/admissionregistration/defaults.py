"""Defaults for the kinds of admissionregistration/v1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ..meta.v1.labelselector import LabelSelector
from .v1 import (
    MatchResources,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicySpec,
    MutatingWebhook,
    MutatingWebhookConfiguration,
    NamedRuleWithOperations,
    RuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicySpec,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
)

TIMEOUT_SECONDS: Final = 10
HTTPS_PORT: Final = 443


def default_mutating_webhook_configuration(obj: MutatingWebhookConfiguration) -> None:
    """Webhooks must answer within ten seconds, and are asked once."""
    for hook in obj.webhooks or ():
        _default_webhook(hook)
        if hook.reinvocation_policy is None:
            hook.reinvocation_policy = "Never"


def default_validating_webhook_configuration(obj: ValidatingWebhookConfiguration) -> None:
    """Webhooks must answer within ten seconds."""
    for hook in obj.webhooks or ():
        _default_webhook(hook)


def _default_webhook(hook: MutatingWebhook | ValidatingWebhook) -> None:
    if hook.failure_policy is None:
        hook.failure_policy = "Fail"
    if hook.match_policy is None:
        hook.match_policy = "Equivalent"
    if hook.namespace_selector is None:
        hook.namespace_selector = LabelSelector()
    if hook.object_selector is None:
        hook.object_selector = LabelSelector()
    if hook.timeout_seconds is None:
        hook.timeout_seconds = TIMEOUT_SECONDS
    service = hook.client_config.service if hook.client_config else None
    if service is not None and service.port is None:
        service.port = HTTPS_PORT
    _default_rules(hook.rules)


def _default_rules(rules: Iterable[RuleWithOperations | NamedRuleWithOperations] | None) -> None:
    for rule in rules or ():
        if rule.scope is None:
            rule.scope = "*"


def default_validating_admission_policy(obj: ValidatingAdmissionPolicy) -> None:
    """A policy that cannot be evaluated refuses."""
    if obj.spec is None:
        obj.spec = ValidatingAdmissionPolicySpec()
    if obj.spec.failure_policy is None:
        obj.spec.failure_policy = "Fail"
    _default_match(obj.spec.match_constraints)


def default_mutating_admission_policy(obj: MutatingAdmissionPolicy) -> None:
    """A policy that cannot be evaluated refuses."""
    if obj.spec is None:
        obj.spec = MutatingAdmissionPolicySpec()
    if obj.spec.failure_policy is None:
        obj.spec.failure_policy = "Fail"
    _default_match(obj.spec.match_constraints)


def default_binding(obj: MutatingAdmissionPolicyBinding | ValidatingAdmissionPolicyBinding) -> None:
    """A binding that says where it applies matches as a policy does."""
    if obj.spec is not None:
        _default_match(obj.spec.match_resources)


def _default_match(match: MatchResources | None) -> None:
    if match is None:
        return
    if match.match_policy is None:
        match.match_policy = "Equivalent"
    if match.namespace_selector is None:
        match.namespace_selector = LabelSelector()
    if match.object_selector is None:
        match.object_selector = LabelSelector()
    _default_rules(match.resource_rules)
    _default_rules(match.exclude_resource_rules)


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {
    "MutatingAdmissionPolicy": default_mutating_admission_policy,
    "MutatingAdmissionPolicyBinding": default_binding,
    "MutatingWebhookConfiguration": default_mutating_webhook_configuration,
    "ValidatingAdmissionPolicy": default_validating_admission_policy,
    "ValidatingAdmissionPolicyBinding": default_binding,
    "ValidatingWebhookConfiguration": default_validating_webhook_configuration,
}
