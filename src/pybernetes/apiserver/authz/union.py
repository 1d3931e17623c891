"""Several authorizers as one: the first that has an opinion decides; no opinion at all means no.

Every request asks, so `ask` is no coroutine; `decide`, `allows` and `require` are for those who wait anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable, Iterator, Sequence

from pybernetes.api.errors import Forbidden
from pybernetes.net.messages import NOSNIFF

from ..requestinfo import RequestInfo
from ..user import User
from .authorizer import ALLOW, NO_OPINION, Answer, Authorizer, Decision, Undecided
from .messages import aggregate
from .metrics import ALLOWED, DENIED

log = logging.getLogger(__name__)


Verdict = tuple[Decision, str, str]
"""The decision, its reason, and what kept authorizers from deciding ("" = nothing)."""


def ask(
    authorizers: Iterable[Authorizer],
    user: User,
    info: RequestInfo,
    reasons: tuple[str, ...] = (),
    errors: tuple[str, ...] = (),
) -> Verdict | Awaitable[Verdict]:
    """The verdict, or what to await for it; `reasons` and `errors` are of those who were asked before these."""
    left = iter(authorizers)
    for authorizer in left:
        answer = authorizer.authorize(user, info)
        if not isinstance(answer, tuple):
            return _wait(answer, authorizer, left, user, info, reasons, errors)
        decision, reason = answer
        if decision is not NO_OPINION:
            (ALLOWED if decision is ALLOW else DENIED)[authorizer] += 1
            return decision, reason, ""
        if reason:
            reasons = (*reasons, reason)
    return NO_OPINION, "\n".join(reasons), aggregate(errors) if errors else ""


async def _wait(
    pending: Awaitable[Answer],
    authorizer: Authorizer,
    left: Iterator[Authorizer],
    user: User,
    info: RequestInfo,
    reasons: tuple[str, ...],
    errors: tuple[str, ...],
) -> Verdict:
    """Ask on when one of them has found out."""
    error = ""
    try:
        decision, reason = await pending
    except Undecided as undecided:
        decision, reason, error = undecided.decision, "", undecided.message
        errors = (*errors, error)
    if decision is not NO_OPINION:
        (ALLOWED if decision is ALLOW else DENIED)[authorizer] += 1
        return decision, reason, error
    if reason:
        reasons = (*reasons, reason)
    rest = ask(left, user, info, reasons, errors)
    return rest if isinstance(rest, tuple) else await rest


async def decide(authorizers: Sequence[Authorizer], user: User, info: RequestInfo) -> Verdict:
    """The verdict."""
    verdict = ask(authorizers, user, info)
    return verdict if isinstance(verdict, tuple) else await verdict


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
