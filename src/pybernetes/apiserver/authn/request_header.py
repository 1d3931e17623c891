"""A proxy that has found out who its clients are says so in headers; believed if its certificate is of the proxies' CA.

Other clients may send these headers as well: they are ignored then, and removed from the request.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import time
from weakref import WeakKeyDictionary

import msgspec

from pybernetes.net.client_certificates import Trust, presented
from pybernetes.net.http import Connection, Request
from pybernetes.net.messages import as_utf8

from ..user import User
from .authenticator import BadCredential, extra_key


class Headers(msgspec.Struct, frozen=True):
    """The names of the headers, in lower case."""

    users: tuple[str, ...]
    uids: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()


class _Proxy(msgspec.Struct, frozen=True):
    """The proxy at the other end of a connection: the error in its certificate, until when that holds, its CA."""

    problem: str
    ends: float
    generation: int


class RequestHeader:
    """Knows whom a proxy speaks for."""

    def __init__(self, trust: Trust, headers: Headers, allowed_names: Sequence[str]) -> None:
        self._trust = trust
        self._headers = headers
        self._allowed = frozenset(allowed_names)
        """Common names of proxies; none = every certificate that the CA has signed."""
        self._proxies: WeakKeyDictionary[Connection, _Proxy] = WeakKeyDictionary()

    def authenticate(self, request: Request) -> User | None:
        name = _first(request, self._headers.users) if request.connection.peer_certificate else ""
        if not name:
            return None
        self._trust.refresh()
        proxy = self._proxies.get(request.connection)
        now = time()
        if proxy is None or proxy.generation != self._trust.generation or proxy.ends < now:
            proxy = self._proxies[request.connection] = self._meet(request.connection, now)
        if proxy.problem:
            raise BadCredential(f"verifying the certificate of a proxy failed: {proxy.problem}")
        user = self._user(name, request)
        self._clear(request)
        return user

    def _meet(self, connection: Connection, now: float) -> _Proxy:
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        chain = presented(connection)
        problem = self._trust.problem(chain, now)
        if problem:
            return _Proxy(problem, math.inf, self._trust.generation)
        certificate = x509.load_der_x509_certificate(chain[0])
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        common_name = str(names[-1].value) if names else ""
        if self._allowed and common_name not in self._allowed:
            problem = f"x509: subject with cn={common_name} is not in the allowed list"
        return _Proxy(problem, certificate.not_valid_after_utc.timestamp(), self._trust.generation)

    def _user(self, name: str, request: Request) -> User:
        names = self._headers
        groups = [as_utf8(value) for header in names.groups for value in request.values(header) if value]
        extra: dict[str, list[str]] = {}
        for prefix in names.extra_prefixes:
            for header in request.headers:
                if header.startswith(prefix):
                    values = extra.setdefault(extra_key(header.removeprefix(prefix)), [])
                    values.extend(map(as_utf8, request.values(header)))
        return User(name, _first(request, names.uids), tuple(groups), extra)

    def _clear(self, request: Request) -> None:
        names = self._headers
        for header in list(request.headers):
            if header in (*names.users, *names.uids, *names.groups) or header.startswith(names.extra_prefixes):
                del request.headers[header]


def _first(request: Request, headers: Sequence[str]) -> str:
    for header in headers:
        if header in request.headers:
            value = request.first(header)
            if value:
                return as_utf8(value)
    return ""
