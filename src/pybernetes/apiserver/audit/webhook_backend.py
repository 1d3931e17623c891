"""The webhook backend: sends events as an EventList."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from pathlib import Path

from pybernetes.client import config
from pybernetes.client.transport import Transport

log = logging.getLogger(__name__)
_ATTEMPTS = 5
_FACTOR, _JITTER = 1.5, 0.2
_TIMEOUT = 30.0
_TARGET = "?timeout=30s"
_ITEM = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1",'
"""How an event begins; in a list it does not say what it is."""
_HEAD = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":['


class WebhookBackend:
    """Posts events; comes back a few times, later and later, when they are not taken."""

    def __init__(self, kubeconfig: Path, *, initial_backoff: float = 10.0) -> None:
        """Raises ValueError or OSError for a kubeconfig that leads nowhere."""
        self._config = config.from_kubeconfig([kubeconfig])
        self._backoff = initial_backoff
        self._transport: Transport | None = None

    async def send(self, events: Sequence[bytes]) -> bool:
        """Whether they were taken."""
        if self._transport is None:
            self._transport = Transport(self._config)
        items = (b"{" + each[len(_ITEM) :] if each.startswith(_ITEM) else each for each in events)
        body = _HEAD + b",".join(items) + b"]}"
        delay, trouble = self._backoff, ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(delay * (1 + _JITTER * random.random()))
                delay *= _FACTOR
            try:
                headers = await self._transport.headers_for(body)
                answer = await self._transport.http.request("POST", _TARGET, headers, body, _TIMEOUT)
            except (OSError, TimeoutError) as error:
                trouble = str(error) or type(error).__name__
                continue
            if answer.status < 300:
                return True
            trouble = f"the webhook answered {answer.status}"
        log.error("%d audit events were not sent: %s", len(events), trouble)
        return False

    async def close(self) -> None:
        """Close all connections."""
        if self._transport is not None:
            await self._transport.close()
