"""Several authenticators as one: the first that knows wins, whatever those before it found wrong.

The last is for nobody in particular, and is asked only if no credential was presented at all: who presents a bad one is
not anonymous. Why nobody was found is for the log; the caller learns only that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pybernetes.api.errors import Unauthorized

from ..http import Request
from .user import Authenticator, BadCredential, User, authenticated

log = logging.getLogger(__name__)


class Union:
    """All ways to prove who one is, in order, and `anonymous` for those who do not."""

    def __init__(self, authenticators: Sequence[Authenticator], anonymous: Authenticator | None) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous

    async def authenticate(self, request: Request) -> User:
        """The user. Raises Unauthorized."""
        reasons: list[str] | None = None
        for authenticator in self._authenticators:
            try:
                user = await authenticator.authenticate(request)
            except BadCredential as bad:
                reasons = [*(reasons or ()), str(bad)]
                continue
            if user is not None:
                return authenticated(user)
        if reasons is None and self._anonymous is not None:
            user = await self._anonymous.authenticate(request)
            if user is not None:
                return user
        log.warning(
            "unable to authenticate %s %s from %s: %s",
            request.method,
            request.path,
            request.connection.peer_address,
            "; ".join(reasons or ("no credential",)),
        )
        raise Unauthorized
