"""Tokens in Secrets of type `kubernetes.io/service-account-token`: good as long as the Secret holds exactly this token.

The Secret gets the day of its last use as a label, by which the controller that cleans up old tokens judges it.
"""

from __future__ import annotations

import base64
import hmac
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from pybernetes.api.errors import APIError
from pybernetes.api.times import rfc3339

from ..registry.registry import Registry
from ..registry.strategy import Context
from . import jwt
from .serviceaccount import Keys, Objects, Seen, account_user, user_name
from .user import BadCredential, TokenUser, User, meant_for

log = logging.getLogger(__name__)

ISSUER = "kubernetes/serviceaccount"
LAST_USED = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
_PREFIX = "kubernetes.io/serviceaccount/"
_AUTO_GENERATED = (
    "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated "
    "secret-based tokens."
)
_DAY = 24 * 60 * 60


class _Claims(jwt.Claims):
    account: str = msgspec.field(name=f"{_PREFIX}service-account.name", default="")
    account_uid: str = msgspec.field(name=f"{_PREFIX}service-account.uid", default="")
    secret: str = msgspec.field(name=f"{_PREFIX}secret.name", default="")
    namespace: str = msgspec.field(name=f"{_PREFIX}namespace", default="")


_claims = msgspec.json.Decoder(_Claims)


class LegacyTokens:
    """Recognises what the controller for such Secrets has signed."""

    def __init__(self, registry: Registry, keys: Keys, audiences: Sequence[str], *, lookup: bool) -> None:
        self._registry = registry
        self._keys = keys
        self._audiences = tuple(audiences)
        self._lookup = lookup
        self._objects = Objects(registry)

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> TokenUser | None:
        """The account as a user. Raises BadCredential."""
        try:
            signed = jwt.parse(token)
            if jwt.claims(signed.payload).iss != ISSUER:
                return None
        except jwt.NotAToken:
            return None
        self._keys.check(signed)
        try:
            claims = _claims.decode(signed.payload)
        except msgspec.MsgspecError as error:
            raise BadCredential(f"service account token: {error}") from error
        common = meant_for(claims.audiences or self._audiences, audiences)
        _check_claims(claims)
        user = account_user(claims.namespace, claims.account, claims.account_uid)
        if not self._lookup:
            return TokenUser(user, common)
        seen = Seen()
        warnings = await self._check_objects(seen, claims, token)
        return TokenUser(user, common, warnings, holds=seen.unchanged)

    async def _check_objects(self, seen: Seen, claims: _Claims, token: str) -> tuple[str, ...]:
        """What to warn of. Raises BadCredential."""
        namespace = claims.namespace
        where = f"{namespace}/{claims.secret}"
        secret = await self._objects.find(seen, "secrets", namespace, claims.secret)
        if secret is None or secret.metadata.deletion_timestamp:
            raise BadCredential(f"Token has been invalidated: secret {where} is gone")
        if not hmac.compare_digest(_token_in(secret), token.encode()):
            raise BadCredential(f"Token does not match server's copy in secret {where}")
        account = await self._objects.find(seen, "serviceaccounts", namespace, claims.account)
        if account is None or account.metadata.deletion_timestamp:
            raise BadCredential(f"ServiceAccount {namespace}/{claims.account} has been deleted")
        if account.metadata.uid != claims.account_uid:
            raise BadCredential(f"ServiceAccount UID ({account.metadata.uid}) does not match claim")
        await self._note_use(secret)
        if (secret.metadata.labels or {}).get(INVALID_SINCE):
            raise BadCredential(f"the token in secret {where} has been marked invalid by the label {INVALID_SINCE}")
        listed = any(each.name == claims.secret for each in account.secrets or ())
        return (_AUTO_GENERATED,) if listed else ()

    async def _note_use(self, secret: Any) -> None:
        """Write today's date on the Secret, once a day; a use is good even if that fails."""
        now = self._registry.clock.now()
        today, tomorrow = rfc3339(now)[:10], rfc3339(now + _DAY)[:10]
        if (secret.metadata.labels or {}).get(LAST_USED) in (today, tomorrow):
            return
        from ..verbs.managing import track

        store = self._registry.store("", "v1", "secrets")
        meta = secret.metadata
        server = User("system:apiserver", groups=("system:masters",))
        context = Context(self._registry, server, rfc3339(now), meta.namespace, False, "kube-apiserver", [], "")

        async def label(present: Any) -> Any:
            if present.metadata.uid != meta.uid:
                return present
            old = msgspec.json.decode(msgspec.json.encode(present), type=type(present))
            present.metadata.labels = {**(present.metadata.labels or {}), LAST_USED: today}
            track(store, present, old, context)
            return present

        try:
            await store.write(meta.namespace, meta.name, label)
        except APIError as error:
            log.error("labeling the token %s/%s with its last use: %s", meta.namespace, meta.name, error)


def _check_claims(claims: _Claims) -> None:
    for name in ("sub", "namespace", "secret", "account", "account_uid"):
        if not getattr(claims, name):
            raise BadCredential(f"{name} claim is missing")
    if claims.sub != user_name(claims.namespace, claims.account) or ":" in claims.namespace:
        raise BadCredential("sub claim is invalid")


def _token_in(secret: Any) -> bytes:
    try:
        return base64.b64decode((secret.data or {}).get("token") or "", validate=True)
    except ValueError:
        return b""
