"""An AuthorizationConfiguration file: the authorizers in order, webhooks with their settings.

Read at the start, and again when the file changes; a file that is wrong then is logged and the old one stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from pybernetes.api import configfile, names
from pybernetes.api.field import (
    FieldError,
    aggregate,
    duplicate,
    invalid,
    not_supported,
    required,
    too_many,
)
from pybernetes.api.field import Path as FieldPath
from pybernetes.api.times import parse_duration
from pybernetes.api.types import Duration

from .conditions import MAXIMUM, compile_condition
from .flags import MODES
from .messages import aggregate as join

_SCHEME = configfile.Scheme(
    {(f"apiserver.config.k8s.io/{version}", "AuthorizationConfiguration") for version in ("v1", "v1beta1", "v1alpha1")},
    "k8s.io/apiserver/pkg/apis/apiserver/load/load.go:32",
)
_LONGEST = 30.0  # seconds to wait for a webhook


class WebhookMatchCondition(configfile.Section):
    expression: str = ""


class WebhookConnectionInfo(configfile.Section):
    type: str = ""
    kube_config_file: str | None = None


class WebhookConfiguration(configfile.Section):
    """How a webhook is asked."""

    authorized_ttl: Duration = msgspec.field(default="", name="authorizedTTL")
    cache_authorized_requests: bool = True
    unauthorized_ttl: Duration = msgspec.field(default="", name="unauthorizedTTL")
    cache_unauthorized_requests: bool = True
    timeout: Duration = ""
    subject_access_review_version: str = ""
    match_condition_subject_access_review_version: str = ""
    failure_policy: str = ""
    connection_info: WebhookConnectionInfo = msgspec.field(default_factory=WebhookConnectionInfo)
    match_conditions: list[WebhookMatchCondition] = []


class AuthorizerConfiguration(configfile.Section):
    """One authorizer."""

    type: str = ""
    name: str = ""
    webhook: WebhookConfiguration | None = None


class AuthorizationConfiguration(configfile.Section):
    """All of the file."""

    kind: str = ""
    api_version: str = ""
    authorizers: list[AuthorizerConfiguration] = []


def read(data: bytes, needed: Iterable[str] = ()) -> AuthorizationConfiguration:
    """The configuration in a file, with authorizers of the needed types. Raises ValueError with all that is wrong."""
    if data:
        try:
            configuration = configfile.load(data, AuthorizationConfiguration, _SCHEME)
        except configfile.ConfigError as error:
            raise ValueError(f"failed to load AuthorizationConfiguration from file: {error}") from None
    else:
        configuration = AuthorizationConfiguration()
    for each in configuration.authorizers:
        if each.webhook is not None:
            _set_defaults(each.webhook)
    errors = validate(configuration)
    if errors:
        raise ValueError(aggregate(errors))
    wrong = [
        f"expected name {each.type.lower()} for authorizer {each.type} instead of {each.name}"
        for each in configuration.authorizers
        if each.type != "Webhook" and each.name != each.type.lower()
    ]
    missing = sorted(set(needed) - {each.type for each in configuration.authorizers})
    if missing:
        wrong.append(f"missing required types: [{' '.join(missing)}]")
    if wrong:
        raise ValueError(join(wrong))
    return configuration


def _set_defaults(webhook: WebhookConfiguration) -> None:
    """A time of zero is one that was not given."""
    if not duration(webhook.authorized_ttl):
        webhook.authorized_ttl = "5m0s"
    if not duration(webhook.unauthorized_ttl):
        webhook.unauthorized_ttl = "30s"


def validate(configuration: AuthorizationConfiguration) -> list[FieldError]:
    """Validation errors of a configuration."""
    path = FieldPath("authorizers")
    if not configuration.authorizers:
        return [required(path, "at least one authorization mode must be defined")]
    errors: list[FieldError] = []
    types: set[str] = set()
    called: set[str] = set()
    for index, each in enumerate(configuration.authorizers):
        at = path.index(index)
        if not each.type:
            errors.append(required(at.child("type")))
            continue
        if each.type not in MODES:
            errors.append(not_supported(at.child("type"), each.type, sorted(MODES)))
            continue
        if each.type in types and each.type != "Webhook":
            errors.append(duplicate(at.child("type"), each.type))
            continue
        types.add(each.type)
        if not each.name:
            errors.append(required(at.child("name")))
        elif each.name in called:
            errors.append(duplicate(at.child("name"), each.name))
        elif problems := names.is_dns1123_subdomain(each.name):
            errors.append(invalid(at.child("name"), each.name, f"authorizer name is invalid: {', '.join(problems)}"))
        called.add(each.name)
        if each.type != "Webhook":
            if each.webhook is not None:
                errors.append(invalid(at.child("webhook"), "non-null", "may only be specified when type=Webhook"))
        elif each.webhook is None:
            errors.append(required(at.child("webhook"), "required when type=Webhook"))
        else:
            errors += _validate_webhook(each.webhook, at)
    return errors


def _validate_webhook(webhook: WebhookConfiguration, path: FieldPath) -> list[FieldError]:
    errors = _validate_duration(path.child("timeout"), webhook.timeout, "must be > 0s and <= 30s", _LONGEST)
    errors += _validate_duration(path.child("authorizedTTL"), webhook.authorized_ttl, "must be > 0s")
    errors += _validate_duration(path.child("unauthorizedTTL"), webhook.unauthorized_ttl, "must be > 0s")
    errors += _choice(
        path.child("subjectAccessReviewVersion"), webhook.subject_access_review_version, ("v1", "v1beta1")
    )
    at, version = (
        path.child("matchConditionSubjectAccessReviewVersion"),
        webhook.match_condition_subject_access_review_version,
    )
    if version:
        errors += _choice(at, version, ("v1",))
    elif webhook.match_conditions:
        errors.append(required(at, "required if match conditions are specified"))
    errors += _choice(path.child("failurePolicy"), webhook.failure_policy, ("NoOpinion", "Deny"))
    errors += _validate_connection(webhook.connection_info, path.child("connectionInfo"))
    return errors + _validate_conditions(webhook.match_conditions, path.child("matchConditions"))


def _validate_connection(connection: WebhookConnectionInfo, path: FieldPath) -> list[FieldError]:
    file = connection.kube_config_file
    at = path.child("kubeConfigFile")
    errors = _choice(path.child("type"), connection.type, ("InClusterConfig", "KubeConfigFile"))
    if connection.type == "InClusterConfig" and file is not None:
        errors.append(invalid(at, file, "can only be set when type=KubeConfigFile"))
    if connection.type == "KubeConfigFile":
        if not file:
            errors.append(required(at))
        elif not Path(file).is_absolute():
            errors.append(invalid(at, file, "must be an absolute path"))
        elif not Path(file).exists():
            errors.append(invalid(at, file, f"error loading file: stat {file}: no such file or directory"))
        elif not Path(file).is_file():
            errors.append(invalid(at, file, "must be a regular file"))
    return errors


def _validate_conditions(conditions: list[WebhookMatchCondition], path: FieldPath) -> list[FieldError]:
    if len(conditions) > MAXIMUM:
        return [too_many(path, len(conditions), MAXIMUM)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at, expression = path.index(index).child("expression"), condition.expression
        if not expression.strip():
            errors.append(required(at))
        elif expression in seen:
            errors.append(duplicate(at, expression))
        else:
            seen.add(expression)
            try:
                compile_condition(expression)
            except ValueError as error:
                errors.append(invalid(at, expression, str(error)))
    return errors


def _validate_duration(path: FieldPath, text: str, detail: str, longest: float | None = None) -> list[FieldError]:
    seconds = duration(text)
    if not seconds:
        return [required(path)]
    if seconds < 0 or (longest is not None and seconds > longest):
        return [invalid(path, text, detail)]
    return []


def _choice(path: FieldPath, value: Any, allowed: tuple[str, ...]) -> list[FieldError]:
    if not value:
        return [required(path)]
    return [] if value in allowed else [not_supported(path, value, allowed)]


def duration(text: str) -> float:
    """Seconds of a text that is known to be good."""
    return parse_duration(text) / 1e9 if text else 0.0
