"""`/flagz` and `/statusz` of this server (`net/zpages.py`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pybernetes.net import zpages
from pybernetes.net.http import Request, Response

from .negotiation import wants_pretty

_COMPONENT: Final = "apiserver"


class Flagz:
    """The flags of this server; `read` tells them by name."""

    def __init__(self, read: Callable[[], dict[str, str]]) -> None:
        self._read = read

    async def __call__(self, request: Request) -> Response:
        accept, pretty = _wanted(request)
        return _response(zpages.flagz(_COMPONENT, self._read(), accept, pretty=pretty))


class Statusz:
    """How this server is; `paths` tells what it serves."""

    def __init__(self, paths: Callable[[], list[str]]) -> None:
        self._paths = paths
        self._started = time.time()

    async def __call__(self, request: Request) -> Response:
        accept, pretty = _wanted(request)
        return _response(zpages.statusz(_COMPONENT, self._started, self._paths(), accept, pretty=pretty))


def _wanted(request: Request) -> tuple[str, bool]:
    return request.headers.get("accept", ""), wants_pretty(request.headers, request.info.query)


def _response(page: zpages.Page) -> Response:
    headers = [("Warning", page.warning)] if page.warning else None
    return Response(page.body, content_type=page.content_type, headers=headers)
