"""Keeps the status of each pod that was made last, and sees to it that the API server has it too.

One request at a time for a pod, several pods side by side; what becomes outdated while a request is under way is not
sent. What says only that a pod is being made waits for a moment, because most often there is more to say by then. A
pod whose end has been reported in full is deleted here, which is the kubelet's last act for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import ContainerState, ContainerStateTerminated, Pod, PodStatus
from pybernetes.api.times import rfc3339
from pybernetes.client.backoff import ItemBackoff
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock, Timer
from pybernetes.client.keys import copy, key_of, uid_of
from pybernetes.trace import recorder
from pybernetes.trace.recorder import CURRENT, Cause

from ..pod.critical import is_mirror, is_static
from .container_status import CONTAINER_CREATING, KILLED, POD_INITIALIZING, STATUS_UNKNOWN
from .merge import has_initialized, illegal_transition, merge, patch, shorten, stamp
from .phase import FAILED, PENDING, is_terminal

RETRY_BASE, RETRY_LONGEST = 0.2, 10.0
MAKING: Final = 1.0
"""Seconds that a pod may take to start before the status `ContainerCreating` is sent."""
UNLOCATED: Final = "The container could not be located when the pod was terminated"
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry:
    """The status of a pod. Sent when `sent` has reached `version`."""

    status: PodStatus
    version: int = 0
    sent: int = -1
    finished: bool = False
    reported: Pod | None = None
    """The server's last answer about the pod; the pod that `api_pod` has, once that is the same."""
    deleted: bool = False
    """The DELETE request was sent."""
    cause: Cause | None = None
    """The cause of the change, where that is recorded."""
    changed: float = 0.0
    """When the status changed that has not been sent."""


class StatusManager:
    """`api_pod(uid)` is the pod as the API server showed it last (for a static pod its mirror), if it is there."""

    def __init__(
        self,
        client: Client | None,
        clock: Clock,
        api_pod: Callable[[str], Pod | None],
        may_be_running: Callable[[str], bool],
    ) -> None:
        self._client = client
        self._clock = clock
        self._api_pod = api_pod
        self._may_be_running = may_be_running
        self._entries: dict[str, _Entry] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._timers: dict[str, Timer] = {}
        """Of pods that are being made, until that is sent."""
        self._backoff: ItemBackoff[str] = ItemBackoff(RETRY_BASE, RETRY_LONGEST)
        self.took: Callable[[float], None] = lambda seconds: None
        """Called with the delay of each status until the server had it."""

    def get(self, uid: str) -> PodStatus | None:
        """The status made last. Shared: copy before changing."""
        entry = self._entries.get(uid)
        return entry.status if entry else None

    def is_finished(self, uid: str) -> bool:
        """Whether the pod's end was noted in full."""
        entry = self._entries.get(uid)
        return entry is not None and entry.finished

    def set(self, pod: Pod, status: PodStatus) -> None:
        """There is a new status."""
        self._update(pod, status, finished=False)

    def terminate(self, pod: Pod) -> None:
        """Nothing of the pod is left on the node: whatever has no known end has ended, and the pod may be deleted."""
        uid = uid_of(pod)
        cached = self.get(uid)
        status = copy(cached or pod.status or PodStatus())
        end = ContainerState(
            terminated=ContainerStateTerminated(exit_code=KILLED, reason=STATUS_UNKNOWN, message=UNLOCATED)
        )
        if has_initialized(pod, pod.status or PodStatus()):
            for each in status.container_statuses or ():
                if not (each.state and each.state.terminated):
                    each.state = end
        inits = status.init_container_statuses or []
        begun = [index for index, each in enumerate(inits) if not (each.state and each.state.waiting)]
        for each in inits[: max(begun, default=0) + 1]:
            if not (each.state and each.state.terminated):
                each.state = end
        if not is_static(pod) and not is_terminal(status.phase):
            status.phase = FAILED
        self._update(pod, status, finished=True)

    def finish(self, pod: Pod) -> None:
        """The pod was never here: its status says all, and it may be deleted."""
        uid = uid_of(pod)
        entry = self._entries.setdefault(uid, _Entry(copy(pod.status or PodStatus())))
        if not entry.finished:
            entry.finished = True
            entry.version += 1
            self._wake(uid)

    def remove(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._entries.pop(uid, None)
        self._backoff.forget(uid)
        task, timer = self._tasks.pop(uid, None), self._timers.pop(uid, None)
        if task is not None:
            task.cancel()
        if timer is not None:
            timer.cancel()

    def pod_changed(self, uid: str) -> None:
        """The API server shows the pod anew: if its status is not what was sent, send it again."""
        entry = self._entries.get(uid)
        pod = self._api_pod(uid)
        if entry is None or pod is None or entry.deleted or uid in self._tasks:
            return
        if entry.reported is not None and _version(pod) <= _version(entry.reported):
            if _version(pod) == _version(entry.reported):
                entry.reported = pod
            return
        entry.reported = None
        entry.sent = -1
        self._wake(uid)

    async def stop(self) -> None:
        """Send no more."""
        for timer in self._timers.values():
            timer.cancel()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _update(self, pod: Pod, status: PodStatus, *, finished: bool) -> None:
        uid = uid_of(pod)
        assert pod.spec is not None
        entry = self._entries.get(uid)
        shown = self._api_pod(uid) or pod
        old = entry.status if entry else shown.status or PodStatus()
        problem = illegal_transition(old, status, pod.spec)
        if problem:
            log.error("status of pod %s: %s", uid, problem)
            return
        stamp(status, old, rfc3339(self._clock.now()))
        shorten(status, pod.spec)
        deleting = bool(pod.metadata and pod.metadata.deletion_timestamp)
        if entry is None:
            entry = self._entries[uid] = _Entry(status)
        elif entry.status == status and (entry.finished or not finished) and not deleting:
            return
        entry.status = status
        entry.changed = entry.changed or self._clock.monotonic()
        entry.cause = CURRENT.get() or entry.cause
        entry.version += 1
        entry.finished = entry.finished or finished
        self._wake(uid)

    def _wake(self, uid: str) -> None:
        if not _is_being_made(self._entries[uid].status):
            self._begin(uid)
        elif uid not in self._timers:
            self._timers[uid] = self._clock.call_later(MAKING, self._begin, uid)

    def _begin(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
        if self._client is not None and uid not in self._tasks:
            self._tasks[uid] = asyncio.create_task(self._send_all(uid), name=f"status of pod {uid}")

    async def _send_all(self, uid: str) -> None:
        try:
            while (entry := self._entries.get(uid)) is not None and entry.sent < entry.version:
                version = entry.version
                try:
                    with recorder.span("report status", () if entry.cause is None else (entry.cause,)) as span:
                        await self._send(uid, entry)
                        span.done(self._name(uid))
                except errors.APIError as error:
                    log.warning("the server refused the status of pod %s: %s", uid, error)
                    if not isinstance(error, errors.Conflict):
                        await self._clock.sleep(self._backoff.when(uid))
                        continue
                except (OSError, TimeoutError) as error:
                    log.info("the status of pod %s cannot be sent now: %s", uid, error)
                    await self._clock.sleep(self._backoff.when(uid))
                    continue
                except Exception:
                    log.exception("the status of pod %s cannot be sent", uid)
                    await self._clock.sleep(self._backoff.when(uid))
                    continue
                self._backoff.forget(uid)
                entry.sent = version
                if entry.changed:
                    self.took(self._clock.monotonic() - entry.changed)
                    entry.changed = 0.0
        finally:
            if self._tasks.get(uid) is asyncio.current_task():
                del self._tasks[uid]
        if entry is not None and entry.reported is not None:
            self.pod_changed(uid)  # what was shown while the last request was under way (a deletion) is acted on now

    def _name(self, uid: str) -> str:
        pod = self._api_pod(uid)
        return uid if pod is None else str(key_of(pod))

    async def _send(self, uid: str, entry: _Entry) -> None:
        assert self._client is not None
        pod = self._api_pod(uid)
        if pod is None or entry.deleted:
            return  # a static pod without a mirror: sent when it has one; a pod that is gone: never
        if (
            entry.reported is not None
            and _version(entry.reported) >= _version(pod)
            and uid_of(entry.reported) == uid_of(pod)
        ):
            pod = entry.reported
        try:
            pod = await self._say(pod, uid, entry.status)
            shown = self._api_pod(uid)
            entry.reported = shown if shown is not None and _version(shown) == _version(pod) else pod
            if entry.finished and self._may_be_deleted(pod):
                assert pod.metadata is not None
                namespace, name = pod.metadata.namespace or "", pod.metadata.name or ""
                await self._client.delete(Pod, name, namespace, grace_period_seconds=0, uid=uid_of(pod))
                entry.deleted = True
        except errors.NotFound:
            return

    async def _say(self, pod: Pod, uid: str, status: PodStatus) -> Pod:
        """Let the server have a status; the pod with it. `pod` is as it was shown last.

        The answer shows what others have changed meanwhile (a condition, of a node that seemed to be away): if that is
        something else than what was said, it is said once more.
        """
        assert self._client is not None
        for _ in range(2):
            assert pod.metadata is not None
            reported = pod.status or PodStatus()
            now = rfc3339(self._clock.now())
            merged = merge(pod, reported, status, now, may_be_running=self._may_be_running(uid))
            change = patch(reported, merged)
            if not change:
                break
            body = {"metadata": {"uid": pod.metadata.uid}, "status": change}
            namespace, name = pod.metadata.namespace or "", pod.metadata.name or ""
            pod = await self._client.patch(Pod, name, body, namespace, type="strategic", subresource="status")
            if pod.status == merged:
                break
        return pod

    def _may_be_deleted(self, pod: Pod) -> bool:
        assert pod.metadata is not None
        return (
            pod.metadata.deletion_timestamp is not None
            and not is_mirror(pod)
            and is_terminal(pod.status.phase if pod.status else None)
        )


def _is_being_made(status: PodStatus) -> bool:
    """Whether nothing has run yet, and nothing has failed."""
    states = [each.state for each in (*(status.init_container_statuses or ()), *(status.container_statuses or ()))]
    reasons = {each.waiting.reason if each and each.waiting else None for each in states}
    return status.phase == PENDING and bool(reasons) and reasons <= {CONTAINER_CREATING, POD_INITIALIZING}


def _version(pod: Pod) -> int:
    text = (pod.metadata.resource_version if pod.metadata else None) or "0"
    return int(text) if text.isdecimal() else 0
