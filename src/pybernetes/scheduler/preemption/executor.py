"""Evicts victims, beside the scheduling of other pods.

Until the deletions have been asked for, the pod that needs the room is kept out of the queue (`running`): tried before,
it would preempt again. The last victim is deleted by itself at the end, and from the moment its deletion is seen the
pod is let in again, for the event that wakes the pod may come before the answer to our own request.

A victim that waits for a permit was never bound: it is sent back to the queue, without the API server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from pybernetes.api import errors
from pybernetes.api.core.podconditions import find_pod_condition
from pybernetes.api.core.v1 import Pod, PodCondition
from pybernetes.api.times import rfc3339
from pybernetes.client.keys import Key, key_of

from ..framework.handle import Handle
from ..framework.podinfo import PodInfo

TRIES = 4  # client-go's DefaultBackoff: 10 ms, then five times longer each time
DELAY = 0.01
FACTOR = 5.0
MANY = 1000  # preemptors that are in no queue: some must be gone
log = logging.getLogger(__name__)


class _Eviction:
    """The eviction under way for one preemptor."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last: Key | None = None
        """The last victim, once it is its turn."""


class Executor:
    """Evictions under way, for all pods of a profile."""

    def __init__(self, handle: Handle, plugin_name: str) -> None:
        self._handle = handle
        self._plugin_name = plugin_name
        self._pods = handle.informer(Pod)
        self._running: dict[str, _Eviction] = {}
        """By the preemptor's uid."""
        self._preemptors: dict[Key, Key] = {}
        """The preemptors that wait for that last victim."""
        self._finished: set[Key] = set()
        """Preemptors whose victims are gone, until they are in the queue again."""
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, pod: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Evict these pods from the node, for this one; returns at once."""
        to_delete = [each for each in victims if not _deleting(each.pod)]
        if not to_delete:
            return
        self._handle.metrics.preemption_victims.observe(len(victims))
        eviction = self._running[pod.uid] = _Eviction()
        task = asyncio.create_task(self._run(eviction, pod, node_name, to_delete), name=f"preempt for {pod.key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def running(self, uid: str) -> bool:
        """Whether victims of this pod have still to be deleted."""
        eviction = self._running.get(uid)
        if eviction is None or eviction.last is None:
            return eviction is not None
        victim = self._pods.get(eviction.last)
        return victim is not None and not _deleting(victim)

    def released(self, gone: Pod) -> set[Key]:
        """Preemptors for which `running` may have become False, now that this pod is gone."""
        if len(self._finished) > MANY:
            self._finished = {key for key in self._finished if self._pods.get(key) is not None}
        preemptor = self._preemptors.get(key_of(gone))
        return self._finished if preemptor is None else self._finished | {preemptor}

    def let_in(self, pod: PodInfo) -> None:
        """The pod is in the queue again."""
        self._finished.discard(pod.key)
        self._running.pop(pod.uid, None)

    async def drain(self) -> None:
        """Return when nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, eviction: _Eviction, pod: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        failed = False
        started = time.perf_counter()
        try:
            failed |= not await self._clear_nominations(pod, node_name)
            *others, last = victims
            results = await asyncio.gather(
                *(self._preempt(pod, node_name, each) for each in others), return_exceptions=True
            )
            broken = [each for each in results if isinstance(each, BaseException)]
            if broken:
                raise broken[0]
            eviction.last = last.key
            self._preemptors[last.key] = pod.key
            await self._preempt(pod, node_name, last)
        except Exception as error:
            log.error("preempting pods on %s for %s failed: %s", node_name, pod.key, error)
            failed = True
        finally:
            if eviction.last is not None:
                self._preemptors.pop(eviction.last, None)
            if self._running.get(pod.uid) is eviction:  # else the pod was let in before the last answer came
                del self._running[pod.uid]
                if self._pods.get(pod.key) is not None:
                    self._finished.add(pod.key)
        result = "error" if failed else "success"
        self._handle.metrics.preemption_seconds.observe(time.perf_counter() - started, result)
        self._handle.metrics.preemptions.inc(result)
        if failed:
            # Nothing that would wake it may ever happen.
            self._handle.activate([pod.pod])

    async def _clear_nominations(self, pod: PodInfo, node_name: str) -> bool:
        """Less important pods that were to get the node need another one, and sooner rather than later."""
        done = True
        for each in list(self._handle.nominator.on_node(node_name)):
            if each.priority >= pod.priority or not (each.pod.status and each.pod.status.nominated_node_name):
                continue
            try:
                await self._patch_status(each, {"nominatedNodeName": None})
            except errors.NotFound:
                pass
            except Exception as error:
                log.error("clearing the nomination of %s to %s failed: %s", each.key, node_name, error)
                done = False
        return done

    async def _preempt(self, pod: PodInfo, node_name: str, victim: PodInfo) -> None:
        message = f"Preempted by pod {pod.uid} on node {node_name}"
        waiting = self._handle.waiting_pod(victim.uid)
        if waiting is not None and waiting.preempt(self._plugin_name, "preempted"):
            message += " (in kube-scheduler memory)."
        elif not await self._delete(pod, victim):
            return
        self._handle.recorder.event(victim.pod, "Normal", "Preempted", message, action="Preempting", related=pod.pod)

    async def _delete(self, pod: PodInfo, victim: PodInfo) -> bool:
        """Tell the victim why, and delete it; False if it is gone already."""
        try:
            condition = self._condition(pod, victim.pod)
            if condition is not None:
                await self._patch_status(victim, _last(condition, victim.pod))
            await self._handle.client.delete(Pod, victim.name, victim.namespace, uid=victim.uid)
        except (errors.NotFound, errors.Conflict):  # of that name, if any, is another one
            return False
        return True

    def _condition(self, pod: PodInfo, victim: Pod) -> PodCondition | None:
        """The DisruptionTarget condition for a victim; None if it has it already."""
        name = pod.spec.scheduler_name or self._handle.profile_name
        wanted = PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="PreemptionByScheduler",
            message=f"{name}: preempting to accommodate a higher priority pod",
            observed_generation=(victim.metadata.generation if victim.metadata else None) or None,
            last_transition_time=rfc3339(self._handle.clock.now()),
        )
        present = find_pod_condition(victim.status, "DisruptionTarget")
        if present is not None:
            wanted.last_probe_time = present.last_probe_time
            if present.status == wanted.status:
                wanted.last_transition_time = present.last_transition_time
            if present == wanted:
                return None
        return wanted

    async def _patch_status(self, pod: PodInfo, status: dict[str, object]) -> None:
        patch = {"metadata": {"uid": pod.uid}, "status": status}
        delay = DELAY
        for attempt in range(TRIES):
            try:
                await self._handle.client.patch(
                    Pod, pod.name, patch, pod.namespace, type="strategic", subresource="status"
                )
                return
            except (errors.InternalError, errors.ServiceUnavailable, ConnectionError):
                if attempt == TRIES - 1:
                    raise
            await self._handle.clock.sleep(delay)
            delay *= FACTOR


def _last(condition: PodCondition, pod: Pod) -> dict[str, object]:
    """A patch that puts the condition behind those that are there; by itself it would come first."""
    there = [each.type for each in (pod.status.conditions if pod.status else None) or ()]
    order = there if condition.type in there else [*there, condition.type]
    return {"$setElementOrder/conditions": [{"type": each} for each in order], "conditions": [condition]}


def _deleting(pod: Pod) -> bool:
    return pod.metadata is not None and pod.metadata.deletion_timestamp is not None
