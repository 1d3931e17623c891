"""Reviews that somebody else answers: a kubeconfig says who, an object is posted to it, and what comes back is read.

Tried again as upstream does (5 times, 0.5 s and half as much more each time) when the other one could not be reached or
said that it cannot answer now.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from pybernetes.client import config
from pybernetes.client.transport import Transport

ATTEMPTS = 5
_FIRST, _FACTOR, _JITTER = 0.5, 1.5, 0.2
_LATER = frozenset((429, 500, 503, 504))  # answers after which it is worth asking again


class WebhookFailed(Exception):
    """There is no answer."""


class ReviewWebhook:
    """One server that answers reviews; its address in the kubeconfig is where they are posted to."""

    def __init__(self, kubeconfig: Path, *, timeout: float = 30.0, first_delay: float = _FIRST) -> None:
        """Raises ValueError or OSError for a kubeconfig that leads nowhere."""
        self._config = config.from_kubeconfig([kubeconfig])
        self._timeout = timeout
        self._first_delay = first_delay
        self._transport: Transport | None = None

    async def post(self, body: bytes) -> bytes:
        """The answer to a review. Raises WebhookFailed."""
        if self._transport is None:
            self._transport = Transport(self._config)
        delay = self._first_delay
        trouble = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(delay * (1 + _JITTER * random.random()))
                delay *= _FACTOR
            try:
                headers = await self._transport._headers(None, body)
                answer = await self._transport.http.request("POST", "", headers, body, self._timeout)
            except (OSError, TimeoutError) as error:
                trouble = str(error) or type(error).__name__
                continue
            if answer.status in (200, 201):
                return answer.body
            trouble = f"the webhook answered {answer.status}"
            if answer.status not in _LATER:
                break
        raise WebhookFailed(trouble)

    async def close(self) -> None:
        """Close all connections."""
        if self._transport is not None:
            await self._transport.close()
