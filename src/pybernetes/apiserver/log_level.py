"""`/debug/flags/v`: how much is logged, changed while the server runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybernetes.api.quote import quote
from pybernetes.net.http import Request, Response

if TYPE_CHECKING:
    from .paths import PathHandler

_INDEX = b"<html><head><title>/debug/flags/</title></head><body>flags that can be changed: v</body></html>\n"
_MAXIMUM = 2**32 - 1


def level_of(verbosity: int) -> int:
    """Python's level for a value of `-v`."""
    return logging.DEBUG if verbosity >= 4 else logging.INFO if verbosity >= 2 else logging.WARNING


def handlers() -> dict[str, PathHandler]:
    """What to serve, by path."""
    return {"/debug/flags": _index, "/debug/flags/": _index, "/debug/flags/v": _verbosity}


async def _index(request: Request) -> Response:
    return Response(_INDEX, content_type="text/html; charset=utf-8")


async def _verbosity(request: Request) -> Response:
    if request.method != "PUT":
        return _text("unsupported http method", 406)
    body = request.body.decode(errors="replace")
    digits = body.isascii() and body.isdigit()
    if not digits or int(body[:20]) > _MAXIMUM:
        what = "value out of range" if digits else "invalid syntax"
        return _text(f"strconv.ParseUint: parsing {quote(body[:100])}: {what}", 400)
    logging.getLogger().setLevel(level_of(int(body)))
    return _text(f"successfully set klog.logging.verbosity to {int(body)}", 200)


def _text(text: str, status: int) -> Response:
    return Response(f"{text}\n".encode(), status, "text/plain", [("X-Content-Type-Options", "nosniff")])
