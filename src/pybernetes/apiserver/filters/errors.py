"""Around all filters but those that count and speak to browsers: whatever goes wrong becomes a Status."""

from __future__ import annotations

import logging

from pybernetes.api.errors import APIError, BadRequest, InternalError, ServiceUnavailable
from pybernetes.api.gojson import TOO_DEEP
from pybernetes.net.http import Handler, Request, Response
from pybernetes.store.base import StoreUnavailable

from ..output import error_response

log = logging.getLogger(__name__)


class Errors:
    """APIErrors are answers, a store that is away is a 503, anything else our fault: its trace is for the log."""

    def __init__(self, next_: Handler) -> None:
        self._next = next_

    async def __call__(self, request: Request) -> Response | None:
        try:
            return await self._next(request)
        except Exception as error:
            answer = answer_to(error, request)
            if answer is not None:
                return answer
            if isinstance(error, ConnectionError):
                raise
            log.exception("%s %s", request.method, request.path)
            return error_response(InternalError(type(error).__name__), request)


def answer_to(error: Exception, request: Request) -> Response | None:
    """The answer that an error stands for; None for faults of ours and for clients that are gone."""
    if isinstance(error, APIError):
        return error_response(error, request)
    if isinstance(error, StoreUnavailable):
        return error_response(ServiceUnavailable(str(error)), request)
    if isinstance(error, RecursionError):  # nothing of ours nests so deeply, only what a client sent
        return error_response(BadRequest(TOO_DEEP), request)
    return None
