"""Writes what the scheduler has to say into a pod's status: the PodScheduled condition, and the nominated node.

One write at a time for a pod, the latest word wins, and nothing is written that the pod says already.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from pybernetes.api import errors
from pybernetes.api.core.podconditions import POD_SCHEDULED, find_pod_condition
from pybernetes.api.core.v1 import Pod
from pybernetes.api.times import rfc3339
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Word:
    """A status update for a pod. `reason` "" = leave its condition; `nominated` None = leave it, "" = remove it."""

    pod: Pod
    reason: str = ""
    message: str = ""
    nominated: str | None = None


class StatusWriter:
    """Sends patches of pods' statuses."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._waiting: dict[str, Word] = {}
        """By uid, the word that comes after the one being written."""
        self._writing: dict[str, asyncio.Task[None]] = {}

    def say(self, word: Word) -> None:
        """Write this, soon."""
        if patch_of(word, self._clock.now()) is None and self._uid(word) not in self._writing:
            return
        uid = self._uid(word)
        earlier = self._waiting.get(uid)
        if earlier is not None:
            word = Word(
                word.pod,
                word.reason or earlier.reason,
                word.message if word.reason else earlier.message,
                earlier.nominated if word.nominated is None else word.nominated,
            )
        self._waiting[uid] = word
        if uid not in self._writing:
            task = asyncio.get_running_loop().create_task(self._write(uid), name="pod status")
            self._writing[uid] = task

    async def flush(self) -> None:
        """Return when everything is written."""
        while self._writing:
            await asyncio.wait(self._writing.values())

    async def close(self) -> None:
        """Write no more."""
        tasks = list(self._writing.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _write(self, uid: str) -> None:
        try:
            while uid in self._waiting:
                await self._send(self._waiting.pop(uid))
        except Exception:
            log.exception("the status of pod %s could not be written", uid)
        finally:
            del self._writing[uid]

    async def _send(self, word: Word) -> None:
        patch = patch_of(word, self._clock.now())
        metadata = word.pod.metadata
        if patch is None or metadata is None:
            return
        try:
            await self._client.patch(
                Pod,
                metadata.name or "",
                {"metadata": {"uid": metadata.uid}, "status": patch},
                metadata.namespace or "",
                type="strategic",
                subresource="status",
            )
        except (errors.NotFound, errors.Conflict):
            pass  # gone, or another of the same name: nothing left to tell
        except (errors.APIError, OSError, TimeoutError) as error:
            log.warning("the status of pod %s/%s could not be written: %s", metadata.namespace, metadata.name, error)

    @staticmethod
    def _uid(word: Word) -> str:
        return (word.pod.metadata.uid if word.pod.metadata else None) or ""


def patch_of(word: Word, now: float) -> dict[str, Any] | None:
    """The change of the status; None if the pod says all that already."""
    patch: dict[str, Any] = {}
    status = word.pod.status
    if word.reason:
        generation = word.pod.metadata.generation if word.pod.metadata else None
        old = find_pod_condition(status, POD_SCHEDULED)
        said = old is not None and (
            old.status,
            old.reason,
            old.message,
            old.observed_generation or None,
        ) == ("False", word.reason, word.message, generation or None)
        if not said:
            condition: dict[str, Any] = {
                "type": POD_SCHEDULED,
                "status": "False",
                "reason": word.reason,
                "message": word.message,
                "lastProbeTime": None,
            }
            if generation:
                condition["observedGeneration"] = generation
            if old is None or old.status != "False":
                condition["lastTransitionTime"] = rfc3339(now)
            patch["conditions"] = [condition]
    if word.nominated is not None and word.nominated != ((status.nominated_node_name if status else None) or ""):
        patch["nominatedNodeName"] = word.nominated or None
    return patch or None
