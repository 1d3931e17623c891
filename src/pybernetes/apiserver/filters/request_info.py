"""Parses the path and query once, for all later filters and for requests with the same head."""

from __future__ import annotations

from pybernetes.net.http import Answer, Handler, Request

from ..requestinfo import request_info


class RequestInfoFilter:
    """Sets `request.info`."""

    def __init__(self, next_: Handler) -> None:
        self._next = next_

    def __call__(self, request: Request) -> Answer:
        head = request.head
        if head is None:
            request.info = request_info(request.method, request.path, request.query_string)
        else:
            if head.info is None:
                head.info = request_info(request.method, request.path, request.query_string)
            request.info = head.info.__copy__()
        return self._next(request)
