"""What the audit filter does when something goes wrong behind it, or with the log itself."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pybernetes.api.errors import NotFound
from pybernetes.apiserver.audit.event import Event
from pybernetes.apiserver.audit.policy import Policy, PolicyEvaluator
from pybernetes.apiserver.filters.audit import Audit
from pybernetes.apiserver.requestinfo import request_info
from pybernetes.apiserver.user import User
from pybernetes.net.http import Request, Response


class Auditing:
    """Remembers copies of events; may fail to keep them."""

    def __init__(self, level: str = "Metadata", keeps: bool = True) -> None:
        self.evaluator = PolicyEvaluator(msgspec.convert({"rules": [{"level": level}]}, Policy))
        self.events: list[Event] = []
        self.keeps = keeps

    def emit(self, event: Event) -> bool:
        self.events.append(msgspec.structs.replace(event))
        return self.keeps


def ask(auditing: Auditing, outcome: Any) -> Response | None:
    connection: Any = SimpleNamespace(peer_address="127.0.0.1")
    request = Request(connection, "GET", "/api/v1/namespaces/a/pods/x", "", {}, b"")
    request.info = request_info(request.method, request.path, "")
    request.user = User("jane")

    async def behind(_: Request) -> Response | None:
        if isinstance(outcome, BaseException):
            raise outcome
        answer: Response | None = outcome
        return answer

    return asyncio.run(Audit(behind, auditing)(request))  # type: ignore[arg-type]


def stages(auditing: Auditing) -> list[tuple[str, Any]]:
    return [(each.stage, each.response_status and each.response_status["code"]) for each in auditing.events]


def test_a_fault_of_the_server_is_a_panic() -> None:
    auditing = Auditing()
    with pytest.raises(ZeroDivisionError):
        ask(auditing, ZeroDivisionError())
    assert stages(auditing) == [("RequestReceived", None), ("Panic", 500)]


def test_a_refusal_is_an_answer() -> None:
    auditing = Auditing()
    response = ask(auditing, NotFound("", "pods", "x"))
    assert response is not None
    assert response.status == 404
    assert stages(auditing) == [("RequestReceived", None), ("ResponseComplete", 404)]


def test_a_client_that_goes_away_is_recorded_as_such() -> None:
    auditing = Auditing()
    with pytest.raises(ConnectionResetError):
        ask(auditing, ConnectionResetError())
    last = auditing.events[-1]
    assert (last.stage, (last.response_status or {})["message"]) == ("ResponseComplete", "Connection closed early")


def test_a_request_that_cannot_be_recorded_is_not_served_where_the_log_is_strict() -> None:
    auditing = Auditing(keeps=False)
    response = ask(auditing, AssertionError("must not be called"))
    assert response is not None
    assert response.status == 500
    assert b"failed to store audit event" in response.body


def test_nothing_is_recorded_at_level_none() -> None:
    auditing = Auditing("None")
    ask(auditing, Response(b"{}"))
    assert auditing.events == []
