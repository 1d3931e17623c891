"""`/flagz` and `/statusz` of a kubelet (`net/zpages.py`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from pybernetes.api.errors import NotAcceptable
from pybernetes.net.http import Request, Response

from .answers import Refused
from .server import Handler, KubeletServer

if TYPE_CHECKING:
    from pybernetes.net import zpages

_COMPONENT: Final = "kubelet"
_PATHS: Final = ("/configz", "/flagz", "/healthz", "/metrics")
"""The paths that upstream's kubelet lists: those that all components have."""

Flags = Callable[[], Mapping[str, str]]


def add_zpages(server: KubeletServer, flags: Flags | None) -> None:
    """Serve both; without flags, `/statusz` alone."""
    started = time.time()

    def flagz(accept: str) -> zpages.Page:
        from pybernetes.net import zpages

        assert flags is not None
        return zpages.flagz(_COMPONENT, flags(), accept)

    def statusz(accept: str) -> zpages.Page:
        from pybernetes.net import zpages

        return zpages.statusz(_COMPONENT, started, _PATHS, accept)

    if flags is not None:
        server.add("/flagz", _handler(flagz))
    server.add("/statusz", _handler(statusz))


def _handler(make: Callable[[str], zpages.Page]) -> Handler:
    async def answer(request: Request) -> Response:
        try:
            page = make(request.headers.get("accept", ""))
        except NotAcceptable as error:
            raise Refused(406, f"{error.message}\n") from None
        return Response(page.body, 200, page.content_type, [("Warning", page.warning)] if page.warning else [])

    return answer
