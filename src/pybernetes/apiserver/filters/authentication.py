"""Authenticates requests: sets `request.user`, or answers 401 without the reason (`authn.union`).

Unauthenticated clients take turns with all others (`flowcontrol.turns`) before they are answered: they are refused
before any filter could say whose flow it is, and who is refused may come again at once.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import NoReturn

from pybernetes.api.errors import Unauthorized
from pybernetes.net.http import Answer, Handler, Request, Response

from ..authn.union import Union
from ..flowcontrol.turns import Turns
from ..user import ANONYMOUS, User

STANDARD_PREFIX = "x-remote-"
"""The prefix of headers by which proxies name their user; they never reach a handler."""


class Authentication:
    """Sets `request.user`. The credentials are dropped, so that nothing behind can leak them."""

    def __init__(self, next_: Handler, authenticators: Union, turns: Turns | None = None) -> None:
        self._next = next_
        self._turns = turns
        self._authenticate = authenticators.authenticate

    def __call__(self, request: Request) -> Answer:
        try:
            user = self._authenticate(request)
        except Unauthorized:
            return self._refuse(request)
        return self._pass(request, user) if isinstance(user, User) else self._wait(request, user)

    async def _wait(self, request: Request, pending: Awaitable[User]) -> Response | None:
        try:
            user = await pending
        except Unauthorized:
            await self._refuse(request)
        return await self._pass(request, user)

    async def _refuse(self, request: Request) -> NoReturn:
        if self._turns is not None:
            await self._turns.once(f"unauthenticated/{request.connection.peer_address}")
        raise Unauthorized

    def _pass(self, request: Request, user: User) -> Answer:
        request.user = user
        if request.connection.stranger and user.name != ANONYMOUS.name:
            request.connection.stranger = False
        headers = request.headers
        headers.pop("authorization", None)
        if request.head is None or not request.head.plain:
            for name in [each for each in headers if each.startswith(STANDARD_PREFIX)]:
                del headers[name]
        return self._next(request)
