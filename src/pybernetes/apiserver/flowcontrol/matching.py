"""Which FlowSchema a request belongs to: the first that matches, by precedence and then by name."""

from __future__ import annotations

from typing import Any

from pybernetes.api.flowcontrol.v1 import FlowSchema, NonResourcePolicyRule, ResourcePolicyRule, Subject

from ..requestinfo import RequestInfo
from ..user import User

_ACCOUNT = "system:serviceaccount:"


def in_order(schemas: list[FlowSchema]) -> list[FlowSchema]:
    """In the order in which they are tried."""
    return sorted(schemas, key=lambda each: (each.spec.matching_precedence or 0, each.metadata.name))  # type: ignore[union-attr]


def matches(schema: FlowSchema, user: User, info: RequestInfo) -> bool:
    """Whether a request belongs to a schema."""
    spec = schema.spec
    for rule in (spec and spec.rules) or ():
        if any(_subject_matches(subject, user) for subject in rule.subjects or ()):
            if info.is_resource:
                if any(_resource_matches(each, info) for each in rule.resource_rules or ()):
                    return True
            elif any(_path_matches(each, info) for each in rule.non_resource_rules or ()):
                return True
    return False


def distinguisher(schema: FlowSchema, user: User, info: RequestInfo) -> str:
    """The flow distinguisher of a request."""
    method: Any = schema.spec and schema.spec.distinguisher_method
    if method is None:
        return ""
    return user.name if method.type == "ByUser" else info.namespace


def _subject_matches(subject: Subject, user: User) -> bool:
    if subject.user is not None:
        return subject.user.name in ("*", user.name)
    if subject.group is not None:
        return subject.group.name == "*" or subject.group.name in user.groups
    account = subject.service_account
    if account is None:
        return False
    prefix = f"{_ACCOUNT}{account.namespace}:"
    return user.name.startswith(prefix) if account.name == "*" else user.name == prefix + (account.name or "")


def _resource_matches(rule: ResourcePolicyRule, info: RequestInfo) -> bool:
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    if not _has(rule.verbs, info.verb) or not _has(rule.resources, resource) or not _has(rule.api_groups, info.group):
        return False
    return _has(rule.namespaces, info.namespace) if info.namespace else bool(rule.cluster_scope)


def _path_matches(rule: NonResourcePolicyRule, info: RequestInfo) -> bool:
    if not _has(rule.verbs, info.verb):
        return False
    for url in rule.non_resource_urls or ():
        prefix = url.removesuffix("*")
        if url in ("*", info.path) or info.path.startswith(prefix if prefix.endswith("/") else f"{prefix}/"):
            return True
    return False


def _has(values: list[str] | None, wanted: str) -> bool:
    return values is not None and (wanted in values or "*" in values)
