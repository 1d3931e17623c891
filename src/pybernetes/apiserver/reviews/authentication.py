"""authentication.k8s.io: whose token is this, and who am I?"""

from __future__ import annotations

from pybernetes.api.authentication.v1 import (
    SelfSubjectReview,
    SelfSubjectReviewStatus,
    TokenReview,
    TokenReviewStatus,
    UserInfo,
)
from pybernetes.api.errors import BadRequest
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resources import Resource
from pybernetes.api.times import rfc3339
from pybernetes.net.http import Request, Response

from ..authn.authenticator import BadCredential
from ..authn.tokens import INVALID, first_word
from ..pipeline.options import write_options
from ..registry.registry import Registry
from ..subresources.body import admit_body, answer_object, decode_body
from ..user import User
from .managed_fields import track_review

API_VERSION = "authentication.k8s.io/v1"


async def token_reviews(registry: Registry, resource: Resource, request: Request) -> Response:
    """Ask the authenticators about the token in the body."""
    options = write_options(request.info.query, "CreateOptions")
    review = decode_body(request, TokenReview, API_VERSION, options.field_validation)
    review.metadata = review.metadata or ObjectMeta()
    review.metadata.namespace = None
    track_review(resource, review, request, options, rfc3339(registry.clock.now()))
    review = await admit_body(
        registry, request, resource, review, API_VERSION, dry_run=options.dry_run, options=options
    )
    token = review.spec.token if review.spec else None
    if not token:
        raise BadRequest("token is required for TokenReview in authentication")
    status = await _review(registry, token, (review.spec and review.spec.audiences) or None)
    review.status = status
    return answer_object(request, review, API_VERSION, 201)


async def _review(registry: Registry, token: str, audiences: list[str] | None) -> TokenReviewStatus:
    """Authenticate a token as from a header; with `audiences`, the response names those it is valid for."""
    tokens = registry.tokens
    token = first_word(token)
    try:
        if tokens is None:
            found = None
        elif audiences:
            found = await tokens.review(token, audiences)
        else:
            found = await tokens.find(token)
    except BadCredential as bad:
        return TokenReviewStatus(user=UserInfo(), error=str(bad))
    if found is None:
        return TokenReviewStatus(user=UserInfo(), error=INVALID)
    return TokenReviewStatus(authenticated=True, user=_info(found.user), audiences=list(found.audiences) or None)


async def self_subject_reviews(registry: Registry, resource: Resource, request: Request) -> Response:
    """Tell the caller who they are."""
    options = write_options(request.info.query, "CreateOptions")
    asked = decode_body(request, SelfSubjectReview, API_VERSION, options.field_validation)
    await admit_body(registry, request, resource, asked, API_VERSION, dry_run=options.dry_run, options=options)
    meta = ObjectMeta(creation_timestamp=rfc3339(registry.clock.now()))
    review = SelfSubjectReview(metadata=meta, status=SelfSubjectReviewStatus(user_info=_info(request.user)))
    return answer_object(request, review, API_VERSION, 201)


def _info(user: User) -> UserInfo:
    return UserInfo(
        username=user.name or None,
        uid=user.uid or None,
        groups=list(user.groups) or None,
        extra=dict(user.extra) or None,
    )
