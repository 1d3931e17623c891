"""The authenticator for tokens of OpenID Connect issuers, each found by the issuer that a token names."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from time import monotonic, time
from typing import Any

import msgspec

from pybernetes.api.field import aggregate, forbidden
from pybernetes.component.tasks import Tasks
from pybernetes.net.watched_files import Watched

from ...reloads import Reloads
from ...user import User
from .. import jwt
from ..authenticator import BadCredential
from .claims import Source, issuer_of
from .configuration import ALGORITHMS, AuthenticationConfiguration, JWTAuthenticator, read
from .mapping import Mapping
from .provider import Provider
from .validation import validate

log = logging.getLogger(__name__)


_OTHERS = 64  # issuers of claims that are found elsewhere whose keys are remembered
_EVERY = 10.0  # seconds between two looks for issuers that were not found; upstream's
_WITHIN = 60.0  # seconds in which they should be found; upstream's UpdateAuthenticationConfigTimeout


class OIDC:
    """Knows the tokens of all issuers in a configuration; one from a file is read again when the file changes.

    Other issuers are used as soon as all of them are found: until then the old ones stay, so that a mistake in the name
    of one, or one that is away, does not lock out users.
    """

    def __init__(
        self,
        configuration: AuthenticationConfiguration,
        *,
        algorithms: Collection[str] = ALGORITHMS,
        disallowed: Collection[str] = (),
        file: Path | None = None,
        changed: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time,
    ) -> None:
        """`changed` is called when the configuration is another. Raises ValueError for one that is not good."""
        self._algorithms = frozenset(algorithms)
        self._disallowed = disallowed
        self._file = file
        self._watched = Watched([file] if file else [])
        self._changed = changed
        self._now = now
        self._anonymous = configuration.anonymous
        self._issuers = self._made(configuration)
        self._data = file.read_bytes() if file else b""
        self._reloads = Reloads("authentication", self._data) if file else None
        self._tasks = Tasks("authentication configuration")
        self._looking: asyncio.Task[None] | None = None
        """For the issuers of a file that has changed."""

    async def user_of(self, token: str) -> User | None:
        """The user of a token; None if no configured issuer matches. Raises BadCredential."""
        self._refresh()
        issuer = self._issuers.get(issuer_of(jwt.unverified_issuer(token) or ""))
        return None if issuer is None else await issuer.user_of(token)

    def _made(self, configuration: AuthenticationConfiguration) -> dict[str, _Issuer]:
        errors = validate(configuration, self._disallowed)
        if configuration.anonymous != self._anonymous:
            errors.append(forbidden("anonymous", "changed from initial configuration file"))
        if errors:
            raise ValueError(f"invalid authentication configuration: {aggregate(errors)}")
        return {each.issuer.url: _Issuer(each, self._algorithms, self._now) for each in configuration.jwt}

    def _refresh(self) -> None:
        if self._file is None or self._reloads is None or not self._watched.changed():
            return
        try:
            data = self._file.read_bytes()
            if data == self._data:  # another file that says the same
                return
            self._data = data
            issuers = self._made(read(self._file))
        except (OSError, ValueError) as error:
            log.error("%s has changed and cannot be used, the old one stays: %s", self._file, error)
            self._reloads.failed()
            return
        if self._looking is not None:
            self._looking.cancel()
        if issuers:
            look = partial(self._look_for, issuers, data, self._reloads)
            self._looking = self._tasks.start("jwt-issuer-discovery", look)
        else:
            self._use(issuers, data, self._reloads)

    async def _look_for(self, issuers: dict[str, _Issuer], data: bytes, reloads: Reloads) -> None:
        began = monotonic()
        while problems := [problem for each in issuers.values() if (problem := await each.problem())]:
            log.error("%s has changed and cannot be used yet, the old one stays: %s", self._file, "; ".join(problems))
            if monotonic() >= began + _WITHIN:
                reloads.failed()
                began = monotonic()
            await asyncio.sleep(_EVERY)
        self._use(issuers, data, reloads)

    def _use(self, issuers: dict[str, _Issuer], data: bytes, reloads: Reloads) -> None:
        self._issuers = issuers
        self._changed()
        reloads.succeeded(data)
        log.info("%s was read again", self._file)


class _Issuer:
    def __init__(self, configuration: JWTAuthenticator, algorithms: Collection[str], now: Callable[[], float]) -> None:
        issuer = configuration.issuer
        self._audiences = tuple(issuer.audiences)
        self._algorithms = algorithms
        self._authority = issuer.certificate_authority
        self._now = now
        self._groups_claim = configuration.claim_mappings.groups.claim
        self._mapping = Mapping(configuration)
        self._provider = Provider(
            issuer.url, discovery_url=issuer.discovery_url or "", authority=self._authority, now=now
        )
        self._others: dict[str, Provider] = {}

    async def problem(self) -> str:
        """Why the issuer is not found; empty if it is."""
        try:
            await self._provider.discover()
        except BadCredential as error:
            return str(error)
        return ""

    async def user_of(self, token: str) -> User:
        claims = await self._provider.claims(token, self._audiences, self._algorithms)
        if self._groups_claim and self._groups_claim not in claims and "_claim_names" in claims:
            await self._fetch_groups(claims)
        return self._mapping.user(claims)

    async def _fetch_groups(self, claims: dict[str, Any]) -> None:
        """Put the groups into the claims that the issuer keeps elsewhere (OpenID Connect Core, 5.6.2)."""
        try:
            names = msgspec.convert(claims["_claim_names"], dict[str, str])
            sources = msgspec.convert(claims.get("_claim_sources"), dict[str, Source])
        except msgspec.ValidationError as error:
            raise BadCredential(f"oidc: could not parse claim sources: {error}") from error
        name = names.get(self._groups_claim)
        if name is None:
            return
        source = sources[name]  # a token that names a source and does not tell of it is not verified
        if not source.endpoint:
            return
        body, _ = await self._provider.fetch(source.endpoint, source.access_token)
        token = body.decode("ascii", "replace").strip()
        issuer = jwt.unverified_issuer(token)
        if not issuer:
            raise BadCredential(f"oidc: {source.endpoint} answered with no token")
        provider = self._provider if issuer == self._provider.url else self._others.get(issuer)
        if provider is None:
            if len(self._others) >= _OTHERS:
                del self._others[next(iter(self._others))]
            provider = self._others[issuer] = Provider(issuer, authority=self._authority, now=self._now)
        found = await provider.claims(token, self._audiences, self._algorithms)
        if self._groups_claim not in found:
            raise BadCredential(f"oidc: the token of {source.endpoint} has no claim {self._groups_claim}")
        claims[self._groups_claim] = found[self._groups_claim]
