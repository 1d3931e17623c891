"""authorization.k8s.io: access reviews for a user or oneself, and rules reviews."""

from __future__ import annotations

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
from pybernetes.api.authorization.validation import CREATE
from pybernetes.api.errors import BadRequest, Invalid
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resources import Resource
from pybernetes.api.times import rfc3339
from pybernetes.net.http import Request, Response

from ..authz.authorizer import Decision
from ..authz.messages import aggregate
from ..authz.selectors import selectors_in, selectors_of
from ..authz.union import decide
from ..pipeline.options import write_options
from ..registry.registry import Registry
from ..requestinfo import RequestInfo
from ..subresources.body import admit_body, answer_object, decode_body
from ..user import User
from .managed_fields import track_review

API_VERSION = "authorization.k8s.io/v1"


async def subject_access_reviews(registry: Registry, resource: Resource, request: Request) -> Response:
    """Answer for the user that the body names."""
    cls = LocalSubjectAccessReview if resource.kind == "LocalSubjectAccessReview" else SubjectAccessReview
    review = await _admitted(registry, resource, request, _review(registry, resource, request, cls))
    spec = review.spec
    user = User(spec.user or "", spec.uid or "", tuple(spec.groups or ()), spec.extra or {})
    review.status = await _decide(registry, user, spec)
    return answer_object(request, review, API_VERSION, 201)


async def self_subject_access_reviews(registry: Registry, resource: Resource, request: Request) -> Response:
    """Answer for the caller."""
    review = _review(registry, resource, request, SelfSubjectAccessReview)
    review = await _admitted(registry, resource, request, review)
    review.status = await _decide(registry, request.user, review.spec)
    return answer_object(request, review, API_VERSION, 201)


async def self_subject_rules_reviews(registry: Registry, resource: Resource, request: Request) -> Response:
    """Everything the caller may do in a namespace, as far as the authorizers can say it in rules."""
    review = await _admitted(registry, resource, request, _decode(request, SelfSubjectRulesReview))
    namespace = review.spec.namespace if review.spec else None
    if not namespace:
        raise BadRequest("no namespace on request")
    found = [authorizer.rules(request.user, namespace) for authorizer in registry.authorizers]
    errors = [each.evaluation_error for each in found if each.evaluation_error]
    review.metadata = ObjectMeta()
    review.spec = SelfSubjectRulesReviewSpec()  # upstream does not repeat the question
    review.status = SubjectRulesReviewStatus(
        resource_rules=[rule for each in found for rule in each.resource_rules or ()],
        non_resource_rules=[rule for each in found for rule in each.non_resource_rules or ()],
        incomplete=any(each.incomplete for each in found),
        evaluation_error=aggregate(errors) if errors else None,
    )
    return answer_object(request, review, API_VERSION, 201)


def _review(registry: Registry, resource: Resource, request: Request, cls: Any) -> Any:
    """The question in the body, if it is one. Raises BadRequest or Invalid."""
    review = _decode(request, cls)
    meta = review.metadata
    if resource.namespaced:
        namespace = request.info.namespace
        if meta.namespace and meta.namespace != namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        meta.namespace = namespace
    else:
        meta.namespace = None
    options = write_options(request.info.query, "CreateOptions")
    track_review(resource, review, request, options, rfc3339(registry.clock.now()))
    errors = CREATE[resource.kind](review)
    if errors:
        raise Invalid(resource.group, "", "", errors)  # upstream leaves the kind out
    return review


async def _admitted(registry: Registry, resource: Resource, request: Request, review: Any) -> Any:
    options = write_options(request.info.query, "CreateOptions")
    dry_run = options.dry_run
    return await admit_body(registry, request, resource, review, API_VERSION, dry_run=dry_run, options=options)


def _decode(request: Request, cls: Any) -> Any:
    options = write_options(request.info.query, "CreateOptions")
    review = decode_body(request, cls, API_VERSION, options.field_validation)
    review.metadata = review.metadata or ObjectMeta()
    return review


async def _decide(registry: Registry, user: User, spec: Any) -> SubjectAccessReviewStatus:
    question = _question(spec)
    decision, reason, error = await decide(registry.authorizers, user, question)
    problems = ([error] if error else []) + selectors_of(question).problems()
    return SubjectAccessReviewStatus(
        allowed=decision is Decision.ALLOW,
        denied=decision is Decision.DENY or None,
        reason=reason or None,
        evaluation_error="; ".join(problems) or None,
    )


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
        asked.version or "*",
        asked.resource or "",
        asked.subresource or "",
        asked.namespace or "",
        asked.name or "",
        selectors=selectors_in(asked),
    )
