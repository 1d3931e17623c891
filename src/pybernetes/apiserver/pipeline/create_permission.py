"""An update or apply that creates is a create too: who may only do the one must not get the other with it."""

from __future__ import annotations

import msgspec

from pybernetes.api.errors import InternalError
from pybernetes.net.http import Request

from ..authz.authorizer import Decision
from ..authz.union import decide, forbidden
from ..registry.registry import Registry


async def require_create(registry: Registry, request: Request) -> None:
    """Return if the user may create what the path names. Raises Forbidden."""
    question = msgspec.structs.replace(request.info, verb="create")
    decision, reason, error = await decide(registry.authorizers, request.user, question)
    if decision is Decision.ALLOW:
        return
    if error:
        raise InternalError(error)
    raise forbidden(request.user, question, reason)
