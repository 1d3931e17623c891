"""Authorizes requests: asks the API server as the node's subresources, so that RBAC says who may read which node.

/stats/* is nodes/stats, /metrics/* nodes/metrics, /logs/* nodes/log, /checkpoint/* nodes/checkpoint; /pods,
/runningpods, /healthz and /configz have subresources of their own and, as everything else, nodes/proxy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from pybernetes.api.authorization.v1 import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec

from .authn import Reviewing, User, timed

ALLOWED_TTL, DENIED_TTL = (
    300.0,
    30.0,
)  # seconds; upstream's authorization.webhook.cacheAuthorizedTTL, ...UnauthorizedTTL
_MOST = 4096  # answers that are remembered
_VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OWN = {"/pods": "pods", "/healthz": "healthz", "/configz": "configz", "/runningpods": "pods"}
_ONLY = {
    "/stats": "stats",
    "/metrics": "metrics",
    "/logs": "log",
    "/checkpoint": "checkpoint",
    "/statusz": "statusz",
    "/flagz": "configz",
}


class Authorizer(Protocol):
    """Decides."""

    async def allows(self, user: User, verb: str, subresource: str) -> bool:
        """Whether the user may. Raises APIError or OSError if the API server cannot be asked."""
        ...


class AlwaysAllow:
    """Upstream's authorization mode of that name."""

    async def allows(self, user: User, verb: str, subresource: str) -> bool:
        """Yes."""
        return True


class WebhookAuthorizer:
    """Asks the API server, and remembers its answers."""

    def __init__(
        self, client: Reviewing, node: str, *, allowed_ttl: float = ALLOWED_TTL, denied_ttl: float = DENIED_TTL
    ) -> None:
        self._client = client
        self._node = node
        self._ttls = {True: allowed_ttl, False: denied_ttl}
        self.asked: Callable[[str, float], None] = lambda code, seconds: None
        """Called for each request to the API server: the code of the response, and its duration."""
        self._known: dict[tuple[str, str, tuple[str, ...], str, str, str], tuple[float, bool]] = {}

    async def allows(self, user: User, verb: str, subresource: str) -> bool:
        """Whether the user may."""
        extra = repr(sorted(user.extra.items())) if user.extra else ""
        key = (user.name, user.uid, user.groups, extra, verb, subresource)
        now = time.monotonic()
        known = self._known.get(key)
        if known is not None and known[0] > now:
            return known[1]
        attributes = ResourceAttributes(
            verb=verb, version="v1", resource="nodes", subresource=subresource, name=self._node
        )
        spec = SubjectAccessReviewSpec(
            resource_attributes=attributes,
            user=user.name,
            uid=user.uid or None,
            groups=list(user.groups) or None,
            extra=user.extra or None,
        )
        review = await timed(self._client.create(SubjectAccessReview(spec=spec)), self.asked)
        allowed = bool(review.status and review.status.allowed)
        if len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[key] = (now + self._ttls[allowed], allowed)
        return allowed


def verb_of(method: str) -> str:
    """The verb that a method asks for."""
    return _VERBS.get(method, "")


def subresources(path: str) -> list[str]:
    """The subresources of the node any of which is enough for a path."""
    root = "/" + path.split("/", 2)[1] if path.startswith("/") else path
    found = [_OWN[root]] if root in _OWN else []
    return [*found, _ONLY.get(root, "proxy")]
