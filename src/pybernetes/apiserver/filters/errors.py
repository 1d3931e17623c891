"""The outermost filter: whatever goes wrong becomes a Status."""

from __future__ import annotations

import logging

from pybernetes.api.errors import APIError, BadRequest, InternalError, ServiceUnavailable
from pybernetes.api.gojson import TOO_DEEP
from pybernetes.store.base import StoreUnavailable

from ..http import Handler, Request, Response
from ..output import error_response

log = logging.getLogger(__name__)


class Errors:
    """APIErrors are answers, a store that is away is a 503, anything else our fault: its trace is for the log."""

    def __init__(self, next_: Handler) -> None:
        self._next = next_

    async def __call__(self, request: Request) -> Response | None:
        try:
            return await self._next(request)
        except APIError as error:
            return error_response(error, request)
        except StoreUnavailable as error:
            return error_response(ServiceUnavailable(str(error)), request)
        except ConnectionError:
            raise
        except RecursionError:  # nothing of ours nests so deeply, only what a client sent
            return error_response(BadRequest(TOO_DEEP), request)
        except Exception as error:
            log.exception("%s %s", request.method, request.path)
            return error_response(InternalError(type(error).__name__), request)
