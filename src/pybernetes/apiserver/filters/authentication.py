"""Who is it? Sets `request.user`, or answers 401 without saying why (`authn.union`).

Strangers take turns with everybody else (`flowcontrol.turns`) before they are answered: they are refused before anybody
could say whose flow it is, and who is refused may come again at once.
"""

from __future__ import annotations

from pybernetes.api.errors import Unauthorized
from pybernetes.net.http import Handler, Request, Response

from ..authn.union import Union
from ..flowcontrol.turns import Turns

STANDARD_PREFIX = "x-remote-"
"""What the headers begin with by which proxies say whom they speak for; they never reach a handler."""


class Authentication:
    """Sets `request.user`. The credentials are dropped, so that nothing behind can leak them."""

    def __init__(self, next_: Handler, authenticators: Union, turns: Turns | None = None) -> None:
        self._next = next_
        self._turns = turns
        self._authenticate = authenticators.authenticate

    async def __call__(self, request: Request) -> Response | None:
        try:
            request.user = await self._authenticate(request)
        except Unauthorized:
            if self._turns is not None:
                await self._turns.once(f"nobody/{request.connection.peer_address}")
            raise
        headers = request.headers
        headers.pop("authorization", None)
        if request.head is None or not request.head.plain:
            for name in [each for each in headers if each.startswith(STANDARD_PREFIX)]:
                del headers[name]
        return await self._next(request)
