"""An issuer: where its keys are, which they are now, and whether it has signed a token.

Nothing is asked before the first token comes, unless the issuer is one of a configuration that has changed. Keys are
asked for again when a token is signed with none of those we have, and those are older than the issuer said they would
be good for; so a key that the issuer has begun to use is found, and tokens signed at random cannot make us flood the
issuer.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import Callable, Collection
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from pybernetes.api.gocompat.quote import quote
from pybernetes.client.http import HTTPClient

from .. import jwt
from ..authenticator import BadCredential
from .claims import check, public_claims

if TYPE_CHECKING:
    from pybernetes.jws import VerificationKey

log = logging.getLogger(__name__)

_DISCOVERY = "/.well-known/openid-configuration"
_PATIENCE = 30.0  # seconds for an answer; upstream's
_AGAIN = 1.0  # seconds between two questions, at least
_EARLY = 30.0  # seconds before their end that keys count as old; go-oidc's
_MAX_AGE = re.compile(r"max-age=(\d+)")
_LARGEST = 1 << 20  # bytes of an answer
_NOT_INITIALIZED = "oidc: authenticator not initialized"
_UNSIGNED = "oidc: verify token: failed to verify signature: failed to verify id token signature"


class Unavailable(BadCredential):
    """The issuer does not answer, or not what an issuer should."""


class Provider:
    """One issuer."""

    def __init__(
        self, url: str, *, discovery_url: str = "", authority: str = "", now: Callable[[], float] = time
    ) -> None:
        self.url = url
        self._discovery_url = discovery_url or url.rstrip("/") + _DISCOVERY
        self._authority = authority
        self._now = now
        self._jwks_uri = ""
        self._keys: list[tuple[str, VerificationKey]] = []
        self._fresh_until = 0.0
        self._asked = 0.0
        self._asking = asyncio.Lock()

    async def claims(self, token: str, audiences: Collection[str], algorithms: Collection[str]) -> dict[str, Any]:
        """Verify a token of this issuer for one of the audiences and return its claims. Raises BadCredential."""
        try:
            signed = jwt.parse(token)
            check(public_claims(signed.payload), self.url, audiences, self._now())
            claims = jwt.all_claims(signed.payload)
        except ValueError as error:
            raise BadCredential(f"oidc: verify token: oidc: {error}") from error
        if signed.header.alg not in algorithms:
            expected = " ".join(quote(each) for each in sorted(algorithms))
            reason = f"id token signed with unsupported algorithm, expected [{expected}] got {quote(signed.header.alg)}"
            raise BadCredential(f"oidc: verify token: oidc: {reason}")
        await self._verify(signed)
        return claims

    async def fetch(self, url: str, access_token: str = "") -> tuple[bytes, dict[str, str]]:
        """A document that the issuer, or a token of it, points at, with the answer's headers. Raises Unavailable."""
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise Unavailable(f"oidc: {url!r} is no https URL")
        context = ssl.create_default_context(cadata=self._authority or None)
        client = HTTPClient(f"https://{parts.netloc}", context)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"Accept": "*/*"} | ({"Authorization": f"Bearer {access_token}"} if access_token else {})
        try:
            answer = await client.request("GET", target, headers, within=_PATIENCE)
        except (OSError, TimeoutError) as error:
            raise Unavailable(f"oidc: {url}: {error or type(error).__name__}") from error
        finally:
            await client.close()
        if answer.status != 200 or len(answer.body) > _LARGEST:
            raise Unavailable(f"oidc: {url} answered {answer.status}")
        return answer.body, answer.headers

    async def discover(self) -> None:
        """Find out where the keys are, if that is not known yet. Raises Unavailable."""
        async with self._asking:
            if not self._jwks_uri:
                await self._discover()

    async def _verify(self, token: jwt.Signed) -> None:
        if self._signed(token):
            return
        async with self._asking:
            if self._signed(token):  # another request has fetched the keys meanwhile
                return
            now = self._now()
            if now + _EARLY < self._fresh_until or now - self._asked < _AGAIN:
                raise BadCredential(_UNSIGNED if self._jwks_uri else _NOT_INITIALIZED)
            self._asked = now
            await self._refresh()
        if not self._signed(token):
            raise BadCredential(_UNSIGNED)

    def _signed(self, token: jwt.Signed) -> bool:
        if not self._keys:
            return False
        from pybernetes import jws

        header = token.header
        return any(
            jws.verifies(header.alg, token.text, token.signature, key)
            for name, key in self._keys
            if not header.kid or name == header.kid
        )

    async def _refresh(self) -> None:
        if not self._jwks_uri:
            try:
                await self._discover()
            except Unavailable as error:
                raise Unavailable(f"{_NOT_INITIALIZED}: {error}") from error
        body, headers = await self.fetch(self._jwks_uri)
        from pybernetes import jws

        try:
            described = msgspec.json.decode(body)["keys"]
            keys = []
            for each in described:
                if each.get("use", "sig") != "sig":
                    continue
                try:
                    keys.append((str(each.get("kid", "")), jws.from_jwk(each)))
                except ValueError as error:
                    log.info("a key of %s is passed over: %s", self.url, error)
        except (msgspec.MsgspecError, KeyError, TypeError, AttributeError) as error:
            raise Unavailable(f"oidc: {self._jwks_uri} answers with no set of keys") from error
        self._keys = keys
        age = _MAX_AGE.search(headers.get("cache-control", ""))
        self._fresh_until = self._now() + (int(age[1]) if age else 0)

    async def _discover(self) -> None:
        body, _ = await self.fetch(self._discovery_url)
        try:
            document = msgspec.json.decode(body, type=_Discovered)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"oidc: {self._discovery_url}: {error}") from error
        if document.issuer != self.url:
            raise Unavailable(
                f'oidc: issuer did not match the issuer returned by provider, expected "{self.url}" '
                f'got "{document.issuer}"'
            )
        if not document.jwks_uri:
            raise Unavailable("oidc: provider did not return JWKS URL")
        self._jwks_uri = document.jwks_uri


class _Discovered(msgspec.Struct):
    issuer: str = ""
    jwks_uri: str = ""
