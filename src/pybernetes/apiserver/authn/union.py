"""Several authenticators as one: the first that knows wins, whatever those before it found wrong.

The last one is anonymous, and is asked only if no credential was presented at all: a bad credential does not make a
user anonymous. The reason of a failure is logged; the caller gets only 401. As each of the authenticators, it answers
at once unless one of them has to wait.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Iterator, Sequence
from typing import TYPE_CHECKING

from pybernetes.api.errors import Unauthorized
from pybernetes.net.http import Request

from ..user import AUTHENTICATED, User, authenticated
from .anonymous import Anonymous
from .authenticator import Authenticator, BadCredential

if TYPE_CHECKING:
    from prometheus_client.core import Metric

log = logging.getLogger(__name__)

_LONGEST = 1000  # characters of reasons in a line of the log
_NAMED = frozenset(("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"))
"""Users that are counted by their own name, as upstream does; others could be any number of names."""


class Union:
    """All ways to prove who one is, in order, and `anonymous` for those who do not."""

    def __init__(self, authenticators: Sequence[Authenticator], anonymous: Anonymous | None) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous
        self._found: defaultdict[str, int] = defaultdict(int)
        """Successful authentications, by user name or kind of it."""
        self._failed = {"failure": 0, "error": 0}

    def authenticate(
        self, request: Request, left: Iterator[Authenticator] | None = None, reasons: tuple[str, ...] = ()
    ) -> User | Awaitable[User]:
        """The user, or what to await for it. Raises Unauthorized.

        `left` are those who were not asked yet, `reasons` what the others have found wrong.
        """
        if left is None:
            left = iter(self._authenticators)
        for authenticator in left:
            try:
                user = authenticator.authenticate(request)
            except BadCredential as bad:
                reasons = (*reasons, str(bad))
                continue
            if isinstance(user, User):
                return self._found_out(user)
            if user is not None:
                return self._wait(request, user, left, reasons)
        user = self._anonymous.authenticate(request) if self._anonymous is not None and not reasons else None
        if user is not None:
            return self._found_out(user)
        self._failed["error" if reasons else "failure"] += 1
        if reasons:
            _tell(request, "; ".join(reasons))
        raise Unauthorized

    async def _wait(
        self,
        request: Request,
        pending: Awaitable[User | None],
        left: Iterator[Authenticator],
        reasons: tuple[str, ...],
    ) -> User:
        """Ask on when one of them has found out."""
        try:
            user = await pending
        except BadCredential as bad:
            reasons = (*reasons, str(bad))
        else:
            if user is not None:
                return self._found_out(user)
        answer = self.authenticate(request, left, reasons)
        return answer if isinstance(answer, User) else await answer

    def _found_out(self, user: User) -> User:
        """Count the user, who is one of all who were identified."""
        if AUTHENTICATED not in user.groups:
            user = authenticated(user)
        name = user.name
        if name not in _NAMED:
            name = "email_id" if "@" in name else "other"
        self._found[name] += 1
        return user

    def collect(self) -> Iterator[Metric]:
        """Upstream's metrics about authentication."""
        from prometheus_client.core import Metric

        # Untyped: the library would put `_total` behind the name of a counter, and upstream's have none.
        users = Metric("authenticated_user_requests", "Requests by user.", "unknown")
        for name, count in self._found.items():
            users.add_sample(users.name, {"username": name}, count)
        attempts = Metric("authentication_attempts", "Requests by whether the user is known.", "unknown")
        for result, count in (("success", sum(self._found.values())), *self._failed.items()):
            attempts.add_sample(attempts.name, {"result": result}, count)
        yield users
        yield attempts


def _tell(request: Request, reasons: str) -> None:
    """Log a failure. The reasons may contain the client's text: replace control characters and limit its length."""
    shown = "".join(each if each.isprintable() else "?" for each in reasons[:_LONGEST])
    where = request.connection.peer_address
    log.warning("unable to authenticate %s %s from %s: %s", request.method, request.path[:_LONGEST], where, shown)
