"""`/debug/pyb/why?path=PATH`: why the object at an API path is as it is, as JSON, for pages and scripts.

The objects for `trace.why` are read by this server's own verbs, behind its authorization, as the user who asks: an
explanation reveals nothing that the user could not read. Logs of containers are not read here.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import msgspec

from pybernetes.api import errors
from pybernetes.api.errors import BadRequest, MethodNotAllowed, NotFound, PathNotFound
from pybernetes.net.http import Handler, Request, Response
from pybernetes.trace.why.asking import Forbidden
from pybernetes.trace.why.kinds import explain

from .requestinfo import request_info


class Why:
    """Explains objects to who may read them."""

    def __init__(self, authorized: Handler) -> None:
        """`authorized` answers requests whose user and info are known, if the user may make them."""
        self._authorized = authorized

    async def __call__(self, request: Request) -> Response:
        if request.method != "GET":
            raise MethodNotAllowed
        path = request.info.query.get("path", "")
        info = request_info("GET", path, "")
        if not path.startswith(("/api/", "/apis/")) or not info.is_resource or not info.name or info.subresource:
            raise BadRequest(f"path must be that of one object, such as /api/v1/namespaces/default/pods/web: {path!r}")
        reader = _Local(self._authorized, request)
        answer = await explain(reader, await reader.read(path))
        told = {
            "why": answer.sentence,
            "details": list(answer.details),
            "help": answer.fix,
            "healthy": answer.healthy,
        }
        return Response(msgspec.json.encode(told))


class _Local:
    """Reads through the verbs of this server, as a user (`trace.why.asking.Reader`)."""

    def __init__(self, authorized: Handler, asking: Request) -> None:
        self._authorized = authorized
        self._asking = asking

    async def read(self, target: str) -> Any:
        """The JSON at a path. Raises APIError."""
        asking = self._asking
        path, _, query = target.partition("?")
        request = Request(asking.connection, "GET", unquote(path), query, {"accept": "application/json"}, b"")
        request.user, request.info = asking.user, request_info("GET", request.path, query)
        response = await self._authorized(request)
        return {} if response is None else json.loads(response.body)

    async def get(self, path: str) -> Any:
        """An object, None if it is not there."""
        try:
            return await self.read(path)
        except (NotFound, PathNotFound):
            return None
        except errors.Forbidden as error:
            raise Forbidden(str(error)) from error

    async def log(self, path: str) -> str | None:
        """Nothing: a log is a stream from a node."""
        return None
