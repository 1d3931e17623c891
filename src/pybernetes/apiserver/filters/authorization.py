"""May they? Asked of the authorizers for every request."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import perf_counter

from pybernetes.api.quote import quote
from pybernetes.net.http import Handler, Request, Response

from ..authz.authorizer import ALLOW, Authorizer, Decision
from ..authz.metrics import attempted
from ..authz.union import decide, forbidden

log = logging.getLogger(__name__)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Authorization:
    """Lets a request pass or says who may not do what, where."""

    def __init__(self, next_: Handler, authorizers: Sequence[Authorizer]) -> None:
        self._next = next_
        self._authorizers = authorizers

    async def __call__(self, request: Request) -> Response | None:
        started = perf_counter()
        decision, reason, error = await decide(self._authorizers, request.user, request.info)
        attempted(decision, error, perf_counter() - started)
        if request.audit is not None:
            annotate(request.audit.annotations, decision, reason, error)
        if decision is ALLOW:
            return await self._next(request)
        if error:
            log.error("authorization of %r: %s", request.user.name, error)
            return _undecided(request, error)
        raise forbidden(request.user, request.info, reason)


def annotate(annotations: dict[str, str], decision: Decision, reason: str, error: str) -> None:
    """Tell the audit log what was decided and why."""
    if decision is not ALLOW and error:
        annotations["authorization.k8s.io/reason"] = "internal error"
        return
    annotations["authorization.k8s.io/decision"] = "allow" if decision is ALLOW else "forbid"
    annotations["authorization.k8s.io/reason"] = reason


def _undecided(request: Request, error: str) -> Response:
    """Upstream answers this in plain text."""
    uri = f"{request.path}?{request.query_string}" if request.query_string else request.path
    text = f"Internal Server Error: {quote(uri)}: {error}".translate(_ENTITIES)
    return Response(f"{text}\n".encode(), 500, "text/plain; charset=utf-8")
