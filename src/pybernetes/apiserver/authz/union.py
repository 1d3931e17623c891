"""Several authorizers as one: the first that has an opinion decides; no opinion at all means no."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pybernetes.api.errors import Forbidden
from pybernetes.net.messages import NOSNIFF

from ..authn.user import User
from ..requestinfo import RequestInfo
from .authorizer import ALLOW, NO_OPINION, Authorizer, Decision, Undecided
from .messages import aggregate
from .metrics import decided

log = logging.getLogger(__name__)


async def decide(authorizers: Sequence[Authorizer], user: User, info: RequestInfo) -> tuple[Decision, str, str]:
    """The decision, its reason, and what kept authorizers from deciding ("" = nothing)."""
    reasons: list[str] = []
    errors: list[str] = []
    for authorizer in authorizers:
        try:
            decision, reason = await authorizer.authorize(user, info)
        except Undecided as undecided:
            errors.append(undecided.message)
            decision, reason = undecided.decision, ""
            if decision is not NO_OPINION:
                decided(authorizer, decision)
                return decision, "", undecided.message
        if decision is not NO_OPINION:
            decided(authorizer, decision)
            return decision, reason, ""
        if reason:
            reasons.append(reason)
    return NO_OPINION, "\n".join(reasons), aggregate(errors) if errors else ""


async def allows(authorizers: Sequence[Authorizer], user: User, info: RequestInfo) -> bool:
    """Whether the user may."""
    return (await decide(authorizers, user, info))[0] is ALLOW


async def require(authorizers: Sequence[Authorizer], user: User, info: RequestInfo) -> str:
    """The reason why the user may. Raises Forbidden, which says who may not do what, where."""
    decision, reason, error = await decide(authorizers, user, info)
    if decision is ALLOW:
        return reason
    if error:
        log.warning("authorization of %r: %s", user.name, error)
    raise forbidden(user, info, reason)


def forbidden(user: User, info: RequestInfo, reason: str) -> Forbidden:
    """The answer to a request that is not allowed."""
    if info.is_resource:
        error = Forbidden.request(
            user.name, info.verb, info.group, info.resource, info.subresource, info.namespace, info.object_name, reason
        )
    else:
        error = Forbidden.path(user.name, info.verb, info.path, reason)
    error.headers = (NOSNIFF,)
    return error
