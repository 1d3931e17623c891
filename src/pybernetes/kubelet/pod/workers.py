"""One worker for each pod: it lives, it is being ended, it has ended, in this order and never back.

A worker sleeps until there is news about its pod, then brings the pod to where it should be, and tries again after a
failure, later each time. What arrives meanwhile is not queued: only the newest matters. An order to end takes effect at
once: it cancels a sync that is under way (a pull, a hook, a mount), and a shorter grace period breaks off waiting for a
longer one.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from pybernetes.api.core.v1 import Pod, PodStatus
from pybernetes.client.clock import Clock, Timer
from pybernetes.component import klog
from pybernetes.trace import recorder
from pybernetes.trace.recorder import CURRENT, Cause
from pybernetes.trace.span import CAUSES, Span

from ..runtime.types import PodRef
from ..status.phase import is_terminal

RESYNC: Final = 60.0
"""Seconds after which a pod is looked at although nothing was heard; upstream's `--sync-frequency`."""
JITTER: Final = 0.5
RETRY_BASE, RETRY_LONGEST = 0.5, 10.0
SKIPPING: Final = "Error syncing pod, skipping"
"""Upstream's words for a pod that is tried again later."""
log = logging.getLogger(__name__)

StatusChange = Callable[[PodStatus], None]


class PodState(enum.StrEnum):
    """Where a worker is."""

    SYNCING = "SyncPod"
    TERMINATING = "TerminatingPod"
    TERMINATED = "TerminatedPod"
    FINISHED = "Finished"


@dataclass(slots=True)
class PodWork:
    """The state of a pod's worker. States only go forward; `grace` only becomes less."""

    ref: PodRef
    pod: Pod | None
    """The pod as its source has it now; None: only the runtime has it."""
    state: PodState = PodState.SYNCING
    stopping: bool = False
    """It shall end."""
    grace: int | None = None
    status_change: StatusChange | None = None
    """The node's change of the final status."""
    deleted: bool = False
    """Its source does not have it any more."""
    rejected: bool = False
    """The node has not taken it: there is nothing to say about its containers."""
    next: Pod | None = None
    """The pod has come back while it was being ended (a static pod's file was put back): it begins anew after that."""
    touched: bool = False
    """Something of it may have been made in the runtime by this worker."""
    failures: int = 0
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    syncing: asyncio.Task[tuple[bool, float | None]] | None = None
    """The sync under way, which an order to end cancels."""
    ending: asyncio.Task[None] | None = None
    """The end under way, which a shorter grace period breaks off."""
    waiters: list[asyncio.Future[None]] = field(default_factory=list)
    """Futures to complete when the containers have ended."""
    timer: Timer | None = None
    synced_at: float = 0.0
    causes: list[Cause] = field(default_factory=list)
    """The causes that have woken the worker since its last step, where that is recorded; CAUSES at most."""
    last: Span | None = None
    """The last step of which something came: what the runtime reports later came of it."""


class PodSyncer(Protocol):
    """The steps of pod workers. Any exception means: again, later."""

    async def sync(self, work: PodWork) -> tuple[bool, float | None]:
        """Bring a pod to where it should be; whether it has ended by itself, and when to look again (None: no need)."""
        ...

    async def terminating(self, work: PodWork) -> None:
        """End all that runs of a pod."""
        ...

    async def terminated(self, work: PodWork) -> None:
        """Give back all that a pod without processes has on the node, and report its end."""
        ...

    async def cleanup(self, ref: PodRef) -> None:
        """Remove the last traces of a pod that its source does not have any more."""
        ...


class RetryLater(Exception):
    """Not an error worth a word: try again in so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class PodWorkers:
    """All workers."""

    def __init__(
        self,
        syncer: PodSyncer,
        clock: Clock,
        *,
        resync: float = RESYNC,
        took: Callable[[float, str], None] = lambda seconds, operation: None,
    ) -> None:
        """`took` observes how long each step has taken: of what is new, changed, or looked at again."""
        self._syncer = syncer
        self._took = took
        self._clock = clock
        self._resync = resync
        self._work: dict[str, PodWork] = {}

    # -- asking

    def failed(self, pod: Pod, error: Exception) -> None:
        """A step of a pod's work has failed and is tried again. The kubelet replaces this to report an event."""

    def again(self, pod: Pod) -> None:
        """A pod was put back with the same UID while it ended: begin anew. The kubelet replaces this to admit it
        first."""
        self.update(pod)

    def get(self, uid: str) -> PodWork | None:
        """The state of a pod's worker; None if there is none."""
        return self._work.get(uid)

    def all(self) -> list[PodWork]:
        """All workers."""
        return list(self._work.values())

    def is_stopping(self, uid: str) -> bool:
        """Whether a pod shall end, or has ended, or is not known: nothing of it should be started."""
        work = self._work.get(uid)
        return work is None or work.stopping

    def may_be_running(self, uid: str) -> bool:
        """Whether processes of a pod may be there."""
        work = self._work.get(uid)
        return work is not None and work.state in (PodState.SYNCING, PodState.TERMINATING)

    def predecessor(self, work: PodWork) -> PodWork | None:
        """Another pod of the same name that has not ended yet."""
        name = (work.ref.namespace, work.ref.name)
        for each in self._work.values():
            if each is not work and (each.ref.namespace, each.ref.name) == name and each.state is not PodState.FINISHED:
                return each
        return None

    # -- telling

    def update(self, pod: Pod, *, rejected: bool = False) -> None:
        """A pod is new, or its source has changed it."""
        assert pod.metadata is not None
        ref = PodRef(pod.metadata.uid or "", pod.metadata.namespace or "", pod.metadata.name or "")
        work = self._work.get(ref.uid)
        if work is None:
            work = self._work[ref.uid] = PodWork(ref, pod, rejected=rejected)
            if is_terminal(pod.status.phase if pod.status else None):
                # It ended before this kubelet came: make sure that nothing of it runs.
                work.stopping, work.state = True, PodState.TERMINATING
                work.rejected = rejected or not (pod.status and pod.status.container_statuses)
        if work.deleted:
            work.next = pod
            return
        work.pod = pod
        if pod.metadata.deletion_timestamp is not None:
            self._stop(work)
        self._wake(work)

    def removed(self, uid: str) -> None:
        """A pod's source does not have it any more."""
        work = self._work.get(uid)
        if work is not None:
            work.deleted, work.next = True, None
            self._stop(work)
            self._wake(work)

    def orphan(self, ref: PodRef) -> None:
        """The runtime has a pod that no source knows: end it."""
        if ref.uid not in self._work:
            work = self._work[ref.uid] = PodWork(ref, None, stopping=True, deleted=True, grace=1)
            work.state = PodState.TERMINATING
            self._wake(work)

    def kill(
        self, uid: str, *, grace: int | None = None, status_change: StatusChange | None = None
    ) -> asyncio.Future[None]:
        """End a pod on the node's behalf; the future is done when its containers have ended."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        work = self._work.get(uid)
        if work is None or work.state in (PodState.TERMINATED, PodState.FINISHED):
            done.set_result(None)
            return done
        work.waiters.append(done)
        if not work.stopping:
            work.status_change = status_change
        self._stop(work, grace)
        self._wake(work)
        return done

    def wake(self, uid: str) -> None:
        """Something about the pod may have changed."""
        work = self._work.get(uid)
        if work is not None:
            self._wake(work)

    async def close(self) -> None:
        """End all workers; pods stay as they are."""
        tasks = [each.task for each in self._work.values() if each.task]
        for work in self._work.values():
            if work.timer:
                work.timer.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- working

    def _stop(self, work: PodWork, grace: int | None = None) -> None:
        before = work.grace
        if not work.stopping and work.syncing is not None:
            work.syncing.cancel()
        work.stopping = True
        work.grace = effective_grace(work, grace)
        shorter = before is not None and work.grace < before
        if shorter and work.ending is not None:
            work.ending.cancel()

    def _wake(self, work: PodWork) -> None:
        cause = CURRENT.get()
        if cause is not None and len(work.causes) < CAUSES and cause not in work.causes:
            work.causes.append(cause)
            if isinstance(cause, Span):
                cause.effects += 1
        work.wake.set()
        if work.task is None or (work.task.done() and (work.state is not PodState.FINISHED or work.deleted)):
            work.task = asyncio.create_task(self._run(work), name=f"pod {work.ref}")

    async def _run(self, work: PodWork) -> None:
        CURRENT.set(None)  # of this task: what has woken it first is in `causes`
        while work.state is not PodState.FINISHED:
            await work.wake.wait()
            work.wake.clear()
            if work.timer:
                work.timer.cancel()
            delay: float | None
            begun, operation = self._clock.monotonic(), "sync" if work.synced_at else "create"
            try:
                delay = await self._recorded(work)
                work.failures = 0
                self._took(self._clock.monotonic() - begun, operation)
            except RetryLater as error:
                delay = error.seconds
                if error.__cause__ is not None:
                    klog.error(log, error.__cause__, SKIPPING, pod=work.ref, podUID=work.ref.uid)
            except Exception as error:
                delay = min(RETRY_BASE * 2**work.failures, RETRY_LONGEST) * (1 + random.random() * JITTER)
                work.failures = min(work.failures + 1, 16)
                if work.pod is not None:
                    self.failed(work.pod, error)
                klog.error(log, error, SKIPPING, pod=work.ref, podUID=work.ref.uid, retryAfter=f"{delay:.1f}s")
                log.debug("the failure in full", exc_info=True)
            if delay is not None:
                work.timer = self._clock.call_later(delay, work.wake.set)
        if work.deleted:
            await self._forget(work)

    async def _recorded(self, work: PodWork) -> float | None:
        """A step, as a span."""
        causes, work.causes = work.causes, []
        if not causes and work.last is not None:
            causes = [work.last]
        with recorder.span(work.state.value, causes) as span:
            try:
                delay = await self._step(work)
            except RetryLater:
                span.done(f"{work.ref.namespace}/{work.ref.name}")
                raise
            span.done(f"{work.ref.namespace}/{work.ref.name}")
            if span.span is not None and span.span.effective:
                work.last = span.span
            return delay

    async def _step(self, work: PodWork) -> float | None:
        """Do what the state asks for; when to look again by itself."""
        if work.stopping and work.state is PodState.SYNCING:
            work.state = PodState.TERMINATING
        if work.state is PodState.SYNCING:
            work.syncing = asyncio.create_task(self._syncer.sync(work), name=f"sync of pod {work.ref}")
            try:
                ended, delay = await work.syncing
            except asyncio.CancelledError:
                if _cancelled():
                    raise
                return 0.0  # the pod shall end
            finally:
                work.syncing = None
            work.synced_at = self._clock.monotonic()
            if ended:
                self._stop(work)
                return 0.0
            if work.stopping:
                return 0.0
            return self._resync * (1 + random.random() * JITTER) if delay is None else delay
        if work.state is PodState.TERMINATING:
            work.ending = asyncio.create_task(self._syncer.terminating(work))
            try:
                await work.ending
            except asyncio.CancelledError:
                if _cancelled():
                    raise
                return 0.0  # broken off for a shorter grace period
            finally:
                work.ending = None
            work.state = PodState.TERMINATED
            for waiter in work.waiters:
                if not waiter.done():
                    waiter.set_result(None)
            work.waiters.clear()
        if work.state is PodState.TERMINATED:
            await self._syncer.terminated(work)
            work.state = PodState.FINISHED
        return None

    async def _forget(self, work: PodWork) -> None:
        failures = 0
        while True:
            try:
                await self._syncer.cleanup(work.ref)
                break
            except Exception as error:
                failures += 1
                log.warning("traces of pod %s stay for now: %s", work.ref, error)
                await self._clock.sleep(min(RETRY_BASE * 2**failures, RETRY_LONGEST))
        if self._work.get(work.ref.uid) is work:
            del self._work[work.ref.uid]
        if work.next is not None:
            self.again(work.next)


def _cancelled() -> bool:
    """Whether the running task itself is to end, and not only a task that it waits for."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


def effective_grace(work: PodWork, override: int | None) -> int:
    """The seconds a pod gets: the least of what was said so far, the deletion's, and the one given; else its own."""
    grace, said = work.grace or 0, work.grace is not None
    metadata = work.pod.metadata if work.pod else None
    spec = work.pod.spec if work.pod else None
    for each in (metadata.deletion_grace_period_seconds if metadata else None, override):
        if each is not None and (grace == 0 or each < grace):
            grace, said = each, True
    if not said and spec is not None and spec.termination_grace_period_seconds is not None:
        grace = spec.termination_grace_period_seconds
    return max(1, grace)
