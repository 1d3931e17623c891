"""Bootstrap tokens: Secrets `bootstrap-token-ID` in kube-system, for machines that come to join the cluster."""

from __future__ import annotations

import base64
import hmac
import logging
import re
from collections.abc import Sequence
from typing import Any

from pybernetes.api.times import parse_time

from ..registry.registry import Registry
from ..user import User
from .authenticator import TokenUser
from .serviceaccount import Objects, Seen

log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
SECRET_TYPE = "bootstrap.kubernetes.io/token"
GROUP = "system:bootstrappers"
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


class BootstrapTokens:
    """Knows the tokens in such Secrets."""

    def __init__(self, registry: Registry, audiences: Sequence[str]) -> None:
        self._clock = registry.clock
        self._objects = Objects(registry)
        self._audiences = tuple(audiences)

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> TokenUser | None:
        """The user of a token; like upstream, errors of a token of this form are only logged."""
        match = _TOKEN.fullmatch(token)
        common = tuple(each for each in audiences if each in self._audiences)
        if match is None or not common:
            return None
        seen = Seen()
        secret = self._objects.peek(seen, "secrets", NAMESPACE, f"bootstrap-token-{match[1]}")
        problem = "does not exist" if secret is None else problem_of(secret, match[1], match[2], self._clock.now())
        if problem:
            log.warning("the secret %s/bootstrap-token-%s, matching a bearer token, %s", NAMESPACE, match[1], problem)
            return None
        ends = _text(secret, "expiration")
        lifetime = parse_time(ends) - self._clock.now() if ends else 1e9
        user = User(f"system:bootstrap:{match[1]}", groups=tuple(groups_of(secret) or ()))
        return TokenUser(user, common, holds=seen.unchanged, lifetime=lifetime)


def problem_of(secret: Any, token_id: str, token_secret: str, now: float) -> str:
    """Why a Secret is not good for a token; empty if it is."""
    if secret.metadata.deletion_timestamp:
        return "is deleted and awaiting removal"
    if secret.type != SECRET_TYPE:
        return f"has an invalid type, expected {SECRET_TYPE}"
    if not hmac.compare_digest(_text(secret, "token-secret").encode(), token_secret.encode()):
        return "has an invalid value for key token-secret"
    if _text(secret, "token-id") != token_id:
        return "has an invalid value for key token-id"
    if expired(secret, now):
        return "has expired"
    if _text(secret, "usage-bootstrap-authentication") != "true":
        return "is not marked usage-bootstrap-authentication=true"
    if groups_of(secret) is None:
        return "has an invalid value for key auth-extra-groups"
    return ""


def expired(secret: Any, now: float) -> bool:
    """Whether its time is over; a time that cannot be read is."""
    text = _text(secret, "expiration")
    if not text:
        return False
    try:
        return parse_time(text) <= now
    except ValueError:
        return True


def groups_of(secret: Any) -> list[str] | None:
    """The groups of the user, sorted; None if one of them is not for such users."""
    extra = _text(secret, "auth-extra-groups")
    groups = extra.split(",") if extra else []
    if not all(_GROUP.fullmatch(group) for group in groups):
        return None
    return sorted({GROUP, *groups})


def _text(secret: Any, key: str) -> str:
    try:
        return base64.b64decode((secret.data or {}).get(key) or "", validate=True).decode()
    except ValueError:
        return ""
