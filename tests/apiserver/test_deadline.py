"""A request without a timeout has the server's, and gets an error when it is over."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from pybernetes.api.errors import Timeout
from pybernetes.apiserver.handler import Dispatcher
from pybernetes.apiserver.requestinfo import request_info
from pybernetes.net.http import OVERDUE, Request, Response


async def test_a_timeout_is_reported_unless_the_client_has_left() -> None:
    begun = asyncio.Event()

    async def forever(request: Request) -> Response:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    dispatcher = Dispatcher(SimpleNamespace(aggregated={}), forever)  # type: ignore[arg-type]
    request = Request(None, "GET", "/x", "", {}, b"")  # type: ignore[arg-type]
    request.info = request_info("GET", "/x", "")
    for reason, raised in ((OVERDUE, Timeout), ("", asyncio.CancelledError)):
        begun.clear()
        task = asyncio.ensure_future(dispatcher(request))
        await begun.wait()
        task.cancel(reason)
        with pytest.raises(raised) as failed:
            await task
        if raised is Timeout:
            assert str(failed.value).endswith("request did not complete within the allotted timeout")
