"""RBAC: roles and bindings decide. It allows or has no opinion; it never denies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybernetes.api.authorization.v1 import NonResourceRule, ResourceRule, SubjectRulesReviewStatus

from ..requestinfo import RequestInfo
from ..user import User
from .authorizer import ALLOW, NO_OPINION, Answer
from .messages import aggregate
from .resolver import resolver

if TYPE_CHECKING:
    from ..registry.registry import Registry


class RBAC:
    """Asks the bindings."""

    kind = "RBAC"
    name = "rbac"

    def __init__(self, registry: Registry) -> None:
        self._resolver = resolver(registry)

    def authorize(self, user: User, info: RequestInfo) -> Answer:
        """Allowed if a rule of a bound role says so."""
        grants = self._resolver.grants(user, info.namespace)
        if info.is_resource:
            source = grants.resource((info.verb, info.group, info.resource, info.subresource), info.object_name)
        else:
            source = grants.path(info.verb, info.path)
        if source is not None:
            return ALLOW, f"RBAC: allowed by {source}"
        return NO_OPINION, f"RBAC: {aggregate(grants.errors)}" if grants.errors else ""

    def rules(self, user: User, namespace: str) -> SubjectRulesReviewStatus:
        """The rules of all bound roles."""
        grants = self._resolver.grants(user, namespace)
        found = grants.rules
        return SubjectRulesReviewStatus(
            resource_rules=[
                ResourceRule(
                    verbs=rule.verbs,
                    api_groups=rule.api_groups,
                    resources=rule.resources,
                    resource_names=rule.resource_names,
                )
                for rule in found
                if rule.resources
            ],
            non_resource_rules=[
                NonResourceRule(verbs=rule.verbs, non_resource_urls=rule.non_resource_urls)
                for rule in found
                if rule.non_resource_urls
            ],
            incomplete=False,
            evaluation_error=aggregate(grants.errors) if grants.errors else None,
        )
