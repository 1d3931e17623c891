"""The audit policy: the first rule that matches sets the level; without one nothing is recorded."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from pybernetes.api import configfile, names
from pybernetes.api.field import FieldError, aggregate, invalid, not_supported, required
from pybernetes.api.field import Path as FieldPath

from ..requestinfo import RequestInfo
from ..user import User
from . import metrics
from .flags import API_VERSION

log = logging.getLogger(__name__)

NONE, METADATA, REQUEST, REQUEST_RESPONSE = range(4)
LEVELS = ("None", "Metadata", "Request", "RequestResponse")
_SCHEME = configfile.Scheme({(API_VERSION, "Policy")}, "k8s.io/apiserver/pkg/audit/scheme.go:30")
STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")


class GroupResources(configfile.Section):
    """Resources of a group; no resources = all of them."""

    group: str = ""
    resources: list[str] = []
    resource_names: list[str] = []


class PolicyRule(configfile.Section):
    """Requests, and how much of them is recorded. What is empty matches everything."""

    level: str = ""
    users: list[str] = []
    user_groups: list[str] = []
    verbs: list[str] = []
    resources: list[GroupResources] = []
    namespaces: list[str] = []
    non_resource_urls: list[str] = msgspec.field(default_factory=list, name="nonResourceURLs")
    omit_stages: list[str] = []
    omit_managed_fields: bool | None = None


class Policy(configfile.Section):
    """All rules."""

    kind: str = ""
    api_version: str = ""
    metadata: Any = None
    rules: list[PolicyRule] = []
    omit_stages: list[str] = []
    omit_managed_fields: bool = False


class Recorded(msgspec.Struct, frozen=True):
    """How one request is recorded."""

    level: int
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


class PolicyEvaluator:
    """Finds the rule of a request."""

    def __init__(self, policy: Policy) -> None:
        self._rules = [
            (
                rule,
                Recorded(
                    LEVELS.index(rule.level),
                    frozenset((*policy.omit_stages, *rule.omit_stages)),
                    policy.omit_managed_fields if rule.omit_managed_fields is None else rule.omit_managed_fields,
                ),
            )
            for rule in policy.rules
        ]
        self._default = Recorded(NONE)

    def evaluate(self, user: User | None, info: RequestInfo) -> Recorded:
        """The level and stages for a request; `user` is None if it was not authenticated."""
        found = self._default
        for rule, recorded in self._rules:
            if _matches(rule, user, info):
                found = recorded
                break
        metrics.LEVELS.add(LEVELS[found.level])
        return found


def read(file: Path) -> Policy:
    """The policy in a file; unknown fields are logged and ignored. Raises ValueError or OSError."""
    try:
        return _read(file)
    except ValueError as error:
        raise ValueError(f"loading audit policy file: {error}: from file {file}") from None


def _read(file: Path) -> Policy:
    try:
        value, problems = configfile.parse(file.read_bytes())
        version, kind = configfile.named_type(value)
        if not version:
            raise ValueError("unknown group version field audit.k8s.io/__internal, Kind=Policy in policy")
        if (version, kind or "Policy") not in _SCHEME.kinds:
            raise configfile.not_registered(version, kind, _SCHEME)
        policy, unknown = configfile.decode(Policy, value)
    except configfile.ConfigError as error:
        raise ValueError(f"failed decoding: {error}") from None
    if problems or unknown:
        log.warning("Audit policy contains errors, falling back to lenient decoding: %s", "; ".join(problems + unknown))
    if not policy.rules:
        raise ValueError("loaded illegal policy with 0 rules")
    errors = validate(policy)
    if errors:
        raise ValueError(aggregate(errors))
    return policy


def validate(policy: Policy) -> list[FieldError]:
    """Validation errors of a policy."""
    errors = _validate_stages(policy.omit_stages, FieldPath("omitStages"))
    for index, rule in enumerate(policy.rules):
        errors += _validate_rule(rule, FieldPath("rules").index(index))
    return errors


def _validate_rule(rule: PolicyRule, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if not rule.level:
        errors.append(required(path.child("level")))
    elif rule.level not in LEVELS:
        errors.append(not_supported(path.child("level"), rule.level, LEVELS))
    urls = path.child("nonResourceURLs")
    for index, url in enumerate(rule.non_resource_urls):
        if url == "*":
            continue
        if not url.startswith("/"):
            detail = "non-resource URL rules must begin with a '/' character"
            errors.append(invalid(urls.index(index), url, detail))
        if "*" in url[:-1]:
            detail = "non-resource URL wildcards '*' must be the final character of the rule"
            errors.append(invalid(urls.index(index), url, detail))
    resources = path.child("resources")
    for each in rule.resources:
        if each.group not in ("", "*"):
            problems = names.is_dns1123_subdomain(each.group)
            if problems:
                errors.append(invalid(resources.child("group"), each.group, ",".join(problems)))
        if each.resource_names and not each.resources:
            detail = "using resourceNames requires at least one resource"
            errors.append(invalid(resources.child("resourceNames"), each.resource_names, detail))
    errors += _validate_stages(rule.omit_stages, path.child("omitStages"))
    if rule.non_resource_urls and (rule.resources or rule.namespaces):
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        errors.append(invalid(urls, rule.non_resource_urls, detail))
    return errors


def _validate_stages(stages: Sequence[str], path: FieldPath) -> list[FieldError]:
    return [
        invalid(path.index(index), stage, f"allowed stages are {','.join(STAGES)}")
        for index, stage in enumerate(stages)
        if stage not in STAGES
    ]


def _matches(rule: PolicyRule, user: User | None, info: RequestInfo) -> bool:
    if rule.users and (user is None or user.name not in rule.users):
        return False
    if rule.user_groups and (user is None or not any(group in rule.user_groups for group in user.groups)):
        return False
    if rule.verbs and info.verb not in rule.verbs:
        return False
    if rule.namespaces or rule.resources:
        return _matches_resource(rule, info)
    if rule.non_resource_urls:
        return not info.is_resource and any(_url_matches(url, info.path) for url in rule.non_resource_urls)
    return True


def _matches_resource(rule: PolicyRule, info: RequestInfo) -> bool:
    if not info.is_resource or (rule.namespaces and info.namespace not in rule.namespaces):
        return False
    if not rule.resources:
        return True
    sub = info.subresource
    wanted = {"*", f"{info.resource}/{sub}" if sub else info.resource, f"{info.resource}/*"}
    if sub:
        wanted.add(f"*/{sub}")
    for each in rule.resources:
        if each.group in (info.group, "*"):
            if not each.resources:
                return True
            named = not each.resource_names or info.object_name in each.resource_names
            if named and not wanted.isdisjoint(each.resources):
                return True
    return False


def _url_matches(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))
