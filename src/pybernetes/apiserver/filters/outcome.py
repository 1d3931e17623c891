"""Around all filters but the one that speaks to browsers: whatever goes wrong becomes a Status, and how it ended is
counted and timed."""

from __future__ import annotations

import logging
from time import perf_counter

from pybernetes.api.errors import APIError, BadRequest, InternalError, ServiceUnavailable
from pybernetes.api.gocompat.gojson import TOO_DEEP
from pybernetes.component import klog
from pybernetes.net.http import Handler, Request, Response
from pybernetes.store.base import StoreUnavailable

from ..metrics import Metrics
from ..pipeline.respond import error_response

SLOW = 1.0
"""Seconds from which on a request is worth a line in the log."""
LONGEST = 512
"""Letters of what a client chose."""
EACH_REQUEST = klog.level_of(3)
log = logging.getLogger(__name__)


class Outcome:
    """APIErrors are answers, a store that is away is a 503, anything else our fault: its trace is for the log.

    Feeds `apiserver_request_total` and `apiserver_request_duration_seconds`.
    """

    def __init__(self, next_: Handler, metrics: Metrics) -> None:
        self._next = next_
        self._metrics = metrics

    async def __call__(self, request: Request) -> Response | None:
        started = perf_counter()
        response = None
        try:
            try:
                response = await self._next(request)
            except Exception as error:
                response = _status(error, request)
            return response
        finally:
            took, status = perf_counter() - started, 200 if response is None else response.status
            if request.info is not None:
                self._metrics.observe(request, status, took)
                if log.isEnabledFor(EACH_REQUEST):
                    log_request(request, status, took)
                if took > SLOW and response is not None and request.info.verb != "watch":
                    trace(request, status, took)


def log_request(request: Request, status: int, took: float) -> None:
    """Log how a request ended, in upstream's form (from -v=3 on)."""
    verb = request.info.verb.upper() if request.info is not None else ""
    path = f"{request.path}?{request.query_string}" if request.query_string else request.path
    klog.info(
        log,
        3,
        "HTTP",
        verb=verb if verb in ("LIST", "WATCH", "DELETECOLLECTION") else request.method,
        URI=path[:LONGEST],
        latency=f"{took * 1000:.3f}ms",
        userAgent=(request.headers.get("user-agent") or "")[:LONGEST],
        **{"audit-ID": request.audit_id},
        srcIP=request.connection.peer_address,
        resp=status,
    )


def trace(request: Request, status: int, took: float) -> None:
    """Log a request that took long. Watches and connections of users (exec, port-forward) are not slow, but long."""
    verb, info = request.method.title(), request.info
    klog.info(
        log,
        0,
        f"Trace: {verb} (total time: {took * 1000:.0f}ms)",
        url=request.path[:LONGEST],
        verb=info.verb if info is not None else verb,
        code=status,
        userAgent=(request.headers.get("user-agent") or "")[:256],
    )


def _status(error: Exception, request: Request) -> Response:
    """The response to a request that failed. Raises ConnectionError if the client has gone."""
    answer = answer_to(error, request)
    if answer is not None:
        return answer
    if isinstance(error, ConnectionError):
        raise error
    log.error("%s %s", request.method, request.path, exc_info=error)
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
