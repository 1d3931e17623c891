"""Records requests, as the audit policy says. Two filters, as upstream has them: around authentication and after it."""

from __future__ import annotations

import time

from pybernetes.api.errors import Unauthorized
from pybernetes.api.randomness import new_uid
from pybernetes.net.http import Handler, Request, Response

from ..audit.policy import NONE
from ..audit.recorder import Recorder
from ..audit.setup import Auditing
from ..pipeline.respond import error_response
from .outcome import answer_to

_STORE_FAILED = "failed to store audit event"


class Audit:
    """Behind authentication: who asks is known. What goes wrong behind it becomes an answer here, to be recorded."""

    def __init__(self, next_: Handler, auditing: Auditing) -> None:
        self._next = next_
        self._auditing = auditing

    async def __call__(self, request: Request) -> Response | None:
        recorded = self._auditing.evaluator.evaluate(request.user, request.info)
        if recorded.level == NONE:
            return await self._next(request)
        request.audit_id = request.wanted_audit_id() or new_uid()
        recorder = request.audit = Recorder(request, recorded, self._auditing.emit, time.time)
        recorder.annotations.update(request.annotations)
        if not recorder.received():
            text = f'Internal Server Error: "{request.path}": {_STORE_FAILED}\n'
            return Response(text.encode(), 500, "text/plain; charset=utf-8")
        response: Response | None = None
        refused = False
        try:
            response = await self._next(request)
        except Exception as error:
            answer = answer_to(error, request)
            if answer is None:
                if not isinstance(error, ConnectionError):
                    recorder.failed(error)
                    raise
                recorder.complete(None)
                raise
            response, refused = answer, True
        except BaseException:  # the client is gone
            recorder.complete(None)
            raise
        recorder.complete(response, refused=refused)
        return response


class FailedAuthenticationAudit:
    """Around authentication: records requests that fail to authenticate."""

    def __init__(self, next_: Handler, auditing: Auditing) -> None:
        self._next = next_
        self._auditing = auditing

    async def __call__(self, request: Request) -> Response | None:
        try:
            return await self._next(request)
        except Unauthorized as error:
            response = error_response(error, request)
            recorded = self._auditing.evaluator.evaluate(None, request.info)
            if recorded.level != NONE:
                request.audit_id = request.wanted_audit_id() or new_uid()
                recorder = Recorder(request, recorded, self._auditing.emit, time.time)
                recorder.annotations.update(request.annotations)
                recorder.unauthenticated(response)
            return response
