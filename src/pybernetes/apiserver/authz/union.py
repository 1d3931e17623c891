"""Several authorizers as one: the first that has an opinion decides; no opinion at all means no."""

from __future__ import annotations

from collections.abc import Sequence

from pybernetes.api.errors import Forbidden

from ..authn.user import User
from ..requestinfo import RequestInfo
from .authorizer import Authorizer, Decision


async def require(authorizers: Sequence[Authorizer], user: User, info: RequestInfo) -> None:
    """Return if the user may. Raises Forbidden, which says who may not do what, where."""
    reasons = []
    for authorizer in authorizers:
        decision, reason = await authorizer.authorize(user, info)
        if decision is Decision.ALLOW:
            return
        if reason:
            reasons.append(reason)
        if decision is Decision.DENY:
            break
    raise _forbidden(user, info, ", ".join(reasons))


def _forbidden(user: User, info: RequestInfo, reason: str) -> Forbidden:
    if not info.is_resource:
        why = f'User "{user.name}" cannot {info.verb} path "{info.path}"'
    else:
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        why = f'User "{user.name}" cannot {info.verb} resource "{resource}" in API group "{info.group}"'
        why += f' in the namespace "{info.namespace}"' if info.namespace else " at the cluster scope"
    return Forbidden(info.group, info.resource, info.name, f"{why}: {reason}" if reason else why)
