"""Client certificates: the common name is the user, the organizations are the groups.

TLS has verified the certificate against the authorities of the server before a request can arrive. What TLS cannot know
is checked here: that it was the authority for clients who signed (`shared`: there is another one, for proxies), that it
is still one of ours, and that the certificate has not ended while the connection was open.
"""

from __future__ import annotations

import hashlib
import ssl
from time import time
from typing import Any

import msgspec

from pybernetes.net.client_certificates import Trust, presented, verified_root
from pybernetes.net.http import Connection, Request

from ..user import AUTHENTICATED, CREDENTIAL_ID, User
from .authenticator import BadCredential

_UID = "1.3.6.1.4.1.57683.2"  # Kubernetes' own name for a user's uid in a subject


class Peer(msgspec.Struct):
    """The client at the other end of a connection."""

    user: User | None
    ends: float
    """When the certificate does."""
    generation: int
    """Of the authorities that it was last verified against."""


class ClientCertificate:
    """Authenticates clients by certificates of the client CA."""

    def __init__(self, trust: Trust, *, shared: bool = False) -> None:
        self._trust = trust
        self._shared = shared

    def authenticate(self, request: Request) -> User | None:
        connection = request.connection
        peer = connection.peer_certificate
        if not peer:
            return None
        if peer.__class__ is not Peer:
            peer = connection.peer_certificate = self._meet(connection, peer)
        self._trust.refresh()
        if peer.generation != self._trust.generation:
            self._verify(connection, peer)
        if peer.ends < time():
            raise BadCredential("x509: certificate has expired or is not yet valid")
        user: User | None = peer.user
        return user

    def _meet(self, connection: Connection, certificate: dict[str, Any]) -> Peer:
        """The verified state of a certificate: TLS has verified it unless the session was resumed from an older one."""
        tls = connection.transport.get_extra_info("ssl_object")
        verified = connection.peer_verified and not tls.session_reused
        verified = verified and (not self._shared or verified_root(tls) in self._trust.roots)
        ends = ssl.cert_time_to_seconds(certificate["notAfter"])
        return Peer(user_of(certificate, tls.getpeercert(True)), ends, tls.context.generation if verified else 0)

    def _verify(self, connection: Connection, peer: Peer) -> None:
        problem = self._trust.problem(presented(connection), time())
        if problem:
            raise BadCredential(f"verifying the client certificate failed: {problem}")
        peer.generation = self._trust.generation


def user_of(certificate: dict[str, Any], der: bytes) -> User | None:
    """The user a certificate (as the ssl module shows it) stands for; None if it names none. Raises BadCredential."""
    name, groups, uids = "", [], []
    for part in certificate.get("subject", ()):
        for field, value in part:
            if field == "commonName":
                name = value
            elif field == "organizationName":
                groups.append(value)
            elif field == _UID:
                uids.append(value)
    if not name:
        return None
    if len(uids) > 1:
        raise BadCredential(f"expected 1 UID, but found multiple: {uids}")
    identifier = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
    return User(name, uids[0] if uids else "", (*groups, AUTHENTICATED), {CREDENTIAL_ID: [identifier]})
