"""Takes the path and query apart, once, for everybody after it."""

from __future__ import annotations

from ..http import Handler, Request, Response
from ..requestinfo import request_info


class RequestInfoFilter:
    """Sets `request.info`."""

    def __init__(self, next_: Handler) -> None:
        self._next = next_

    async def __call__(self, request: Request) -> Response | None:
        request.info = request_info(request.method, request.path, request.query_string)
        return await self._next(request)
