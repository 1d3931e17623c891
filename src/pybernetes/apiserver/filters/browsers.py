"""Headers for browsers: CORS, which lets pages of other origins use this server, and HSTS, which makes them use TLS
only.

Both are off unless their flags are given. A page is let in by its `Origin`; that the browser asks first (OPTIONS) is
answered before authentication, as browsers send no credentials then.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from pybernetes.net.http import Handler, Request, Response

_METHODS = "POST, GET, OPTIONS, PUT, DELETE, PATCH"
_HEADERS = (
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"
)
_DIRECTIVE = re.compile(r"includeSubDomains|preload|max-age=[^=]*")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument_group("browsers").add_argument
    which = "patterns for origins of pages that may talk to this server, such as '//example\\.com(:|$)'"
    add("--cors-allowed-origins", type=origins, action="extend", default=[], help=which)
    what = "max-age=SECONDS,includeSubDomains,preload"
    add("--strict-transport-security-directives", type=directives, action="extend", default=[], help=what)


def origins(text: str) -> list[re.Pattern[str]]:
    """Patterns that say where the host of an origin begins and ends. Raises ArgumentTypeError."""
    found = []
    for each in text.split(","):
        if not each:
            raise argparse.ArgumentTypeError("empty value in --cors-allowed-origins")
        try:
            pattern = re.compile(each)
        except re.error as error:
            raise argparse.ArgumentTypeError(f"invalid regular expression: {error}") from error
        if not ("^" in each or "//" in each) or not ("$" in each or ":" in each):
            why = "regular expression does not pin to start/end of host in the origin header"
            raise argparse.ArgumentTypeError(f"{each}: {why}")
        found.append(pattern)
    return found


def directives(text: str) -> list[str]:
    """Parse the directives of Strict-Transport-Security. Raises ArgumentTypeError."""
    found = text.split(",")
    for each in found:
        if not each.strip():
            raise argparse.ArgumentTypeError("empty value in strict-transport-security-directives")
        if not _DIRECTIVE.fullmatch(each):
            allowed = "allowed values: max-age=expireTime, includeSubDomains, preload"
            raise argparse.ArgumentTypeError(f"--strict-transport-security-directives invalid, {allowed}")
    return found


class Browsers:
    """The filter, outside all others."""

    def __init__(self, next_: Handler, allowed: Sequence[re.Pattern[str]], transport: Sequence[str]) -> None:
        self._next = next_
        self._allowed = allowed
        self._transport = "; ".join(transport)

    async def __call__(self, request: Request) -> Response | None:
        if self._transport:
            request.response_headers.append(("Strict-Transport-Security", self._transport))
        origin = request.first("origin") if self._allowed else ""
        if origin and any(each.search(origin) for each in self._allowed):
            request.response_headers += (
                ("Access-Control-Allow-Origin", origin),
                ("Access-Control-Allow-Methods", _METHODS),
                ("Access-Control-Allow-Headers", _HEADERS),
                ("Access-Control-Expose-Headers", "Date"),
                ("Access-Control-Allow-Credentials", "true"),
            )
            if request.method == "OPTIONS":
                return Response(b"", 204, "")
        return await self._next(request)
