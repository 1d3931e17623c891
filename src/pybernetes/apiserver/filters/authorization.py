"""May they? The first authorizer that has an opinion decides; no opinion at all means no."""

from __future__ import annotations

from collections.abc import Sequence

from pybernetes.api.errors import Forbidden

from ..authz.authorizer import Authorizer, Decision
from ..http import Handler, Request, Response


class Authorization:
    """Lets a request pass or says who may not do what, where."""

    def __init__(self, next_: Handler, authorizers: Sequence[Authorizer]) -> None:
        self._next = next_
        self._authorizers = authorizers

    async def __call__(self, request: Request) -> Response | None:
        reasons = []
        for authorizer in self._authorizers:
            decision, reason = await authorizer.authorize(request.user, request.info)
            if decision is Decision.ALLOW:
                return await self._next(request)
            if reason:
                reasons.append(reason)
            if decision is Decision.DENY:
                break
        raise _forbidden(request, ", ".join(reasons))


def _forbidden(request: Request, reason: str) -> Forbidden:
    info, user = request.info, request.user
    if not info.is_resource:
        why = f'User "{user.name}" cannot {info.verb} path "{info.path}"'
    else:
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        why = f'User "{user.name}" cannot {info.verb} resource "{resource}" in API group "{info.group}"'
        why += f' in the namespace "{info.namespace}"' if info.namespace else " at the cluster scope"
    return Forbidden(info.group, info.resource, info.name, f"{why}: {reason}" if reason else why)
