"""Several authenticators as one: the first that knows wins, whatever those before it found wrong.

The last is for nobody in particular, and is asked only if no credential was presented at all: who presents a bad one is
not anonymous. Why nobody was found is for the log; the caller learns only that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pybernetes.api.errors import Unauthorized
from pybernetes.net.http import Request

from .user import AUTHENTICATED, Authenticator, BadCredential, User, authenticated

if TYPE_CHECKING:
    from prometheus_client.core import Metric

log = logging.getLogger(__name__)

_LONGEST = 1000  # characters of reasons in a line of the log
_NAMED = frozenset(("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"))
"""Users that are counted by their own name, as upstream does; others could be any number of names."""


class Union:
    """All ways to prove who one is, in order, and `anonymous` for those who do not."""

    def __init__(self, authenticators: Sequence[Authenticator], anonymous: Authenticator | None) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous
        self._found: dict[str, int] = {}
        """How often somebody was found, by name or kind of name."""
        self._failed = {"failure": 0, "error": 0}

    async def authenticate(self, request: Request) -> User:
        """The user. Raises Unauthorized."""
        reasons: list[str] | None = None
        for authenticator in self._authenticators:
            try:
                user = await authenticator.authenticate(request)
            except BadCredential as bad:
                reasons = [*(reasons or ()), str(bad)]
                continue
            if user is not None:
                return self._counted(user if AUTHENTICATED in user.groups else authenticated(user))
        if reasons is None and self._anonymous is not None:
            user = await self._anonymous.authenticate(request)
            if user is not None:
                return self._counted(user)
        self._failed["failure" if reasons is None else "error"] += 1
        if reasons is not None:
            _tell(request, "; ".join(reasons))
        raise Unauthorized

    def _counted(self, user: User) -> User:
        name = user.name
        if name not in _NAMED:
            name = "email_id" if "@" in name else "other"
        self._found[name] = self._found.get(name, 0) + 1
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
    """What is logged may hold what a stranger sent: nothing in it breaks a line, or fills the disk at once."""
    shown = "".join(each if each.isprintable() else "?" for each in reasons[:_LONGEST])
    where = request.connection.peer_address
    log.warning("unable to authenticate %s %s from %s: %s", request.method, request.path[:_LONGEST], where, shown)
