"""Client certificates: the common name is the user, the organizations are the groups.

TLS has verified the certificate against the client CA before a request can arrive.
"""

from __future__ import annotations

from typing import Any

from ..http import Request
from .user import AUTHENTICATED, User


class ClientCertificate:
    """Knows everybody who came with a certificate of the client CA."""

    async def authenticate(self, request: Request) -> User | None:
        connection = request.connection
        certificate = connection.peer_certificate
        if not certificate:
            return None
        if not isinstance(certificate, User):
            certificate = connection.peer_certificate = user_of(certificate)
        return certificate if certificate.name else None


def user_of(certificate: dict[str, Any]) -> User:
    """The user a certificate (as the ssl module shows it) stands for."""
    name, groups = "", []
    for part in certificate.get("subject", ()):
        for field, value in part:
            if field == "commonName":
                name = value
            elif field == "organizationName":
                groups.append(value)
    return User(name, groups=(*groups, AUTHENTICATED))
