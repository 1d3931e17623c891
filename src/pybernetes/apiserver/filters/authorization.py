"""May they? Asked of the authorizers for every request."""

from __future__ import annotations

from collections.abc import Sequence

from ..authz.authorizer import Authorizer
from ..authz.union import require
from ..http import Handler, Request, Response


class Authorization:
    """Lets a request pass or says who may not do what, where."""

    def __init__(self, next_: Handler, authorizers: Sequence[Authorizer]) -> None:
        self._next = next_
        self._authorizers = authorizers

    async def __call__(self, request: Request) -> Response | None:
        await require(self._authorizers, request.user, request.info)
        return await self._next(request)
