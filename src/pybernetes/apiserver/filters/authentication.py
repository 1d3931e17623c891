"""Who is it? The first authenticator that knows wins; if none does the answer is 401, without saying why."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pybernetes.api.errors import Unauthorized

from ..authn.user import Authenticator
from ..http import Handler, Request, Response

log = logging.getLogger(__name__)


class Authentication:
    """Sets `request.user`. The credentials are dropped, so that nothing behind can leak them."""

    def __init__(self, next_: Handler, authenticators: Sequence[Authenticator]) -> None:
        self._next = next_
        self._authenticators = authenticators

    async def __call__(self, request: Request) -> Response | None:
        for authenticator in self._authenticators:
            user = await authenticator.authenticate(request)
            if user is not None:
                request.user = user
                request.headers.pop("authorization", None)
                return await self._next(request)
        log.info("unable to authenticate %s %s from %s", request.method, request.path, request.connection.peer_address)
        raise Unauthorized
