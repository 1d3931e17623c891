"""Webhook configurations, admission policies and their bindings."""

from __future__ import annotations

from typing import Final

from pybernetes.api.admissionregistration.v1 import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingWebhookConfiguration,
    ParamKind,
    ParamRef,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
)
from pybernetes.api.gocompat.goprint import plain
from pybernetes.api.meta.v1 import LabelSelector

from .printer import AGE, NAME, UNSET, Cells, Printer, age, integer, name, text


def _webhooks(webhooks: MutatingWebhookConfiguration | ValidatingWebhookConfiguration, now: float) -> Cells:
    return [name(webhooks), len(webhooks.webhooks or ()), age(webhooks, now)]


def _validating_policy(policy: ValidatingAdmissionPolicy, now: float) -> Cells:
    validations = (policy.spec.validations if policy.spec else None) or ()
    kind = policy.spec.param_kind if policy.spec else None
    return [name(policy), len(validations), _param_kind(kind), age(policy, now)]


def _mutating_policy(policy: MutatingAdmissionPolicy, now: float) -> Cells:
    mutations = (policy.spec.mutations if policy.spec else None) or ()
    kind = policy.spec.param_kind if policy.spec else None
    return [name(policy), len(mutations), _param_kind(kind), age(policy, now)]


def _param_kind(kind: ParamKind | None) -> str:
    return UNSET if kind is None else f"{kind.api_version or ''}/{kind.kind or ''}"


def _binding(binding: MutatingAdmissionPolicyBinding | ValidatingAdmissionPolicyBinding, now: float) -> Cells:
    spec = binding.spec
    policy = (spec.policy_name if spec else None) or ""
    return [name(binding), policy, _param_ref(spec.param_ref if spec else None), age(binding, now)]


def _param_ref(ref: ParamRef | None) -> str:
    if ref is not None and ref.name:
        return f"{ref.namespace or '*'}/{ref.name}"
    if ref is not None and ref.selector is not None:
        return _go_selector(ref.selector)
    return UNSET


def _go_selector(selector: LabelSelector) -> str:
    """Upstream prints the Go value here, not the selector's text form."""
    labels = "".join([f"{key}: {value}," for key, value in sorted((selector.match_labels or {}).items())])
    expressions = "".join(
        [
            f"LabelSelectorRequirement{{Key:{each.key or ''},Operator:{each.operator or ''},"
            f"Values:{plain(each.values or [])},}},"
            for each in selector.match_expressions or ()
        ]
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


_WEBHOOKS: Final = Printer((NAME, integer("Webhooks", "Number of webhooks"), AGE), _webhooks)
_PARAM_KIND: Final = text("ParamKind", "Kind of the policy's parameters")
_BINDING: Final = Printer(
    (
        NAME,
        text("PolicyName", "The policy that is bound"),
        text("ParamRef", "The parameters it gets"),
        AGE,
    ),
    _binding,
)

PRINTERS: Final[dict[str, Printer]] = {
    "MutatingAdmissionPolicy": Printer(
        (NAME, integer("Mutations", "Number of mutations"), _PARAM_KIND, AGE), _mutating_policy
    ),
    "MutatingAdmissionPolicyBinding": _BINDING,
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicy": Printer(
        (NAME, integer("Validations", "Number of validations"), _PARAM_KIND, AGE), _validating_policy
    ),
    "ValidatingAdmissionPolicyBinding": _BINDING,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
}
