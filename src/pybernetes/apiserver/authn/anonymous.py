"""Nobody in particular: who presents no credential at all. What they may do is up to the authorizers."""

from __future__ import annotations

from collections.abc import Collection

from pybernetes.net.http import Request

from .user import ANONYMOUS, User

PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
"""What everybody may see of a server whose authorizer allows everything to everybody who is known.

Upstream lets nobody in without a credential then; how a server is must be there to see for whoever watches it.
"""


class Anonymous:
    """The last authenticator; with `paths`, for these alone."""

    def __init__(self, paths: Collection[str] | None = None) -> None:
        self._paths = None if paths is None else frozenset(paths)

    def authenticate(self, request: Request) -> User | None:
        return ANONYMOUS if self._paths is None or request.info.path in self._paths else None
