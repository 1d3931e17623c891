"""Tells which pods have changed in the runtime (upstream's Pod Lifecycle Event Generator), and remembers how they are.

Where the runtime has a stream of events, that is what wakes; a relist now and then finds what a stream may have lost.
Where it has none, the relist comes every second. A pod's worker may ask for the present state at any time (`refresh`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from pybernetes.client.clock import Clock
from pybernetes.cri.errors import CRIError
from pybernetes.cri.events import EventType, container_events
from pybernetes.cri.remote import Runtime

from .pod_observer import Observing, states_of
from .types import ObservedPod, ObservedSandbox, PodRef

RELIST: Final = 1.0
"""Seconds between relists without events; upstream's."""
RELIST_WITH_EVENTS: Final = 30.0
UNHEALTHY: Final = 180.0
"""Seconds without a relist after which the node is not ready; upstream's."""
log = logging.getLogger(__name__)

STARTED: Final = "ContainerStarted"
DIED: Final = "ContainerDied"
REMOVED: Final = "ContainerRemoved"
_NAMES: Final = {EventType.STOPPED: DIED, EventType.DELETED: REMOVED}
_States = frozenset[tuple[str, int]]


class PLEG:
    """`changed(uid)` is called for each pod that the runtime changed, made or lost; `relisted` after each relist."""

    def __init__(
        self,
        runtime: Runtime,
        observing: Observing,
        clock: Clock,
        changed: Callable[[str], None],
        relisted: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._observing = observing
        self._clock = clock
        self._changed = changed
        self._relisted = relisted
        self._states: dict[str, tuple[PodRef, _States]] = {}
        self._cache: dict[str, ObservedPod] = {}
        self._listed = clock.monotonic()
        self._wanted = asyncio.Event()
        self._events = False
        self.took: Callable[[float, float | None], None] = lambda took, interval: None
        """Called with the duration of each relist, and the time since the one before."""
        self.streaming: Callable[[bool], None] = lambda ok: None
        """Called with whether the runtime has an event stream, each time it is opened."""
        self.seen: Callable[[str, str, str], None] = lambda uid, type, id: None
        """Called for each change as upstream's PLEG names it: the pod's uid, `ContainerDied`, the container or
        sandbox."""
        self.synced = asyncio.Event()
        """The runtime has been listed once."""

    def known(self) -> dict[str, PodRef]:
        """All pods that the runtime had at the last look, by uid."""
        return {uid: ref for uid, (ref, _) in self._states.items()}

    def all(self) -> list[ObservedPod]:
        """All pods as they were seen last."""
        return list(self._cache.values())

    def get(self, uid: str) -> ObservedPod | None:
        """The pod as it was seen last."""
        return self._cache.get(uid)

    async def refresh(self, ref: PodRef) -> ObservedPod:
        """The pod as it is now."""
        observed = await self._observing.pod(ref)
        if observed.sandboxes or observed.containers:
            self._cache[ref.uid] = observed
        else:
            self._cache.pop(ref.uid, None)
        return observed

    def never_seen(self, uid: str) -> bool:
        """Whether the runtime has been listed and has nothing of a pod, unless it was made since."""
        return self.synced.is_set() and uid not in self._states and uid not in self._cache

    async def started(
        self, before: ObservedPod, sandbox: ObservedSandbox | None, containers: Iterable[str]
    ) -> ObservedPod:
        """The pod as it is now, if nothing was done to it but that these were started."""
        containers = list(containers)
        for id in (*([] if sandbox is None else [sandbox.id]), *containers):
            self.seen(before.uid, STARTED, id)
        observed = self._cache[before.uid] = await self._observing.started(before, sandbox, containers)
        return observed

    def problem(self) -> str:
        """Why the view of the runtime cannot be trusted; empty if it can."""
        elapsed = self._clock.monotonic() - self._listed
        period = RELIST_WITH_EVENTS if self._events else RELIST
        if elapsed - period < UNHEALTHY:
            return ""
        if not self.synced.is_set():
            return "pleg has yet to be successful"
        return f"pleg was last seen active {elapsed:.0f}s ago; threshold is 3m0s"

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._relist_for_ever())

    def relist_soon(self) -> None:
        """Look at everything as soon as possible."""
        self._wanted.set()

    async def _watch(self) -> None:
        try:
            async for event in container_events(self._runtime):
                if event.type is EventType.RESYNC:
                    self._events = True
                    self.streaming(True)
                    self._wanted.set()
                elif event.pod_uid:
                    if event.type is EventType.OOM:
                        self._observing.forget(event.container_id)
                    elif event.type in _NAMES:
                        self.seen(event.pod_uid, _NAMES[event.type], event.container_id)
                    self._changed(event.pod_uid)
                else:
                    self._wanted.set()
        except CRIError as error:
            if error.code != "Unimplemented":
                raise
            self.streaming(False)
            log.info("the runtime has no events, it is listed every second")
            self._events = False

    async def _relist_for_ever(self) -> None:
        while True:
            self._wanted.clear()
            try:
                await self._relist()
            except CRIError as error:
                log.warning("the runtime cannot be listed: %s", error)
                await self._clock.sleep(RELIST / 4)
                continue
            timer = self._clock.call_later(RELIST_WITH_EVENTS if self._events else RELIST, self._wanted.set)
            await self._wanted.wait()
            timer.cancel()

    async def _relist(self) -> None:
        begun, last = self._clock.monotonic(), self._listed
        before, now = self._states, await self._observing.all()
        self._states = now
        self._listed = self._clock.monotonic()
        first = not self.synced.is_set()
        self.took(self._listed - begun, None if first else begun - last)
        self.synced.set()
        for uid in before.keys() | now.keys():
            old, new = before.get(uid), now.get(uid)
            # What was seen since the look before is in the cache alone: it may have gone without an event.
            seen = self._cache.get(uid) if new is not None else self._cache.pop(uid, None)
            if first or old is None or new is None or old[1] != new[1] or (seen and states_of(seen) != new[1]):
                self._changed(uid)
        self._relisted()
