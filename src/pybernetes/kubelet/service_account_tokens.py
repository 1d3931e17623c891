"""Tokens of service accounts for pods: asked for when a volume wants one, asked for again before they are old.

A token is renewed when 80 % of its life have passed, or 24 hours, or when the clock was set back to before it was
issued: no server takes it then. While the server cannot give a new one, the old one is used as long as it is valid.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from pybernetes.api import errors
from pybernetes.api.authentication.v1 import BoundObjectReference, TokenRequest, TokenRequestSpec
from pybernetes.api.core.v1 import Pod, ServiceAccount
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.times import Clock, parse_time, rfc3339
from pybernetes.client.client import Client

log = logging.getLogger(__name__)

MAX_AGE: Final = 24 * 3600.0
MAX_JITTER: Final = 10.0
SET_BACK: Final = 60.0
"""Seconds that the clock may be set back; the API server tolerates that."""


class TokenError(Exception):
    """There is no valid token."""


class _Key(NamedTuple):
    namespace: str
    account: str
    audience: str
    seconds: int | None
    pod_name: str
    pod_uid: str


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    expires: float
    renew: float
    """When another one is wanted."""
    issued: float
    """When it came, by this node's clock."""


class Tokens:
    """The tokens of this node's pods."""

    def __init__(self, client: Client | None, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        self._client = client
        self._clock = clock
        self._jitter = jitter
        self._tokens: dict[_Key, _Token] = {}

    async def get(self, pod: Pod, audience: str, seconds: int | None) -> str:
        """A valid token of the pod's account, bound to the pod; raises `TokenError`."""
        return (await self._get(pod, audience, seconds)).text

    async def get_expiring(self, pod: Pod, audience: str, seconds: int | None) -> tuple[str, str]:
        """A valid token, and when it expires (RFC 3339)."""
        token = await self._get(pod, audience, seconds)
        return token.text, rfc3339(token.expires)

    async def _get(self, pod: Pod, audience: str, seconds: int | None) -> _Token:
        metadata = pod.metadata or ObjectMeta()
        account = (pod.spec.service_account_name if pod.spec else None) or ""
        key = _Key(metadata.namespace or "", account, audience, seconds, metadata.name or "", metadata.uid or "")
        held = self._tokens.get(key)
        now = self._clock.now()
        if held is not None and held.issued - SET_BACK < now < held.renew:
            return held
        try:
            token = self._tokens[key] = await self._request(key)
            return token
        except (errors.APIError, OSError, TokenError) as error:
            if held is None:
                raise TokenError(f"failed to fetch token: {error or type(error).__name__}") from None
            if now >= held.expires:
                raise TokenError(f"token of {key.namespace}/{account} expired and refresh failed: {error}") from None
            log.warning("cannot renew the token of %s/%s: %s", key.namespace, account, error)
            return held

    def renew_at(self, uid: str) -> float | None:
        """When the first token of a pod wants to be renewed."""
        return min((token.renew for key, token in self._tokens.items() if key.pod_uid == uid), default=None)

    def forget(self, uid: str) -> None:
        """A pod has gone."""
        for key in [each for each in self._tokens if each.pod_uid == uid]:
            del self._tokens[key]

    async def _request(self, key: _Key) -> _Token:
        if self._client is None:
            raise TokenError("cannot use TokenManager when kubelet is in standalone mode")
        reference = BoundObjectReference(kind="Pod", api_version="v1", name=key.pod_name, uid=key.pod_uid)
        request = TokenRequest(
            kind="TokenRequest",
            api_version="authentication.k8s.io/v1",
            spec=TokenRequestSpec(
                audiences=[key.audience] if key.audience else None,
                expiration_seconds=key.seconds,
                bound_object_ref=reference,
            ),
        )
        answer = await self._client.subresource("POST", ServiceAccount, key.account, key.namespace, "token", request)
        if answer.status is None or not answer.status.token or not answer.status.expiration_timestamp:
            raise TokenError("the server's answer has no token")
        expires = parse_time(answer.status.expiration_timestamp)
        life = (answer.spec.expiration_seconds if answer.spec else None) or key.seconds or int(MAX_AGE)
        early = self._jitter() * MAX_JITTER
        renew = min(expires - life + MAX_AGE, expires - life * 20 // 100) - early
        return _Token(answer.status.token, expires, renew, self._clock.now())
