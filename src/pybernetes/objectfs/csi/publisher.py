"""References of targets to volumes on one node: the first starts a volume's client, the last ends it.

What is published is on disk (`state`), so that a plugin that was killed goes on where it was. `tend` is called now and
then: it ends clients whose delay is over and has deleted mount pods recreated.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pybernetes.component import offload
from pybernetes.csi.errors import CSIError
from pybernetes.objectfs.csi.binding import bind, is_dead, unbind
from pybernetes.objectfs.csi.mounts import Mounts, PodMounts
from pybernetes.objectfs.csi.request import Volume
from pybernetes.objectfs.csi.state import Published, States

log = logging.getLogger(__name__)
# How long a volume's folder may take to be made or looked at.
LOOK_SECONDS = 30.0
T = TypeVar("T")


class Publisher:
    """Publishes volumes at target paths."""

    def __init__(self, mounts: Mounts, states: States, now: Callable[[], float] = time.time) -> None:
        self._mounts, self._states, self._now = mounts, states, now
        self._locks: dict[str, asyncio.Lock] = {}

    async def publish(self, volume: Volume, target: str, read_only: bool, *, single: bool = False) -> None:
        """Idempotent: a target that is published stays so. `single`: a volume that has another target is refused."""
        async with self._lock(volume.id):
            known = self._states.get(volume.id) or Published(volume.id, volume.to_state())
            known.references = await asyncio.to_thread(_living, known.references)
            if single and (others := [each for each in known.references if each != target]):
                raise CSIError("FailedPrecondition", f"volume {volume.id} is for one pod, and published at {others[0]}")
            if target not in known.references:
                known.references.append(target)
            if read_only and target not in known.read_only:
                known.read_only.append(target)
            known.volume, known.expires = volume.to_state(), 0.0
            # On disk before anything is mounted: an unpublish after a crash finds it.
            self._states.put(known)
            log.info("volume %s: create or add reference %s (%d in all)", volume.id, target, len(known.references))
            await self._mounts.start(volume, known.references)
            await self._mounts.note(volume.id, known.references)
            source = self._mounts.place(volume.id)
            await _at(target, partial(bind, source, volume.folder, target, read_only=read_only))
            log.info("volume %s: bound %s at %s", volume.id, source / volume.folder, target)

    async def unpublish(self, id: str, target: str) -> None:
        """Idempotent; the client of a volume without references ends, after its delay if it has one."""
        async with self._lock(id):
            await _at(target, partial(unbind, target))
            known = self._states.get(id)
            if known is None:
                return
            for targets in (known.references, known.read_only):
                if target in targets:
                    targets.remove(target)
            log.info("volume %s: removed reference %s (%d left)", id, target, len(known.references))
            delay = float(known.volume.get("delay", 0.0))
            if known.references or delay:
                known.expires = 0.0 if known.references else self._now() + delay
                self._states.put(known)
                await self._mounts.note(id, known.references)
                return
            await self._mounts.stop(id)
            self._states.remove(id)

    async def tend(self) -> None:
        """One look at everything that is published; a volume that fails does not keep the others from it."""
        for each in self._states.all():
            async with self._lock(each.id):
                try:
                    await self._tend(each.id)
                except Exception as error:
                    log.error("volume %s: %s", each.id, error)

    async def _tend(self, id: str) -> None:
        known = self._states.get(id)
        if known is None:
            return
        living = await asyncio.to_thread(_living, known.references)
        if living != known.references:
            log.info("volume %s: %d references are of pods that are gone", id, len(known.references) - len(living))
            known.references = living
            self._states.put(known)
        if not known.references:
            if known.expires <= self._now():
                await self._mounts.stop(id)
                self._states.remove(id)
        elif isinstance(self._mounts, PodMounts):
            volume = Volume.from_state(known.volume)
            if await self._mounts.revive(volume, known.references):
                return
            for target in known.references:
                if await _at(target, partial(is_dead, target)):
                    # Plugin and mount pod died together: containers that start from now on have the volume again.
                    log.warning("volume %s: bind %s again, its mount was lost", id, target)
                    await _at(target, partial(unbind, target))
                    read_only = target in known.read_only
                    again = partial(bind, self._mounts.place(id), volume.folder, target, read_only=read_only)
                    await _at(target, again)

    def _lock(self, id: str) -> asyncio.Lock:
        return self._locks.setdefault(id, asyncio.Lock())


async def _at(target: str, work: Callable[[], T]) -> T:
    """Work on a path that a dead or slow client may keep waiting; raises `CSIError` when it takes too long."""
    try:
        return await offload.run(f"mount {target}", LOOK_SECONDS, work)
    except TimeoutError:
        raise CSIError("DeadlineExceeded", f"{target} does not answer within {LOOK_SECONDS:.0f} s") from None


def _living(targets: list[str]) -> list[str]:
    """Without those whose pod's folder is gone: its kubelet will not ask for them to be unpublished."""
    return [each for each in targets if os.path.isdir(os.path.dirname(each))]
