"""Container events for all subscribers (GetContainerEvents)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from pybernetes.cri import v1 as cri

MOST = 10_000
"""Events that wait for a slow listener; more, and its stream ends, so that it lists again."""


class Events:
    """`describe` makes the statuses that an event carries: of the sandbox and of its containers."""

    def __init__(self, describe: Callable[[str], tuple[Any, list[Any]]]) -> None:
        self._describe = describe
        self._listeners: set[asyncio.Queue[Any]] = set()

    def tell(self, kind: int, id: str, sandbox_id: str, last: Any = None) -> None:
        """Something happened to a container or, with both ids the same, a sandbox; `last`: of one that is gone."""
        if not self._listeners:
            return
        status, statuses = (last, []) if last is not None else self._describe(sandbox_id)
        event = cri.ContainerEventResponse(
            container_id=id,
            container_event_type=kind,
            created_at=time.time_ns(),
            pod_sandbox_status=status,
            containers_statuses=statuses,
        )
        for queue in list(self._listeners):
            if queue.qsize() >= MOST:
                self._listeners.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(event)

    async def listen(self) -> AsyncIterator[Any]:
        """All events from now on."""
        queue: asyncio.Queue[Any] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._listeners.discard(queue)
