"""Exports spans to a collector, by OTLP over gRPC or HTTP.

Spans wait in a queue of bounded length and are sent a second after the first; a collector that is away costs them after
some attempts, and nothing else: one line in the log says how many were lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from pybernetes.trace import otlp_wire
from pybernetes.trace.configuration import MILLION, Tracing
from pybernetes.trace.span import Span
from pybernetes.version import GIT_VERSION

LIMIT = 10_000  # spans that wait
MOST = 512  # spans of a request
GATHER = 1.0  # seconds
PATIENCE = 10.0  # seconds for an answer
ATTEMPTS = 3
LATER = 1.0  # seconds until the next attempt
REMEMBERED = 20_000  # revisions whose writer can be linked to
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
PATH = "/v1/traces"
OURS = " pybernetes"  # in the user agent of our components
log = logging.getLogger(__name__)


class Exporter:
    """The spans that wait, and the connection."""

    def __init__(self, tracing: Tracing) -> None:
        self._target = tracing.target
        self._rate = tracing.sampling_rate_per_million or 0
        self._waiting: list[Span] = []
        self._writers: dict[int, tuple[str, str]] = {}
        """The writer of each revision; the last REMEMBERED."""
        self._asked: dict[str, None] = {}
        """Traces that a client began which wants them recorded; the last REMEMBERED."""
        self._news = asyncio.Event()
        self._channel: Any = None
        self.lost = 0

    def add(self, spans: Iterable[Span]) -> None:
        """Export these, or what of them is sampled."""
        for span in spans:
            for revision in span.revisions:
                _remember(self._writers, revision, (span.trace, span.id))
            if self._is_sampled(span) and len(self._waiting) < LIMIT:
                self._waiting.append(span)
        if self._waiting:
            self._news.set()

    def _is_sampled(self, span: Span) -> bool:
        """A trace is exported as a whole: if its client wants it, or by the rate."""
        foreign = OURS not in str(span.attributes.get("agent", ""))
        if span.parent and "code" in span.attributes and foreign:
            _remember(self._asked, span.trace, None)
        return span.trace in self._asked or int(span.trace[16:], 16) % MILLION < self._rate

    async def run(self) -> None:
        """Export until cancelled."""
        try:
            while True:
                await self._news.wait()
                await asyncio.sleep(GATHER)
                self._news.clear()
                await self._flush()
        finally:
            if self._channel is not None:
                await self._channel.close()

    async def _flush(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            body = otlp_wire.request(batch, GIT_VERSION, self._links)
            for attempt in range(ATTEMPTS):
                problem = await self._send(body)
                if not problem:
                    break
                if attempt < ATTEMPTS - 1:
                    await asyncio.sleep(LATER)
            else:
                self.lost += len(batch)
                log.warning("%d spans could not be exported to %s: %s", self.lost, self._target, problem)

    def _links(self, span: Span) -> list[tuple[str, str]]:
        """The spans that woke a span, as far as they are remembered."""
        found = [self._writers[each] for each in span.causes if each in self._writers]
        return [*span.links, *(each for each in found if each != (span.trace, span.id))]

    async def _send(self, body: bytes) -> str:
        """Why the collector did not take it; empty if it did."""
        try:
            async with asyncio.timeout(PATIENCE):
                await (self._post(body) if "://" in self._target else self._call(body))
        except Exception as error:
            return str(error).partition("\n")[0] or type(error).__name__
        return ""

    async def _call(self, body: bytes) -> None:
        import grpc.aio  # type: ignore[import-untyped]  # costs 20 MB: only where it is configured

        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self._target)
        await self._channel.unary_unary(METHOD)(body)

    async def _post(self, body: bytes) -> None:
        from .http import HTTPClient

        if self._channel is None:
            self._channel = HTTPClient(self._target, limit=1)
        base = self._channel.base_path
        path = "" if base.endswith(PATH) else PATH
        answer = await self._channel.request("POST", path, {"Content-Type": "application/x-protobuf"}, body, PATIENCE)
        if answer.status >= 300:
            raise ConnectionError(f"status {answer.status}")


def _remember(known: dict[Any, Any], key: Any, value: Any) -> None:
    if key not in known and len(known) >= REMEMBERED:
        del known[next(iter(known))]
    known[key] = value
