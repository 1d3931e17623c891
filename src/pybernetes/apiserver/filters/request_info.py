"""Takes the path and query apart, once, for everybody after it and for requests that begin alike."""

from __future__ import annotations

from copy import copy

from pybernetes.net.http import Handler, Request, Response

from ..requestinfo import request_info


class RequestInfoFilter:
    """Sets `request.info`."""

    def __init__(self, next_: Handler) -> None:
        self._next = next_

    async def __call__(self, request: Request) -> Response | None:
        head = request.head
        if head is None:
            request.info = request_info(request.method, request.path, request.query_string)
        else:
            if head.info is None:
                head.info = request_info(request.method, request.path, request.query_string)
            request.info = copy(head.info)
        return await self._next(request)
