"""Defaults of authentication.k8s.io."""

from __future__ import annotations

from .v1 import TokenRequest, TokenRequestSpec

TOKEN_SECONDS = 3600


def set_token_request_defaults(request: TokenRequest) -> None:
    """A token is good for an hour if nothing else is asked for."""
    request.spec = request.spec or TokenRequestSpec()
    if request.spec.expiration_seconds is None:
        request.spec.expiration_seconds = TOKEN_SECONDS
