"""MutatingWebhookConfigurations and ValidatingWebhookConfigurations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ...field import FieldError, Path, duplicate, invalid, not_supported, repeated, required
from ...meta.validation import has_invalid_label_value, validate_label_selector, validate_object_meta
from ...names import is_dns1035_label, is_dns1123_subdomain, name_is_dns_subdomain
from ...webhooks import validate_webhook_service, validate_webhook_url
from ..v1 import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from .rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    validate_match_conditions,
    validate_rule,
)

REVIEW_VERSIONS: Final = ("v1", "v1beta1")
SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
MAX_TIMEOUT_SECONDS: Final = 30

_WEBHOOKS = Path("webhooks")

Webhook = MutatingWebhook | ValidatingWebhook


class Leniency(NamedTuple):
    """Rules that are relaxed because the stored object violates them already."""

    match_conditions: bool = False
    side_effects: bool = False
    review_versions: bool = False
    repeated_names: bool = False
    label_values: bool = False


STRICT: Final = Leniency()


def validate_mutating_webhook_configuration(obj: MutatingWebhookConfiguration) -> list[FieldError]:
    """Validate a new MutatingWebhookConfiguration."""
    return _validate(obj, obj.webhooks or [], STRICT)


def validate_mutating_webhook_configuration_update(
    new: MutatingWebhookConfiguration, old: MutatingWebhookConfiguration
) -> list[FieldError]:
    """Everything may change; what was wrong before may stay."""
    return _validate(new, new.webhooks or [], _leniency(new.webhooks or [], old.webhooks or []))


def validate_validating_webhook_configuration(obj: ValidatingWebhookConfiguration) -> list[FieldError]:
    """Validate a new ValidatingWebhookConfiguration."""
    return _validate(obj, obj.webhooks or [], STRICT)


def validate_validating_webhook_configuration_update(
    new: ValidatingWebhookConfiguration, old: ValidatingWebhookConfiguration
) -> list[FieldError]:
    """Everything may change; what was wrong before may stay."""
    return _validate(new, new.webhooks or [], _leniency(new.webhooks or [], old.webhooks or []))


def _leniency(new: Sequence[Webhook], old: Sequence[Webhook]) -> Leniency:
    names = [hook.name for hook in old]
    return Leniency(
        match_conditions=len(new) == len(old)
        and all(a.match_conditions == b.match_conditions for a, b in zip(new, old, strict=True)),
        side_effects=any(hook.side_effects not in NO_SIDE_EFFECTS for hook in old),
        review_versions=any(
            hook.admission_review_versions and not set(hook.admission_review_versions) & set(REVIEW_VERSIONS)
            for hook in old
        ),
        repeated_names=len(set(names)) < len(names),
        label_values=any(
            has_invalid_label_value(hook.namespace_selector) or has_invalid_label_value(hook.object_selector)
            for hook in old
        ),
    )


def _validate(obj: Any, hooks: Sequence[Webhook], lenient: Leniency) -> list[FieldError]:
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain, custom=True)
    seen: set[str] = set()
    for index, hook in enumerate(hooks):
        path, name = _WEBHOOKS.index(index), hook.name or ""
        errors += _validate_webhook(hook, path, lenient)
        errors += _validate_review_versions(
            hook.admission_review_versions or [], path.child("admissionReviewVersions"), lenient.review_versions
        )
        if name and name in seen and not lenient.repeated_names:
            errors.append(duplicate(path.child("name"), name))
        seen.add(name)
    return errors


def _validate_webhook(hook: Webhook, path: Path, lenient: Leniency) -> list[FieldError]:
    errors = _validate_name(hook.name or "", path.child("name"))
    for index, rule in enumerate(hook.rules or ()):
        errors += validate_rule(rule, path.child("rules").index(index))
    if hook.failure_policy is not None and hook.failure_policy not in FAILURE_POLICIES:
        errors.append(not_supported(path.child("failurePolicy"), hook.failure_policy, FAILURE_POLICIES))
    if hook.match_policy is not None and hook.match_policy not in MATCH_POLICIES:
        errors.append(not_supported(path.child("matchPolicy"), hook.match_policy, MATCH_POLICIES))
    allowed = SIDE_EFFECTS if lenient.side_effects else NO_SIDE_EFFECTS
    if hook.side_effects is None:
        errors.append(required(path.child("sideEffects"), f"must specify one of {', '.join(allowed)}"))
    elif hook.side_effects not in allowed:
        errors.append(not_supported(path.child("sideEffects"), hook.side_effects, allowed))
    seconds = hook.timeout_seconds
    if seconds is not None and not 1 <= seconds <= MAX_TIMEOUT_SECONDS:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(path.child("timeoutSeconds"), seconds, detail))
    for field, selector in (
        ("namespaceSelector", hook.namespace_selector),
        ("objectSelector", hook.object_selector),
    ):
        errors += validate_label_selector(selector, path.child(field), allow_invalid_values=lenient.label_values)
    if isinstance(hook, MutatingWebhook):
        policy = hook.reinvocation_policy
        if policy is not None and policy not in REINVOCATION_POLICIES:
            errors.append(not_supported(path.child("reinvocationPolicy"), policy, REINVOCATION_POLICIES))
    errors += _validate_client_config(hook.client_config or WebhookClientConfig(), path.child("clientConfig"))
    if not lenient.match_conditions:
        errors += validate_match_conditions(hook.match_conditions, path.child("matchConditions"))
    return errors


def _validate_name(name: str, path: Path) -> list[FieldError]:
    if not name:
        return [required(path)]
    if problems := is_dns1123_subdomain(name):
        return [invalid(path, name, ",".join(problems))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _validate_client_config(config: WebhookClientConfig, path: Path) -> list[FieldError]:
    service = config.service
    if (config.url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if service is not None:
        return validate_webhook_service(
            service.name, service.namespace, service.path, service.port, path.child("service")
        )
    return validate_webhook_url(config.url or "", path.child("url"))


def _validate_review_versions(versions: list[str], path: Path, lenient: bool) -> list[FieldError]:
    if not versions:
        return [required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}")]
    errors: list[FieldError] = []
    again = repeated(versions)
    for index, version in enumerate(versions):
        if index in again:
            errors.append(invalid(path.index(index), version, "duplicate version"))
            continue
        errors += [invalid(path.index(index), version, problem) for problem in is_dns1035_label(version)]
    if not lenient and not set(versions) & set(REVIEW_VERSIONS):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))
    return errors
