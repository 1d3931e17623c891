"""Counts and times every request, by what it asked for and how it ended."""

from __future__ import annotations

from time import perf_counter

from pybernetes.net.http import Handler, Request, Response

from ..metrics import Metrics


class RequestMetrics:
    """Feeds `apiserver_request_total` and `apiserver_request_duration_seconds`."""

    def __init__(self, next_: Handler, metrics: Metrics) -> None:
        self._next = next_
        self._metrics = metrics

    async def __call__(self, request: Request) -> Response | None:
        started = perf_counter()
        response = None
        try:
            response = await self._next(request)
            return response
        finally:
            info = request.info
            if info is not None:
                code = response.status if response is not None else 200
                self._metrics.observe(request, info, code, perf_counter() - started)
