"""Records requests as spans (`trace/`). In the chain only where recording is on, so that others pay nothing.

`Tracing` stands behind the request info; `Stage` marks in the span how far a request came.
"""

from __future__ import annotations

import time

from pybernetes.api.errors import APIError
from pybernetes.net.http import Answer, Handler, Request, Response
from pybernetes.trace import context, recorder
from pybernetes.trace.recorder import CURRENT, Recorder
from pybernetes.trace.sampling import Rule, records
from pybernetes.trace.span import Span

from ..requestinfo import RequestInfo

LONGEST_AGENT = 80  # characters
_LASTING = frozenset(("watch", "connect", "proxy"))


class Tracing:
    """Begins a span for each request that is to be recorded; it lists the revisions that the request writes."""

    def __init__(self, next_: Handler, recorder: Recorder, rules: tuple[Rule, ...]) -> None:
        self._next = next_
        self._recorder = recorder
        self._rules = rules
        self._known: dict[tuple[str, str, str], bool] = {}
        """The rules' decisions, by verb, group and resource; as many as there are of these, and KNOWN at most."""

    def __call__(self, request: Request) -> Answer:
        info = request.info
        header = request.traceparent
        if header:
            parent = context.parse(header)
            if parent is not None and parent.sampled and info.verb not in _LASTING:
                return self._record(request, self._span(info, parent.trace, parent.span))
        key = (info.verb, info.group, info.resource)
        wanted = self._known.get(key)
        if wanted is None:
            wanted = info.is_resource and info.verb not in _LASTING and records(self._rules, *key)
            if len(self._known) < KNOWN:
                self._known[key] = wanted
        return (
            self._record(request, self._span(info, self._recorder.new_trace(), "")) if wanted else self._next(request)
        )

    def _span(self, info: RequestInfo, trace: str, parent: str) -> Span:
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        span = Span(
            trace,
            self._recorder.new_id(),
            parent,
            f"{info.verb} {resource or info.path}",
            self._recorder.service,
            time.time_ns(),
            0,
            {},
            [],
            [],
            [],
            [],
        )
        attributes = span.attributes
        if info.group:
            attributes["group"] = info.group
        if info.namespace:
            attributes["namespace"] = info.namespace
        if info.name:
            attributes["name"] = info.name
        return span

    async def _record(self, request: Request, span: Span) -> Response | None:
        token = CURRENT.set(span)
        try:
            response = await self._next(request)
            span.attributes["code"] = 200 if response is None else response.status
            return response
        except APIError as error:
            span.attributes["code"] = error.code
            span.error = error.message[:LONGEST_ERROR]
            raise
        except BaseException as error:
            span.error = str(error)[:LONGEST_ERROR] or type(error).__name__
            raise
        finally:
            CURRENT.reset(token)
            span.end = time.time_ns()
            attributes = span.attributes
            if request.user is not None:
                attributes["user"] = request.user.name
            agent = request.headers.get("user-agent")
            if agent:
                attributes["agent"] = agent[:LONGEST_AGENT]
            self._recorder.add(span)


LONGEST_ERROR = 512  # characters
KNOWN = 4096


class Stage:
    """Marks in the span that a request has come so far."""

    def __init__(self, next_: Handler, name: str) -> None:
        self._next = next_
        self._name = name

    def __call__(self, request: Request) -> Answer:
        recorder.mark(self._name)
        return self._next(request)


def staged(next_: Handler, name: str, recording: bool) -> Handler:
    """The next filter, with a stage before it where requests are recorded."""
    return Stage(next_, name) if recording else next_
