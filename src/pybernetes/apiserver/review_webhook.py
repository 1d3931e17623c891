"""Reviews by a webhook: a kubeconfig names the server, an object is posted to it, and the response is read.

What is worth asking again is what upstream asks again: a connection that was reset, an answer that says that its sender
is in trouble (429, 500 and the like, 504; five times, 0.5 s later and half as much more each time), and any answer that
names a time to come back (`Retry-After`). A webhook that cannot be reached, or takes too long, is not called twice:
the request that we ask for is waiting.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TypeVar

import msgspec

from pybernetes.api import configfile, strict
from pybernetes.api.base import Struct
from pybernetes.api.gocompat import gojson
from pybernetes.api.times import format_duration
from pybernetes.client import config
from pybernetes.client.transport import Transport

from .webhooks.answers import refusal

T = TypeVar("T", bound=Struct)

ATTEMPTS = 5
_FIRST, _FACTOR, _JITTER = 0.5, 1.5, 0.2
_RETURNS = 10  # retries after `Retry-After`; client-go's
_FINAL = frozenset((503,))  # of the answers from 500 on: it comes with `Retry-After`

Outcome = Callable[[str, float], None]
"""Called for every attempt: success, timeout or error, and the seconds it took."""


class WebhookFailed(Exception):
    """There is no answer."""

    def __init__(self, why: str, outcome: str = "error", *, again: bool = False) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.again = again
        """Whether it is worth asking again."""


class ReviewWebhook:
    """One server that answers reviews; its address in the kubeconfig is where they are posted to."""

    def __init__(self, kubeconfig: Path, *, timeout: float = 30.0, first_delay: float = _FIRST) -> None:
        """Raises ValueError or OSError for a kubeconfig that leads nowhere."""
        self._config = config.from_kubeconfig([kubeconfig])
        self._timeout = timeout
        self._target = f"?timeout={format_duration(int(timeout * 1e9))}"
        self._first_delay = first_delay
        self._transport: Transport | None = None

    async def post(self, body: bytes, attempted: Outcome = lambda outcome, seconds: None) -> bytes:
        """The answer to a review. Raises WebhookFailed."""
        delay = self._first_delay
        for left in reversed(range(ATTEMPTS)):
            began = monotonic()
            try:
                answer = await self._ask(body)
                attempted("success", monotonic() - began)
                return answer
            except WebhookFailed as failed:
                attempted(failed.outcome, monotonic() - began)
                if not left or not failed.again:
                    raise
            await asyncio.sleep(delay * (1 + _JITTER * random.random()))
            delay *= _FACTOR
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Close all connections."""
        if self._transport is not None:
            await self._transport.close()

    async def _ask(self, body: bytes) -> bytes:
        """One attempt, with the times that the other one tells us to come back. Raises WebhookFailed."""
        if self._transport is None:
            self._transport = Transport(self._config, replay=True)
        transport = self._transport
        try:
            async with asyncio.timeout(self._timeout):
                for _ in range(_RETURNS):
                    headers = await transport.headers_for(body)
                    answer = await transport.http.request("POST", self._target, headers, body, self._timeout)
                    later = answer.headers.get("retry-after", "")
                    if not later.isdecimal() or not (answer.status == 429 or answer.status >= 500):
                        break
                    await asyncio.sleep(int(later))
        except TimeoutError:
            raise WebhookFailed("context deadline exceeded", "timeout") from None
        except OSError as error:
            raise WebhookFailed(str(error) or type(error).__name__, again=_was_reset(error)) from None
        status = answer.status
        if status in (200, 201, 202):
            return answer.body
        worth = status == 429 or (status >= 500 and status not in _FINAL)
        raise WebhookFailed(refusal(status, answer.body, ""), "timeout" if status == 504 else "error", again=worth)


def status_of(answer: bytes, cls: type[T], api_version: str, kind: str) -> T:
    """The status of the review that came back; what is unknown in it does not matter. Raises WebhookFailed."""
    try:
        review = gojson.loads(answer)
        found = configfile.named_type(review)
        if (found[0] or api_version, found[1] or kind) != (api_version, kind):
            raise WebhookFailed(f"a {kind} of {api_version} was expected, not {found[1]} of {found[0]}")
        status = dict(review or ()).get("status")
        plain, _ = strict.read(cls, {} if status is None else status)
        return msgspec.convert(plain, cls)
    except ValueError as error:
        raise WebhookFailed(str(error)) from None


def _was_reset(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ConnectionResetError):
            return True
        error = error.__cause__
    return False
