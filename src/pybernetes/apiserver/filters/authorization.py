"""May they? Asked of the authorizers for every request."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from time import perf_counter

from pybernetes.api.gocompat.quote import quote
from pybernetes.net.http import Answer, Handler, Request, Response

from ..authz.authorizer import ALLOW, Authorizers, Decision
from ..authz.metrics import attempted
from ..authz.union import Verdict, ask, forbidden

log = logging.getLogger(__name__)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Authorization:
    """Lets a request pass or says who may not do what, where."""

    def __init__(self, next_: Handler, source: Authorizers) -> None:
        self._next = next_
        self._source = source

    def __call__(self, request: Request) -> Answer:
        started = perf_counter()
        verdict = ask(self._source.authorizers, request.user, request.info)
        if isinstance(verdict, tuple):
            return self._judged(request, verdict, started)
        return self._wait(request, verdict, started)

    async def _wait(self, request: Request, pending: Awaitable[Verdict], started: float) -> Response | None:
        return await self._judged(request, await pending, started)

    def _judged(self, request: Request, verdict: Verdict, started: float) -> Answer:
        decision, reason, error = verdict
        attempted(decision, error, perf_counter() - started)
        if request.audit is not None:
            annotate(request.audit.annotations, decision, reason, error)
        return self._next(request) if decision is ALLOW else _refuse(request, reason, error)


def annotate(annotations: dict[str, str], decision: Decision, reason: str, error: str) -> None:
    """Tell the audit log what was decided and why."""
    if decision is not ALLOW and error:
        annotations["authorization.k8s.io/reason"] = "internal error"
        return
    annotations["authorization.k8s.io/decision"] = "allow" if decision is ALLOW else "forbid"
    annotations["authorization.k8s.io/reason"] = reason


async def _refuse(request: Request, reason: str, error: str) -> Response:
    """The response if no authorizer could decide, which upstream gives in plain text. Raises Forbidden."""
    if not error:
        raise forbidden(request.user, request.info, reason)
    log.error("authorization of %r: %s", request.user.name, error)
    uri = f"{request.path}?{request.query_string}" if request.query_string else request.path
    text = f"Internal Server Error: {quote(uri)}: {error}".translate(_ENTITIES)
    return Response(f"{text}\n".encode(), 500, "text/plain; charset=utf-8")
