"""A stream of container events from whichever source a runtime has.

`container_events(runtime)` uses CRI's GetContainerEvents if the runtime has it, else containerd's own event service. It
lives through restarts of the runtime, and says `RESYNC` when it lost the runtime and when it has it (again): list each
time, and nothing is missed. When an event arrives, CRI's other calls already tell the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from pybernetes.cri import v1
from pybernetes.cri.container_event import POD_UID, ContainerEvent, EventType
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

__all__ = ["ContainerEvent", "EventType", "container_events"]

log = logging.getLogger(__name__)

SILENCE = 0.2
"""Seconds without a refusal after which the stream is taken for open: servers in Go say nothing before the first event,
and a refusal comes within a millisecond."""
PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two attempts; doubled while they fail."""
WAIT = 30.0
"""Seconds to wait for a runtime that is away."""
PASSING = ("Unavailable", "DeadlineExceeded", "Canceled", "Aborted", "Internal")
"""The errors of calls while a runtime stops or starts."""

# Not starts: who starts a container knows it.
TYPES = {
    "CONTAINER_STOPPED_EVENT": EventType.STOPPED,
    "CONTAINER_DELETED_EVENT": EventType.DELETED,
}


async def container_events(runtime: Runtime) -> AsyncIterator[ContainerEvent]:
    """The events of a runtime, for ever; `CRIError` with `Unimplemented` if it has no way to tell them."""
    source = cri_events
    pause = PAUSE
    while True:
        try:
            async for event in source(runtime):
                pause = PAUSE
                yield event
        except CRIError as error:
            if error.code == "Unimplemented":
                if source is not cri_events or (await runtime.version(wait=WAIT)).runtime_name != "containerd":
                    raise
                from pybernetes.cri import containerd_events

                source = containerd_events.watch
                continue
            log.log(logging.INFO if error.code in PASSING else logging.WARNING, "the runtime's events: %s", error)
        yield ContainerEvent(EventType.RESYNC)
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
        with contextlib.suppress(CRIError):
            await runtime.version(wait=WAIT)


async def cri_events(runtime: Runtime) -> AsyncIterator[ContainerEvent]:
    """The events of GetContainerEvents until the stream ends."""
    types = {getattr(v1, name): kind for name, kind in TYPES.items()}
    stream = runtime.get_container_events()
    first = asyncio.ensure_future(anext(stream, None))
    try:
        if not (await asyncio.wait([first], timeout=SILENCE))[0]:
            # One that has much to do may not have come to the request yet; when it answers a later one, it has.
            answered = asyncio.ensure_future(runtime.version())
            await asyncio.wait([first, answered], return_when=asyncio.FIRST_COMPLETED)
            answered.cancel()
            await asyncio.gather(answered, return_exceptions=True)
        if first.done() and first.exception() is not None:
            await first
        yield ContainerEvent(EventType.RESYNC)
        response = await first
        while response is not None:
            if response.container_event_type in types:
                uid = response.pod_sandbox_status.metadata.uid or response.pod_sandbox_status.labels.get(POD_UID, "")
                yield ContainerEvent(types[response.container_event_type], response.container_id, uid)
            response = await anext(stream, None)
    finally:
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await stream.aclose()  # type: ignore[attr-defined]
