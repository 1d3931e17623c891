"""Takes what the sources say: new pods are admitted one after another, changes and deletions go to their workers.

Only device plugins are not waited for: what else a pod gets of the node is reserved by then, so the next pod may be
admitted while a plugin takes its time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from pybernetes.api.core.v1 import Pod
from pybernetes.client.events import WARNING, EventRecorder
from pybernetes.client.keys import copy, key_of, uid_of
from pybernetes.component import klog
from pybernetes.trace import recorder
from pybernetes.trace.recorder import CURRENT, Cause

from ..metrics.pods import PodMetrics
from ..resources.allocation import AllocationManager
from ..runtime import labels
from ..status.conditions import BY_KUBELET
from ..status.manager import StatusManager
from ..status.phase import is_terminal
from .critical import is_mirror, is_static
from .manager import PodManager
from .refusal import PodRefused, refused_status
from .workers import PodState, PodWorkers

PATIENCE: Final = 1.0
"""Seconds that the next pod waits for the device plugins of the one before."""
log = logging.getLogger(__name__)

Admit = Callable[[Pod], Awaitable[None]]
"""Awaited before a pod is admitted (devices); raises `PodRefused`."""


class PodIntake:
    """The way of a pod from its source to its worker."""

    def __init__(
        self,
        pods: PodManager,
        workers: PodWorkers,
        statuses: StatusManager,
        allocation: AllocationManager,
        recorder: EventRecorder,
        devices: Admit,
        make_room: Callable[[Pod, PodRefused], Awaitable[bool]],
    ) -> None:
        """`make_room` may end other pods for one that was refused; whether it is worth another try."""
        self._pods = pods
        self._workers = workers
        self._statuses = statuses
        self._allocation = allocation
        self._recorder = recorder
        self._devices = devices
        self._make_room = make_room
        self.metrics: PodMetrics | None = None
        self._new: asyncio.Queue[tuple[str, Cause | None]] = asyncio.Queue()
        """Uids, and what has brought each pod, where that is recorded."""
        self._waiting: set[str] = set()
        """Uids in `_new`: their turn has not come."""
        self._reserved: set[str] = set()
        """Uids of pods that have what they need of the node but devices, for which their plugins were asked."""

    def active(self) -> list[Pod]:
        """The pods that have, or will have, something of the node: admitted, and not ended."""
        active = []
        for pod in self._pods.all():
            uid = uid_of(pod)
            work = self._workers.get(uid)
            if work is None and uid not in self._reserved:
                continue
            if work is not None and (work.rejected or work.state in (PodState.TERMINATED, PodState.FINISHED)):
                continue
            if not is_terminal(pod.status.phase if pod.status else None):
                active.append(pod)
        return active

    def added(self, pod: Pod) -> None:
        """A source has a new pod."""
        self._pods.set(pod)
        klog.info(log, 4, "Receiving a new pod", pod=key_of(pod))
        klog.info(log, 2, "SyncLoop ADD", source=_source(pod), pods=[key_of(pod)])
        if is_mirror(pod):
            self._mirror_changed(pod)
        else:
            self._enqueue(pod)

    def restart(self, pod: Pod) -> None:
        """A pod (a static one) that was put back while it ended: it is admitted like any other."""
        if self.metrics is not None:
            self.metrics.restarted.inc("true" if is_static(pod) else "")
        if self._pods.get(uid_of(pod)) is not None:
            self._enqueue(pod)

    def _enqueue(self, pod: Pod) -> None:
        if uid_of(pod) not in self._waiting and uid_of(pod) not in self._reserved:
            if self.metrics is not None:
                self.metrics.seen(pod)
            self._waiting.add(uid_of(pod))
            self._new.put_nowait((uid_of(pod), CURRENT.get()))

    def updated(self, old: Pod, new: Pod) -> None:
        """A source has changed a pod."""
        if uid_of(old) != uid_of(new):
            self.removed(old)
            self.added(new)
            return
        self._pods.set(new)
        uid = uid_of(new)
        if is_mirror(new):
            self._mirror_changed(new)
            return
        if self._workers.get(uid) is None:
            return
        if old.spec != new.spec or _deletion(old) != _deletion(new) or _labels(old) != _labels(new):
            deleted = _deletion(old)[0] is None and _deletion(new)[0] is not None
            klog.info(log, 2, f"SyncLoop {'DELETE' if deleted else 'UPDATE'}", source=_source(new), pods=[key_of(new)])
            self._workers.update(new)
            self._allocation.push(uid)
            self.retry_resizes()
        else:
            klog.info(log, 4, "SyncLoop RECONCILE", source=_source(new), pods=[key_of(new)])
            # Most often our own status coming back: the worker is not woken for it, but gets the new object.
            work = self._workers.get(uid)
            assert work is not None
            work.pod = new
            if _others_conditions(old) != _others_conditions(new):
                self._workers.wake(uid)
        self._statuses.pod_changed(uid)

    def removed(self, pod: Pod) -> None:
        """A source does not have a pod any more."""
        klog.info(log, 2, "SyncLoop REMOVE", source=_source(pod), pods=[key_of(pod)])
        self._pods.remove(pod)
        if is_mirror(pod):
            self._mirror_changed(pod)
        else:
            self._workers.removed(uid_of(pod))
            self.retry_resizes()

    def retry_resizes(self) -> None:
        """There may be room now for what pods would like to have."""
        for pod in self._allocation.retry():
            self._workers.wake(uid_of(pod))

    async def run(self) -> None:
        """Admit new pods until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    uid, cause = await self._new.get()
                    try:
                        with recorder.span("admit pod", () if cause is None else (cause,)) as span:
                            await self._take(uid, group)
                            span.done(_name(self._pods.get(uid)) or uid)
                        if self._new.empty():  # for all that came together; their workers have not begun yet
                            self._allocation.save()
                    except Exception:
                        log.exception("pod %s could not be taken in", uid)
        finally:
            self._reserved.clear()

    async def _take(self, uid: str, group: asyncio.TaskGroup) -> None:
        self._waiting.discard(uid)
        pod = self._pods.get(uid)
        if pod is None:
            return
        ended = is_terminal(pod.status.phase if pod.status else None)
        known = self._workers.get(uid)
        if known is None and not ended and _deletion(pod)[0] is None:
            try:
                await self._reserve(pod)
            except PodRefused as refusal:
                self._reject(pod, refusal)
                return
            patience = 0.05 if self._reserved else PATIENCE
            self._reserved.add(uid)
            devices = group.create_task(self._refused_devices(pod))
            if not (await asyncio.wait((devices,), timeout=patience))[0]:
                log.warning("pod %s waits for a device plugin", uid)
                devices.add_done_callback(lambda done: self._end_of_wait(pod, done))
                return
            self._reserved.discard(uid)
            if (refused := devices.result()) is not None:
                self._reject(pod, refused)
                return
        self._hand_over(pod, new=known is None)

    async def _reserve(self, pod: Pod) -> None:
        try:
            self._allocation.add(pod)
        except PodRefused as refusal:
            if not await self._make_room(pod, refusal):
                raise
            self._allocation.add(pod)

    async def _refused_devices(self, pod: Pod) -> PodRefused | None:
        """Have a pod's devices allocated; why not, if they are not."""
        try:
            await self._devices(pod)
        except PodRefused as refusal:
            return refusal
        except Exception as error:
            log.exception("the devices of pod %s", uid_of(pod))
            return PodRefused("UnexpectedAdmissionError", f"Allocate failed due to {error!r}, which is unexpected")
        return None

    def _end_of_wait(self, pod: Pod, devices: asyncio.Task[PodRefused | None]) -> None:
        self._reserved.discard(uid_of(pod))
        if devices.cancelled():
            return
        if (refused := devices.result()) is not None:
            self._reject(pod, refused)
        else:
            self._hand_over(pod, new=True)

    def _hand_over(self, pod: Pod, *, new: bool) -> None:
        """Let a pod's worker begin, or know of a change."""
        uid = uid_of(pod)
        if new and self.metrics is not None:
            self.metrics.working(pod)
        self._workers.update(self._pods.get(uid) or pod)
        if self._pods.get(uid) is None:
            self._workers.removed(uid)  # it went while it was being admitted

    def _reject(self, pod: Pod, refusal: PodRefused) -> None:
        log.info("pod %s is refused: %s", uid_of(pod), refusal.message)
        if self.metrics is not None:
            self.metrics.rejections.inc(refusal.reason)
            self.metrics.gone(uid_of(pod))
        self._recorder.event(pod, WARNING, refusal.reason, refusal.message)
        status = refused_status(pod, refusal)
        self._statuses.set(pod, status)
        rejected = copy(pod)
        rejected.status = copy(status)
        self._workers.update(rejected, rejected=True)

    def _mirror_changed(self, mirror: Pod) -> None:
        static = self._pods.static_of(mirror)
        if static is not None:
            self._workers.wake(uid_of(static))
            self._statuses.pod_changed(uid_of(static))


def _source(pod: Pod) -> str:
    annotations = (pod.metadata.annotations if pod.metadata else None) or {}
    return annotations.get(labels.CONFIG_SOURCE, "api")


def _deletion(pod: Pod) -> tuple[str | None, int | None]:
    metadata = pod.metadata
    return (metadata.deletion_timestamp, metadata.deletion_grace_period_seconds) if metadata else (None, None)


def _labels(pod: Pod) -> tuple[object, object]:
    metadata = pod.metadata
    return (metadata.labels, metadata.annotations) if metadata else (None, None)


def _others_conditions(pod: Pod) -> Iterable[object]:
    conditions = (pod.status.conditions if pod.status else None) or ()
    return [(each.type, each.status) for each in conditions if each.type not in BY_KUBELET]


def _name(pod: Pod | None) -> str:
    return "" if pod is None else str(key_of(pod))
