"""Nobody in particular, who may ask only how the server is and which it is."""

from __future__ import annotations

from ..http import Request
from .user import ANONYMOUS, User

PUBLIC = ("/healthz", "/livez", "/readyz", "/version")


class Anonymous:
    """The last authenticator: no credentials, and a path that is for everybody."""

    async def authenticate(self, request: Request) -> User | None:
        if "authorization" in request.headers:
            return None
        return ANONYMOUS if request.path.rstrip("/") in PUBLIC else None
