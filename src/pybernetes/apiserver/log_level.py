"""`/debug/flags/v`: how much is logged, changed while the server runs."""

from __future__ import annotations

import logging

from pybernetes.api.gocompat.quote import quote
from pybernetes.component.klog import level_of
from pybernetes.net.http import Handler, Request, Response
from pybernetes.net.messages import NOSNIFF

_INDEX = b"<html><head><title>/debug/flags/</title></head><body>flags that can be changed: v</body></html>\n"
_MAXIMUM = 2**32 - 1


def handlers() -> dict[str, Handler]:
    """The handlers, by path."""
    return {"/debug/flags": _index, "/debug/flags/": _index, "/debug/flags/v": _verbosity}


async def _index(request: Request) -> Response:
    return Response(_INDEX, content_type="text/html; charset=utf-8")


async def _verbosity(request: Request) -> Response:
    if request.method != "PUT":
        return _text("unsupported http method", 406)
    body = request.body.decode(errors="replace")
    digits = body.isascii() and body.isdigit()
    value = int(body.lstrip("0")[:20] or 0) if digits else 0
    if not digits or value > _MAXIMUM:
        what = "value out of range" if digits else "invalid syntax"
        return _text(f"strconv.ParseUint: parsing {quote(body[:100])}: {what}", 400)
    logging.getLogger().setLevel(level_of(value))
    return _text(f"successfully set klog.logging.verbosity to {value}", 200)


def _text(text: str, status: int) -> Response:
    return Response(f"{text}\n".encode(), status, "text/plain", [NOSNIFF])
