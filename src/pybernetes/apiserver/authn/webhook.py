"""Authenticates tokens by a webhook with TokenReviews; caches positive and negative answers for a while, but no
errors."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from pybernetes.api.authentication.v1 import TokenReview, TokenReviewSpec, TokenReviewStatus, UserInfo
from pybernetes.api.gocompat import goencoder
from pybernetes.api.meta.v1 import ObjectMeta

from ..review_webhook import ReviewWebhook, WebhookFailed, status_of
from ..user import User
from .authenticator import BadCredential, TokenUser

log = logging.getLogger(__name__)

_KEPT = 4096


_Known = tuple[float, TokenUser | None]


class TokenWebhook:
    """Asks a webhook whose token it is."""

    def __init__(self, kubeconfig: Path, version: str, ttl: float, audiences: Sequence[str]) -> None:
        self._webhook = ReviewWebhook(kubeconfig)
        self._api_version = f"authentication.k8s.io/{version}"
        self._ttl = ttl
        self._audiences = tuple(audiences)
        self._known: dict[bytes, _Known] = {}

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> TokenUser | None:
        """The user of a token by the webhook's review. Raises BadCredential, also if there is no answer."""
        # What is kept is a hash: answers live for minutes, and tokens should not.
        key = hashlib.sha256("\0".join((token, *audiences)).encode("utf-8", "surrogatepass")).digest()
        known = self._known.get(key)
        if known is None or known[0] < monotonic():
            answer = self._judged(await self._ask(token, audiences), audiences)
            if len(self._known) >= _KEPT:
                self._known.clear()
            known = self._known[key] = (monotonic() + self._ttl, answer)
        return known[1]

    async def _ask(self, token: str, audiences: Sequence[str]) -> TokenReviewStatus:
        review = TokenReview(metadata=ObjectMeta(), spec=TokenReviewSpec(token=token, audiences=list(audiences)))
        review.kind, review.api_version = "TokenReview", self._api_version
        try:
            answer = await self._webhook.post(goencoder.encode(review))
            return status_of(answer, TokenReviewStatus, self._api_version, "TokenReview")
        except WebhookFailed as error:
            log.error("Failed to make webhook authenticator request: %s", error)
            raise BadCredential(f"webhook: {error}") from error

    def _judged(self, status: TokenReviewStatus, audiences: Sequence[str]) -> TokenUser | None:
        """The user, if there is one. Raises BadCredential if the webhook says what is wrong."""
        meant_for = status.audiences or self._audiences
        common = tuple(each for each in audiences if each in meant_for)
        if not common:
            return None
        if not status.authenticated:
            if status.error:
                raise BadCredential(status.error)
            return None
        user = status.user or UserInfo()
        found = User(user.username or "", user.uid or "", tuple(user.groups or ()), user.extra or {})
        return TokenUser(found, common)
