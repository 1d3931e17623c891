"""The anonymous user: for requests without credentials. The authorizers decide what it may do."""

from __future__ import annotations

from collections.abc import Collection

from pybernetes.net.http import Request

from ..user import ANONYMOUS, User

PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
"""The paths that anonymous users may read if the authorizer allows everything to all authenticated users.

Upstream rejects all requests without a credential then; here health endpoints stay readable for monitors.
"""


class Anonymous:
    """The last authenticator; with `paths`, for these alone."""

    def __init__(self, paths: Collection[str] | None = None) -> None:
        self._paths = None if paths is None else frozenset(paths)

    def authenticate(self, request: Request) -> User | None:
        return ANONYMOUS if self._paths is None or request.info.path in self._paths else None
