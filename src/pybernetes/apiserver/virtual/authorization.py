"""authorization.k8s.io: may somebody, or may I, do something, and what may I do at all?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pybernetes.api.authorization.v1 import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
    SubjectAccessReview,
    SubjectAccessReviewStatus,
    SubjectRulesReviewStatus,
)
from pybernetes.api.errors import BadRequest, Invalid
from pybernetes.api.field import FieldError, invalid
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resources import Resource
from pybernetes.api.times import rfc3339

from ..authn.user import User
from ..authz.authorizer import Decision
from ..http import Request, Response
from ..registry.registry import Registry
from ..requestinfo import RequestInfo
from ..subresources.body import answer_object, decode_body
from ..verbs.managing import track_review
from ..verbs.options import write_options

API_VERSION = "authorization.k8s.io/v1"


async def subject_access_reviews(registry: Registry, resource: Resource, request: Request) -> Response:
    """Answer for the user that the body names."""
    cls = LocalSubjectAccessReview if resource.kind == "LocalSubjectAccessReview" else SubjectAccessReview
    review: Any = _decode(request, cls)
    _track(registry, resource, review, request)
    spec = review.spec
    errors = _check(spec, resource.kind)
    if not spec or not (spec.user or spec.groups):
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    if resource.namespaced:
        review.metadata.namespace = request.info.namespace
        asked, other = (spec.resource_attributes, spec.non_resource_attributes) if spec else (None, None)
        if asked is not None and (asked.namespace or "") != request.info.namespace:
            where = "spec.resourceAttributes.namespace"
            errors.append(invalid(where, asked.namespace or "", "must match metadata.namespace"))
        if other is not None:
            detail = "disallowed on this kind of request"
            errors.append(invalid("spec.nonResourceAttributes", _shown(other), detail))
    _refuse(resource, errors)
    user = User(spec.user or "", spec.uid or "", tuple(spec.groups or ()), spec.extra or {})
    review.status = await _decide(registry, user, spec)
    return answer_object(request, review, API_VERSION, 201)


async def self_subject_access_reviews(registry: Registry, resource: Resource, request: Request) -> Response:
    """Answer for the caller."""
    review = _decode(request, SelfSubjectAccessReview)
    _track(registry, resource, review, request)
    _refuse(resource, _check(review.spec, resource.kind))
    review.status = await _decide(registry, request.user, review.spec)
    return answer_object(request, review, API_VERSION, 201)


async def self_subject_rules_reviews(registry: Registry, resource: Resource, request: Request) -> Response:
    """Everything the caller may do in a namespace, as far as the authorizers can say it in rules."""
    review = _decode(request, SelfSubjectRulesReview)
    namespace = review.spec.namespace if review.spec else None
    if not namespace:
        raise BadRequest("no namespace on request")
    found = [authorizer.rules(request.user, namespace) for authorizer in registry.authorizers]
    review.spec = SelfSubjectRulesReviewSpec()  # upstream does not repeat the question
    review.status = SubjectRulesReviewStatus(
        resource_rules=[rule for each in found for rule in each.resource_rules or ()],
        non_resource_rules=[rule for each in found for rule in each.non_resource_rules or ()],
        incomplete=any(each.incomplete for each in found),
    )
    return answer_object(request, review, API_VERSION, 201)


def _decode(request: Request, cls: Any) -> Any:
    options = write_options(request.info.query, "CreateOptions")
    review = decode_body(request, cls, API_VERSION, options.field_validation)
    review.metadata = review.metadata or ObjectMeta()
    return review


def _track(registry: Registry, resource: Resource, review: Any, request: Request) -> None:
    options = write_options(request.info.query, "CreateOptions")
    track_review(resource, review, request, options, rfc3339(registry.clock.now()))


def _check(spec: Any, kind: str) -> list[FieldError]:
    resource = spec.resource_attributes if spec else None
    other = spec.non_resource_attributes if spec else None
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [invalid("spec.nonResourceAttributes", _shown(other), detail)]
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid("spec.resourceAttributes", None, detail)]
    return []


def _shown(attributes: Any) -> dict[str, str]:
    return {"Path": attributes.path or "", "Verb": attributes.verb or ""}


def _refuse(resource: Resource, errors: list[FieldError]) -> None:
    if errors:
        raise Invalid(resource.group, "", "", errors)  # upstream leaves the kind out


async def _decide(registry: Registry, user: User, spec: Any) -> SubjectAccessReviewStatus:
    reasons = []
    for authorizer in registry.authorizers:
        decision, reason = await authorizer.authorize(user, _question(spec))
        if decision is Decision.ALLOW:
            return SubjectAccessReviewStatus(allowed=True, reason=reason or None)
        if reason:
            reasons.append(reason)
        if decision is Decision.DENY:
            return SubjectAccessReviewStatus(allowed=False, denied=True, reason=", ".join(reasons) or None)
    return SubjectAccessReviewStatus(allowed=False, reason=", ".join(reasons) or None)


def _question(spec: Any) -> RequestInfo:
    asked = spec.resource_attributes
    if asked is None:
        other = spec.non_resource_attributes
        return RequestInfo(other.path or "", other.verb or "", {})
    return RequestInfo(
        "",
        asked.verb or "",
        {},
        True,
        asked.group or "",
        asked.version or "",
        asked.resource or "",
        asked.subresource or "",
        asked.namespace or "",
        asked.name or "",
    )


HANDLERS: dict[str, Callable[[Registry, Resource, Request], Awaitable[Response]]] = {
    "subjectaccessreviews": subject_access_reviews,
    "localsubjectaccessreviews": subject_access_reviews,
    "selfsubjectaccessreviews": self_subject_access_reviews,
    "selfsubjectrulesreviews": self_subject_rules_reviews,
}
