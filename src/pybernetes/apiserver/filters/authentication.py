"""Who is it? Sets `request.user`, or answers 401 without saying why (`authn.union`)."""

from __future__ import annotations

from pybernetes.net.http import Handler, Request, Response

from ..authn.union import Union

STANDARD_PREFIX = "x-remote-"
"""What the headers begin with by which proxies say whom they speak for; they never reach a handler."""


class Authentication:
    """Sets `request.user`. The credentials are dropped, so that nothing behind can leak them."""

    def __init__(self, next_: Handler, authenticators: Union) -> None:
        self._next = next_
        self._authenticate = authenticators.authenticate

    async def __call__(self, request: Request) -> Response | None:
        request.user = await self._authenticate(request)
        headers = request.headers
        headers.pop("authorization", None)
        if request.head is None or not request.head.plain:
            for name in [each for each in headers if each.startswith(STANDARD_PREFIX)]:
                del headers[name]
        return await self._next(request)
