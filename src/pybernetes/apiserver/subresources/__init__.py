"""Parts of an object with a path and a kind of their own, by name.

Those that speak the kind of their resource (status, resize, finalize, ...) need no code here: they are updates by other
rules (`Strategy.rules`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pybernetes.net.http import Request, Response

from ..registry.registry import Registry
from ..registry.resource_store import ResourceStore
from .binding import bind
from .eviction import evict
from .scale import scale
from .token import token

Handler = Callable[[Registry, ResourceStore, Request], Awaitable[Response | None]]


async def _connect(registry: Registry, store: ResourceStore, request: Request) -> Response | None:
    """Connections bring a good deal of code with them, so it is loaded with the first."""
    from ..connect.handler import connect

    return await connect(registry, store, request)


HANDLERS: dict[str, Handler] = {
    "binding": bind,
    "eviction": evict,
    "scale": scale,
    "token": token,
    **dict.fromkeys(("attach", "exec", "log", "portforward", "proxy"), _connect),
}
