"""Shared by the controllers beside a driver: a queue of keys, workers, retries with a growing delay, events."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pybernetes.api import errors
from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Secret, SecretReference
from pybernetes.client.backoff import ItemBackoff
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.informer import Informer
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key
from pybernetes.client.workqueue import WorkQueue

from ..client import CSIClient
from ..errors import CSIError

FIRST_RETRY: Final = 1.0
LONGEST_RETRY: Final = 300.0
"""Upstream's sidecars begin with a second and end with five minutes."""
WORKERS: Final = 20
K = TypeVar("K", bound=Kind)


@dataclass(frozen=True)
class Context:
    """The dependencies of a controller beside a driver."""

    client: Client
    informers: InformerFactory
    events: EventBroadcaster
    clock: Clock
    driver: CSIClient
    name: str
    """The driver's."""
    node: str = ""
    """With a node, only what is on this node: the driver has no controller beside those of its nodes."""

    async def secret(self, reference: SecretReference | None) -> dict[str, str] | None:
        """The contents of a Secret; None without a reference. Raises APIError or ValueError."""
        if reference is None:
            return None
        found = await self.client.get(Secret, reference.name or "", reference.namespace or "")
        return {key: base64.b64decode(value).decode() for key, value in (found.data or {}).items()}


class Loop:
    """One queue and its workers. `work(key)` gives the seconds until the next look, or None."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        work: Callable[[Key], Awaitable[float | None]],
        workers: int = WORKERS,
    ) -> None:
        self._work, self._workers = work, workers
        self._log = logging.getLogger(f"pybernetes.csi.{name}")
        backoff: ItemBackoff[Key] = ItemBackoff(FIRST_RETRY, LONGEST_RETRY)
        self.queue: WorkQueue[Key] = WorkQueue(name, clock, backoff=backoff)

    async def run(self, *informers: Informer[Any]) -> None:
        """Wait for the caches, then work until cancelled."""
        for informer in informers:
            await informer.wait_synced()
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                after = await self._work(key)
                self.queue.forget(key)
                if after is not None:
                    self.queue.add_after(key, after)
            except (errors.Conflict, errors.NotFound, errors.AlreadyExists) as error:
                self._log.debug("%s: %s", key, error)
                self.queue.add_rate_limited(key)
            except (errors.APIError, CSIError, OSError, TimeoutError) as error:
                self._log.warning("%s: %s", key, error or type(error).__name__)
                self.queue.add_rate_limited(key)
            except Exception:  # one object's fault must not end the work on the others
                self._log.exception("%s", key)
                self.queue.add_rate_limited(key)
            finally:
                self.queue.done(key)
