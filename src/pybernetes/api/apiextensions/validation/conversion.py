"""How objects of one version become objects of another: not at all, or by a webhook."""

from __future__ import annotations

from typing import Final

from ... import names
from ...field import FieldError, Path, forbidden, invalid, not_supported, repeated, required
from ...webhooks import validate_ca_bundle, validate_webhook_service, validate_webhook_url
from ..v1 import CustomResourceConversion

REVIEW_VERSIONS: Final = ("v1", "v1beta1")


def validate_conversion(
    conversion: CustomResourceConversion, path: Path, *, recognized_version: bool, allow_any_bundle: bool
) -> list[FieldError]:
    """The strategy and what it needs. Paths have upstream's older names."""
    errors: list[FieldError] = []
    strategy = conversion.strategy or ""
    if not strategy:
        errors.append(required(path.child("strategy")))
    elif strategy not in ("None", "Webhook"):
        errors.append(not_supported(path.child("strategy"), strategy, ("None", "Webhook")))
    webhook, at = conversion.webhook, path.child("webhookClientConfig")
    client = webhook.client_config if webhook else None
    versions = webhook.conversion_review_versions or [] if webhook else []
    if strategy != "Webhook":
        detail = "should not be set when strategy is not set to Webhook"
        if client is not None:
            errors.append(forbidden(at, detail))
        if versions:
            errors.append(forbidden(path.child("conversionReviewVersions"), detail))
        return errors
    if client is None:
        errors.append(required(at, "required when strategy is set to Webhook"))
    else:
        if (client.url is None) == (client.service is None):
            errors.append(required(at, "exactly one of url or service is required"))
        elif client.url is not None:
            errors += validate_webhook_url(client.url, at.child("url"))
        elif client.service is not None:
            service = client.service
            errors += validate_webhook_service(
                service.name, service.namespace, service.path, service.port, at.child("service")
            )
        if client.ca_bundle and not allow_any_bundle:
            errors += validate_ca_bundle(client.ca_bundle, at.child("caBundle"))
    at = path.child("conversionReviewVersions")
    return errors + _validate_review_versions(versions, at, recognized_version)


def _validate_review_versions(versions: list[str], path: Path, recognized: bool) -> list[FieldError]:
    if not versions:
        return [required(path)]
    errors: list[FieldError] = []
    again = repeated(versions)
    for index, version in enumerate(versions):
        if index in again:
            errors.append(invalid(path.index(index), version, "duplicate version"))
        else:
            errors += [invalid(path.index(index), version, problem) for problem in names.is_dns1035_label(version)]
    if recognized and not set(versions).intersection(REVIEW_VERSIONS):
        detail = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        errors.append(invalid(path, versions, detail))
    return errors
