"""A proxy that has found out who its clients are says so in headers; believed if its certificate is of the proxies' CA.

Who is not such a proxy may send these headers as well: they are ignored then, and nobody behind sees them.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from urllib.parse import unquote

import msgspec

from ..http import Request
from .chains import Trust, presented
from .user import BadCredential, User

STANDARD_PREFIX = "x-remote-"
"""What the headers begin with that upstream suggests; they never reach a handler."""


class Headers(msgspec.Struct, frozen=True):
    """The names of the headers, in lower case."""

    users: tuple[str, ...]
    uids: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()


class RequestHeader:
    """Knows whom a proxy speaks for."""

    def __init__(self, trust: Trust, headers: Headers, allowed_names: Sequence[str]) -> None:
        self._trust = trust
        self._headers = headers
        self._allowed = frozenset(allowed_names)
        """Common names of proxies; none = whoever the CA has signed."""

    async def authenticate(self, request: Request) -> User | None:
        name = _first(request, self._headers.users)
        if not name or not request.connection.peer_certificate:
            return None
        self._trust.refresh()
        chain = presented(request.connection)
        problem = self._trust.problem(chain, time())
        if problem:
            raise BadCredential(f"verifying the certificate of a proxy failed: {problem}")
        if self._allowed:
            common_name = _common_name(chain[0])
            if common_name not in self._allowed:
                raise BadCredential(f"x509: subject with cn={common_name} is not in the allowed list")
        user = self._user(name, request)
        self._clear(request)
        return user

    def _user(self, name: str, request: Request) -> User:
        names = self._headers
        groups = [value for header in names.groups for value in request.values(header) if value]
        extra: dict[str, list[str]] = {}
        for prefix in names.extra_prefixes:
            for header in request.headers:
                if header.startswith(prefix):
                    extra.setdefault(unquote(header.removeprefix(prefix)), []).extend(request.values(header))
        return User(name, _first(request, names.uids), tuple(groups), extra)

    def _clear(self, request: Request) -> None:
        names = self._headers
        for header in list(request.headers):
            if header in (*names.users, *names.uids, *names.groups) or header.startswith(names.extra_prefixes):
                del request.headers[header]


def _first(request: Request, headers: Sequence[str]) -> str:
    for header in headers:
        values = request.values(header)
        if values and values[0]:
            return values[0]
    return ""


def _common_name(der: bytes) -> str:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    names = x509.load_der_x509_certificate(der).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[-1].value) if names else ""
