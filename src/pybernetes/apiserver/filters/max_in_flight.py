"""No more requests at once than the server can serve well; watches and other long ones do not count.

Administrators are exempt, as upstream: they must be able to find out what is going on.
"""

from __future__ import annotations

from pybernetes.api.errors import TooManyRequests
from pybernetes.net.http import Handler, Request, Response

PRIVILEGED = "system:masters"
_READS = frozenset(("get", "list"))


class MaxInFlight:
    """Upstream's --max-requests-inflight and --max-mutating-requests-inflight."""

    def __init__(self, next_: Handler, reads: int, writes: int) -> None:
        self._next = next_
        self.limits = {True: reads, False: writes}
        self.running = {True: 0, False: 0}
        self.refused = {True: 0, False: 0}

    @property
    def writing(self) -> int:
        """Writes that are being worked on."""
        return self.running[False]

    async def __call__(self, request: Request) -> Response | None:
        info = request.info
        verb = info.verb
        if verb == "watch" or info.subresource in ("exec", "attach", "portforward", "proxy", "log"):
            return await self._next(request)
        reading = verb in _READS
        running = self.running
        limit = self.limits[reading]
        if limit and running[reading] >= limit and PRIVILEGED not in request.user.groups:
            self.refused[reading] += 1
            raise TooManyRequests("Too many requests, please try again later.")
        running[reading] += 1
        try:
            return await self._next(request)
        finally:
            running[reading] -= 1
