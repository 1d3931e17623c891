"""Pods that wait for a node, in three places, and what moves them from one to another.

- *active*: to be tried now, in the order of the profile's QueueSort plugin.
- *back-off*: tried in vain lately; ready again when their back-off (1 s, doubling up to 10 s) is over, or earlier when
  there is nothing else to do. Those that failed by an error wait theirs out.
- *unschedulable*: refused (or gated by a PreEnqueue plugin), until something happens in the cluster that a plugin which
  refused them has registered for, and whose hint does not say that it makes no difference; or five minutes pass.

A pod is in one place at most; while it is being placed it is in none, and `in_flight` remembers what happens meanwhile.
Nothing here is asynchronous but `pop`: all changes are between two steps of the event loop, so no locks. No time passes
unasked: timers run only while pods wait for them.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from pybernetes.api.core.v1 import Pod
from pybernetes.client.clock import Clock, Timer
from pybernetes.client.keys import Key, key_of

from ..framework.events import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
    EventWithHint,
    Hint,
    HintFunction,
    matches,
)
from ..framework.plugin import PreEnqueuePlugin
from ..framework.podinfo import PodInfo
from ..framework.queued import QueuedPodInfo
from ..metrics import Metrics
from .changes import pod_events
from .heap import PodHeap
from .inflight import InFlight
from .nominator import PodNominator

ORDERING_WINDOW = 1.0
"""Back-offs end at whole seconds, so that pods that are ready together are ordered by priority."""
MAX_IN_UNSCHEDULABLE = 300.0
FLUSH_INTERVAL = 30.0

SKIP, AFTER_BACKOFF, IMMEDIATELY = 0, 1, 2
POD_ADD, POD_UPDATE, ATTEMPT_FAILURE = "PodAdd", "PodUpdate", "ScheduleAttemptFailure"
BACKOFF_COMPLETE, POP_FROM_BACKOFF = "BackoffComplete", "PopFromBackoffQ"
log = logging.getLogger(__name__)


class Interest:
    """Which plugins of a profile want to hear of which events, looked up once for each kind of event."""

    def __init__(self, registered: Mapping[str, Sequence[EventWithHint]]) -> None:
        self._registered = registered
        self._known: dict[ClusterEvent, dict[str, tuple[HintFunction | None, ...]]] = {}

    def of(self, event: ClusterEvent) -> dict[str, tuple[HintFunction | None, ...]]:
        """The hints of each plugin that is interested."""
        found = self._known.get(event)
        if found is None:
            found = self._known[event] = {
                plugin: hints
                for plugin, registrations in self._registered.items()
                if (hints := tuple(each.hint for each in registrations if matches(each.event, event)))
            }
        return found


class SchedulingQueue:
    """The queue of all profiles."""

    def __init__(
        self,
        clock: Clock,
        sort_key: Callable[[QueuedPodInfo], Any],
        *,
        events: Mapping[str, Mapping[str, Sequence[EventWithHint]]],
        pre_enqueues: Mapping[str, Sequence[PreEnqueuePlugin]],
        metrics: Metrics | None = None,
        nominator: PodNominator | None = None,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        max_in_unschedulable: float = MAX_IN_UNSCHEDULABLE,
    ) -> None:
        """`events` and `pre_enqueues` are by profile, `events` then by plugin."""
        self._clock = clock
        self._began = clock.now() - clock.monotonic()
        self._interest = {profile: Interest(registered) for profile, registered in events.items()}
        self._pre_enqueues = pre_enqueues
        self._metrics = metrics or Metrics()
        self._initial_backoff = initial_backoff
        self._max_backoff = max_backoff
        self._max_in_unschedulable = max_in_unschedulable
        self.active = PodHeap(sort_key)
        self.backoff = PodHeap(lambda queued: (self._backoff_until(queued), sort_key(queued)))
        self.error_backoff = PodHeap(self._backoff_until)
        self.unschedulable: dict[Key, QueuedPodInfo] = {}
        self._by_plugin: dict[str, dict[Key, QueuedPodInfo]] = {}
        """Those in `unschedulable` by the plugin that rejected them; under "" those without one."""
        self._gated: dict[str, dict[Key, QueuedPodInfo]] = {}
        """Those in `unschedulable` that a PreEnqueue plugin keeps out, by that plugin; they are not in `_by_plugin`."""
        self.in_flight = InFlight()
        self.nominator = nominator or PodNominator()
        self._wake = asyncio.Event()
        self._backoff_timer: Timer | None = None
        self._flush_timer: Timer | None = None
        self._metrics.count_pending(self._pending)

    # -- taking pods out

    async def pop(self) -> QueuedPodInfo:
        """The next pod to place; waits for one."""
        while True:
            queued = self.pop_now()
            if queued is not None:
                return queued
            self._wake.clear()
            await self._wake.wait()

    def pop_now(self) -> QueuedPodInfo | None:
        """The next pod to place, if there is any."""
        queued = self.active.pop()
        if queued is None:
            queued = self.backoff.pop()  # better early than idle
            if queued is None:
                return None
            self._metrics.incoming("active", POP_FROM_BACKOFF)
        queued.attempts += 1
        uid = queued.info.uid
        if uid in self.in_flight:
            log.error("the same pod is tracked in multiple places in the scheduler: %s", queued.info.key)
            return self.pop_now()
        self.in_flight.take(uid)
        self._metrics.refused(queued, -1)
        return queued

    def done(self, uid: str) -> None:
        """The pod is placed, or will not be: events need not be kept for it."""
        self.in_flight.done(uid)

    # -- pods come, change and go

    def add(self, info: PodInfo) -> None:
        """A pod without a node appeared."""
        if self.get(info.key) is not None:
            return
        queued = QueuedPodInfo(info, self.now())
        queued.because()
        self._to_active(queued, POD_ADD)

    def update(self, old: Pod, info: PodInfo) -> None:
        """A pod without a node changed."""
        new = info.pod
        events = pod_events(old, new)
        if info.uid in self.in_flight:
            for event in events:
                self.in_flight.note(event, old, new)
            return
        for heap in (self.active, self.backoff, self.error_backoff):
            queued = heap.get(info.key)
            if queued is not None:
                self._renew(queued, info)
                heap.add(queued)
                return
        queued = self.unschedulable.get(info.key)
        if queued is None:
            self._to_active(QueuedPodInfo(info, self.now()), POD_UPDATE)
            return
        self._renew(queued, info)
        for event in events:
            strategy = self._worth(queued, event, old, new)
            if strategy != SKIP:
                queued.because()
            if strategy != SKIP and self._requeue(queued, strategy, event.label):
                return

    def delete(self, pod: Pod) -> None:
        """A pod is gone, or has got a node."""
        assert pod.metadata is not None
        self.nominator.remove(pod.metadata.uid or "")
        key = key_of(pod)
        for heap in (self.active, self.backoff, self.error_backoff):
            queued = heap.remove(key)
            if queued is not None:
                self._metrics.refused(queued, -1)
                return
        queued = self._leave_unschedulable(key)
        if queued is not None:
            self._metrics.refused(queued, -1)

    def get(self, key: Key) -> QueuedPodInfo | None:
        """A pod, wherever it is; None if nowhere, or being placed."""
        return (
            self.active.get(key) or self.backoff.get(key) or self.error_backoff.get(key) or self.unschedulable.get(key)
        )

    def whereabouts(self, key: Key) -> tuple[str, float | None]:
        """Which queue a pod is in ("" = none), and when it is tried again at the latest (None = not known)."""
        if key in self.active:
            return "active", self.now()
        for heap in (self.backoff, self.error_backoff):
            queued = heap.get(key)
            if queued is not None:
                return "backoff", self._backoff_until(queued)
        queued = self.unschedulable.get(key)
        if queued is None:
            return "", None
        if queued.gated:
            return "gated", None
        return "unschedulable", queued.timestamp + self._max_in_unschedulable

    def pending(self) -> Iterable[QueuedPodInfo]:
        """All pods that wait."""
        yield from self.active
        yield from self.backoff
        yield from self.error_backoff
        yield from self.unschedulable.values()

    # -- moving

    def add_unschedulable(self, queued: QueuedPodInfo) -> None:
        """An attempt has failed: wait for an event that helps; back off if one came meanwhile or it was an error."""
        key = queued.info.key
        try:
            if self.get(key) is not None:
                log.error("pod %s is already in the queue", key)
                return
            if queued.unschedulable_plugins or queued.pending_plugins:
                queued.unschedulable_count += 1
                queued.consecutive_errors = 0
            else:
                queued.consecutive_errors += 1
            queued.timestamp = self.now()
            queued.backoff_expiration = 0.0
            queued.was_flushed_from_unschedulable = False
            self._metrics.refused(queued, 1)
            self._requeue(queued, self._after_flight(queued), ATTEMPT_FAILURE)
        finally:
            self.in_flight.done(queued.info.uid)

    def move_all(self, event: ClusterEvent, old: Any, new: Any, only: Callable[[PodInfo], bool] | None = None) -> None:
        """Try again the pods that the event may help (upstream's MoveAllToActiveOrBackoffQueue)."""
        if event.is_wildcard:
            candidates = list(self.unschedulable.values())
        else:
            interested: dict[str, None] = {}
            for interest in self._interest.values():
                interested.update(dict.fromkeys(interest.of(event)))
            if not interested:
                return
            found: dict[Key, QueuedPodInfo] = {}
            if self.unschedulable:
                for plugin in ("", *interested):
                    found.update(self._by_plugin.get(plugin, ()))
            candidates = [*found.values(), *self._released(interested, event, old, new)]
        self._move([each for each in candidates if only is None or only(each.info)], event, old, new)
        self.in_flight.note(event, old, new)

    def _released(self, interested: Container[str], event: ClusterEvent, old: Any, new: Any) -> list[QueuedPodInfo]:
        """The gated pods that their plugin may let in after the event."""
        found: dict[Key, QueuedPodInfo] = {}
        for plugins in self._pre_enqueues.values() if self._gated else ():
            for plugin in plugins:
                gated = self._gated.get(plugin.name)
                if gated is None or plugin.name not in interested:
                    continue
                keys = plugin.released(event, old, new)
                found.update(gated if keys is None else {key: gated[key] for key in keys if key in gated})
        return list(found.values())

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these now, wherever they wait."""
        for pod in pods:
            key = key_of(pod)
            queued = self.unschedulable.get(key)
            checked = False
            if queued is None:
                queued = self.backoff.remove(key) or self.error_backoff.remove(key)
                checked = True
            if queued is not None:
                self._to_active(queued, FORCE_ACTIVATE.label, checked=checked)
            elif pod.metadata and (pod.metadata.uid or "") in self.in_flight:
                self.in_flight.note(FORCE_ACTIVATE, None, pod)

    def _move(self, candidates: Sequence[QueuedPodInfo], event: ClusterEvent, old: Any, new: Any) -> None:
        for queued in candidates:
            if queued.gated and not event.is_wildcard and queued.gating_plugin not in self._interested(queued, event):
                continue
            strategy = self._worth(queued, event, old, new)
            if strategy != SKIP:
                queued.because()
                self._requeue(queued, strategy, event.label)

    def _interested(self, queued: QueuedPodInfo, event: ClusterEvent) -> dict[str, tuple[HintFunction | None, ...]]:
        interest = self._interest.get(queued.info.spec.scheduler_name or "")
        return {} if interest is None else interest.of(event)

    def _worth(self, queued: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> int:
        """Whether the event is a reason to try the pod again, and how soon."""
        if not queued.unschedulable_plugins and not queued.pending_plugins:
            return AFTER_BACKOFF
        pod = queued.info.pod
        if event.is_wildcard:
            if new is not None and not (isinstance(new, Pod) and new.metadata and new.metadata.uid == queued.info.uid):
                return SKIP
            return AFTER_BACKOFF
        strategy = SKIP
        for plugin, hints in self._interested(queued, event).items():
            pending = plugin in queued.pending_plugins
            if not pending and plugin not in queued.unschedulable_plugins:
                continue
            for hint in hints:
                if hint is not None and self._hint(hint, plugin, pod, old, new) == Hint.SKIP:
                    continue
                if pending:
                    return IMMEDIATELY
                if not queued.pending_plugins:
                    return AFTER_BACKOFF
                strategy = AFTER_BACKOFF
        return strategy

    def _hint(self, hint: HintFunction, plugin: str, pod: Pod, old: Any, new: Any) -> Hint:
        try:
            return hint(pod, old, new)
        except Exception:
            log.exception("the queueing hint of %s failed; the pod is tried again", plugin)
            return Hint.QUEUE

    def _after_flight(self, queued: QueuedPodInfo) -> int:
        if not queued.unschedulable_plugins and not queued.pending_plugins:
            return AFTER_BACKOFF
        events = self.in_flight.since(queued.info.uid)
        if events is None:
            log.error("pod %s is put back that was never taken", queued.info.key)
            return AFTER_BACKOFF
        strategy = SKIP
        for event, old, new in events:
            worth = self._worth(queued, event, old, new)
            if worth == IMMEDIATELY or (worth == AFTER_BACKOFF and not queued.pending_plugins):
                return worth
            strategy = max(strategy, worth)
        return strategy

    def _requeue(self, queued: QueuedPodInfo, strategy: int, event: str) -> bool:
        """Whether the pod is to be tried again, now or after its back-off."""
        if strategy == SKIP:
            self._to_unschedulable(queued, event)
            return False
        if strategy == AFTER_BACKOFF and self._backing_off(queued):
            return self._to_backoff(queued, event)
        return self._to_active(queued, event)

    def _to_active(self, queued: QueuedPodInfo, event: str, *, checked: bool = False) -> bool:
        if not checked and not self._admitted(queued):
            queued.was_flushed_from_unschedulable = False
            self._to_unschedulable(queued, event)
            return False
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self.now()
        self._leave_unschedulable(queued.info.key)
        self.active.add(queued)
        self._metrics.incoming("active", event)
        if event in (POD_ADD, POD_UPDATE):
            self.nominator.add(queued.info)
        self._wake.set()
        return True

    def _to_backoff(self, queued: QueuedPodInfo, event: str) -> bool:
        if not self._admitted(queued):
            queued.was_flushed_from_unschedulable = False
            self._to_unschedulable(queued, event)
            return False
        self._leave_unschedulable(queued.info.key)
        refused = queued.unschedulable_plugins or queued.pending_plugins
        (self.backoff if refused else self.error_backoff).add(queued)
        self._metrics.incoming("backoff", event)
        self._flush_backoff_later()
        if refused:
            self._wake.set()
        return True

    def _to_unschedulable(self, queued: QueuedPodInfo, event: str) -> None:
        key = queued.info.key
        if key in self.unschedulable:
            self._leave_unschedulable(key)
        else:
            self._metrics.incoming("gated" if queued.gated else "unschedulable", event)
        self.unschedulable[key] = queued
        if queued.gated:
            self._gated.setdefault(queued.gating_plugin, {})[key] = queued
        else:
            for plugin in _refused_by(queued):
                self._by_plugin.setdefault(plugin, {})[key] = queued
        if self._flush_timer is None:
            self._flush_timer = self._clock.call_later(FLUSH_INTERVAL, self._flush_unschedulable)

    def _leave_unschedulable(self, key: Key) -> QueuedPodInfo | None:
        queued = self.unschedulable.pop(key, None)
        if queued is not None:
            for places in (self._by_plugin, self._gated):
                for plugin in list(places):
                    pods = places[plugin]
                    if pods.pop(key, None) is not None and not pods:
                        del places[plugin]
        return queued

    def _admitted(self, queued: QueuedPodInfo) -> bool:
        """Ask the PreEnqueue plugins, the one that refused last time first."""
        plugins = self._pre_enqueues.get(queued.info.spec.scheduler_name or "", ())
        for plugin in sorted(plugins, key=lambda each: each.name != queued.gating_plugin):
            try:
                status = plugin.pre_enqueue(queued.info)
            except Exception:
                log.exception("%s: pre_enqueue of %s failed", plugin.name, queued.info.key)
            else:
                if status is None:
                    continue
            if plugin.name not in queued.unschedulable_plugins and plugin.name not in queued.pending_plugins:
                self._metrics.refused_by(plugin.name, queued.info.spec.scheduler_name or "", 1)
            queued.unschedulable_plugins.add(plugin.name)
            queued.gating_plugin = plugin.name
            return False
        queued.gating_plugin = ""
        return True

    def _renew(self, queued: QueuedPodInfo, info: PodInfo) -> None:
        self.nominator.update(queued.info, info)
        queued.info = info

    # -- time

    def now(self) -> float:
        """Seconds since 1970, unaffected by later changes of the machine's clock.

        A clock that is set back by an hour must not keep pods in their back-off for an hour.
        """
        return self._began + self._clock.monotonic()

    def _backing_off(self, queued: QueuedPodInfo) -> bool:
        return self._backoff_until(queued) >= _window(self.now())

    def _backoff_until(self, queued: QueuedPodInfo) -> float:
        number = queued.consecutive_errors or queued.unschedulable_count
        if not number or not self._max_backoff:
            return 0.0
        if not queued.backoff_expiration:
            seconds = min(self._initial_backoff * 2.0 ** min(number - 1, 64), self._max_backoff)
            queued.backoff_expiration = _window(queued.timestamp + seconds)
        return queued.backoff_expiration

    def _flush_backoff_later(self) -> None:
        if self._backoff_timer is None and (self.backoff or self.error_backoff):
            now = self.now()
            ends = [self._backoff_until(first) for heap in (self.backoff, self.error_backoff) if (first := heap.peek())]
            # A back-off is over in the window after the one in which it ends.
            due = max(_window(now), min(ends)) + ORDERING_WINDOW
            self._backoff_timer = self._clock.call_later(due - now, self._flush_backoff)

    def _flush_backoff(self) -> None:
        self._backoff_timer = None
        for heap in (self.backoff, self.error_backoff):
            while (first := heap.peek()) is not None and not self._backing_off(first):
                heap.pop()
                self._to_active(first, BACKOFF_COMPLETE, checked=True)
        self._flush_backoff_later()

    def _flush_unschedulable(self) -> None:
        self._flush_timer = None
        now = self.now()
        late = [each for each in self.unschedulable.values() if now - each.timestamp > self._max_in_unschedulable]
        for queued in late:
            queued.was_flushed_from_unschedulable = True
        self._move(late, UNSCHEDULABLE_TIMEOUT, None, None)
        for queued in late:
            if queued.info.key in self.unschedulable:  # still gated: ask again in another five minutes
                queued.timestamp = now
        if self.unschedulable:
            self._flush_timer = self._clock.call_later(FLUSH_INTERVAL, self._flush_unschedulable)

    def close(self) -> None:
        """No timers any more."""
        for timer in (self._backoff_timer, self._flush_timer):
            if timer is not None:
                timer.cancel()

    def _pending(self) -> dict[str, int]:
        gated = sum(each.gated for each in self.unschedulable.values())
        return {
            "active": len(self.active),
            "backoff": len(self.backoff) + len(self.error_backoff),
            "unschedulable": len(self.unschedulable) - gated,
            "gated": gated,
        }


def _refused_by(queued: QueuedPodInfo) -> Iterable[str]:
    return (queued.unschedulable_plugins | queued.pending_plugins) or ("",)


def _window(seconds: float) -> float:
    return math.floor(seconds / ORDERING_WINDOW) * ORDERING_WINDOW
