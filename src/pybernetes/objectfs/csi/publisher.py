"""References of targets to volumes on one node: the first starts a volume's client, the last ends it.

What is published is on disk (`state`), so that a plugin that was killed goes on where it was. `tend` is called now and
then: it ends clients whose delay is over and has mount pods made again that somebody deleted.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from pybernetes.objectfs.csi.mounts import Mounts, PodMounts
from pybernetes.objectfs.csi.request import Volume
from pybernetes.objectfs.csi.state import Published, States
from pybernetes.objectfs.fuse import mount_point

log = logging.getLogger(__name__)
MS_BIND, MS_REMOUNT, MS_RDONLY = 4096, 32, 1
# How long a volume's folder may take to be made or looked at.
LOOK_SECONDS = 30.0


class Publisher:
    """Publishes volumes at target paths."""

    def __init__(self, mounts: Mounts, states: States, now: Callable[[], float] = time.time) -> None:
        self._mounts, self._states, self._now = mounts, states, now
        self._locks: dict[str, asyncio.Lock] = {}

    async def publish(self, volume: Volume, target: str, read_only: bool) -> None:
        """Idempotent: a target that is published stays so."""
        async with self._lock(volume.id):
            known = self._states.get(volume.id) or Published(volume.id, volume.to_state())
            known.references = await asyncio.to_thread(_living, known.references)
            if target not in known.references:
                known.references.append(target)
            known.volume, known.expires = volume.to_state(), 0.0
            # On disk before anything is mounted: an unpublish after a crash finds it.
            self._states.put(known)
            log.info("volume %s: create or add reference %s (%d in all)", volume.id, target, len(known.references))
            await self._mounts.start(volume, known.references)
            await self._mounts.note(volume.id, known.references)
            source = self._mounts.place(volume.id)
            await asyncio.wait_for(asyncio.to_thread(_bind, source, volume.folder, target, read_only), LOOK_SECONDS)
            log.info("volume %s: bound %s at %s", volume.id, source / volume.folder, target)

    async def unpublish(self, id: str, target: str) -> None:
        """Idempotent; the client of a volume without references ends, after its delay if it has one."""
        async with self._lock(id):
            await asyncio.wait_for(asyncio.to_thread(_unbind, target), LOOK_SECONDS)
            known = self._states.get(id)
            if known is None:
                return
            if target in known.references:
                known.references.remove(target)
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
                if await asyncio.wait_for(asyncio.to_thread(_is_dead, target), LOOK_SECONDS):
                    # Plugin and mount pod died together: containers that start from now on have the volume again.
                    log.warning("volume %s: bind %s again, its mount was lost", id, target)
                    await asyncio.to_thread(_unbind, target)
                    source = self._mounts.place(id)
                    await asyncio.wait_for(asyncio.to_thread(_bind, source, volume.folder, target, False), LOOK_SECONDS)

    def _lock(self, id: str) -> asyncio.Lock:
        return self._locks.setdefault(id, asyncio.Lock())


def _bind(source: Path, folder: str, target: str, read_only: bool) -> None:
    path = source / folder
    if folder:
        path.mkdir(parents=True, exist_ok=True)
    os.makedirs(target, exist_ok=True, mode=0o750)
    if mount_point.mounted(target) is not None:
        return
    _mount(str(path), target, MS_BIND)
    if read_only:
        _mount("", target, MS_BIND | MS_REMOUNT | MS_RDONLY)


def _living(targets: list[str]) -> list[str]:
    """Without those whose pod's folder is gone: its kubelet will not ask for them to be unpublished."""
    return [each for each in targets if os.path.isdir(os.path.dirname(each))]


def _is_dead(target: str) -> bool:
    """True for a mount that nobody will ever answer again."""
    try:
        os.stat(target)
    except OSError as error:
        return error.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    return False


def _unbind(target: str) -> None:
    while mount_point.mounted(target) is not None:
        mount_point.unmount(target, lazy=True)
    try:
        os.rmdir(target)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


def _mount(source: str, target: str, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(flags), None) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"cannot mount {source} at {target}: {os.strerror(code)}")
