"""Authenticates a request: a client certificate of the node's CA for clients, or a token that the API server knows.

Answers about tokens are kept for two minutes, as upstream's. Who shows a bad certificate may still have a good token;
who has neither is anonymous where that is allowed, and refused where not.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from pybernetes.api.authentication.v1 import TokenReview, TokenReviewSpec
from pybernetes.api.errors import APIError
from pybernetes.net.client_certificates import Trust, presented
from pybernetes.net.http import Request

TTL = 120.0  # seconds; upstream's authentication.webhook.cacheTTL
_MOST = 1024  # tokens that are remembered


class User(msgspec.Struct, frozen=True):
    """Somebody."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))


class Reviewing(Protocol):
    """Creates reviews: the one method of a client that is needed here."""

    async def create(self, obj: Any) -> Any: ...


class Authenticator:
    """Finds out who a request comes from."""

    def __init__(
        self,
        client: Reviewing | None = None,
        trust: Trust | None = None,
        *,
        anonymous: bool = False,
        ttl: float = TTL,
    ) -> None:
        """`client` asks about tokens (None: there are none), `trust` are the authorities of certificates."""
        self.trust = trust
        self._client = client
        self._anonymous = anonymous
        self._ttl = ttl
        self._known: dict[str, tuple[float, User | None]] = {}
        self.asked: Callable[[str, float], None] = lambda code, seconds: None
        """Called for each request to the API server: the code of the response, and its duration."""
        self.looked_up: Callable[[bool], None] = lambda known: None
        """Called for each token: whether it was in the cache."""

    async def authenticate(self, request: Request) -> User | None:
        """The authenticated user; None for 401. Raises APIError or OSError if the API server cannot be asked."""
        user = self._by_certificate(request)
        if user is not None:
            return user
        header = request.headers.get("authorization", "").strip()
        if header:
            kind, _, token = header.partition(" ")
            if kind.lower() == "bearer" and token.strip() and self._client is not None:
                user = await self._by_token(token.strip())
                if user is not None:
                    return user
                return None
        return ANONYMOUS if self._anonymous else None

    def _by_certificate(self, request: Request) -> User | None:
        connection = request.connection
        certificate = connection.peer_certificate
        if self.trust is None or not certificate:
            return None
        self.trust.refresh()
        tls = connection.transport.get_extra_info("ssl_object")
        if tls is None or ssl.cert_time_to_seconds(certificate["notAfter"]) < time.time():
            return None
        verified = connection.peer_verified and not tls.session_reused
        verified = verified and tls.context.generation == self.trust.generation
        if not verified and self.trust.problem(presented(connection), time.time()):
            return None
        return user_of(certificate)

    async def _by_token(self, token: str) -> User | None:
        now = time.monotonic()
        known = self._known.get(token)
        self.looked_up(known is not None and known[0] > now)
        if known is not None and known[0] > now:
            return known[1]
        assert self._client is not None
        review = await timed(self._client.create(TokenReview(spec=TokenReviewSpec(token=token))), self.asked)
        status = review.status
        user = None
        if status is not None and status.authenticated and status.user is not None:
            found = status.user
            user = User(found.username or "", found.uid or "", tuple(found.groups or ()), dict(found.extra or {}))
        if len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[token] = (now + self._ttl, user)
        return user


async def timed(request: Awaitable[Any], asked: Callable[[str, float], None]) -> Any:
    """The response to a request; calls `asked` with its code (`<error>` without a response) and duration."""
    begin, code = time.monotonic(), "<error>"
    try:
        answer = await request
        code = "201"
        return answer
    except APIError as error:
        code = str(error.code)
        raise
    finally:
        asked(code, time.monotonic() - begin)


def user_of(certificate: dict[str, Any]) -> User | None:
    """The user a certificate (as the ssl module shows it) stands for: its name; the organizations are the groups."""
    name, groups = "", []
    for part in certificate.get("subject", ()):
        for field, value in part:
            if field == "commonName":
                name = value
            elif field == "organizationName":
                groups.append(value)
    return User(name, groups=(*groups, "system:authenticated")) if name else None
