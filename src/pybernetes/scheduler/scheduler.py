"""The scheduler: takes pods from the queue, one at a time, and binds them, many at a time.

A scheduling cycle (choice of a node, Reserve, Permit) is one after the other and sees a snapshot that does not change;
a binding cycle (waiting for permits, PreBind, Bind, PostBind) runs beside it. In between the pod is assumed to be on
its node, so the next cycle counts it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from functools import partial

import numpy as np

from pybernetes.api.core.v1 import Pod
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import key_of
from pybernetes.component import klog, tasks
from pybernetes.trace import recorder

from . import binding
from .algorithm import Algorithm, Result
from .cache import Cache
from .events import NORMAL, WARNING, EventSink
from .failures import BURST, QPS, Failures
from .framework.diagnosis import Diagnosis
from .framework.events import ASSIGNED_POD_DELETE
from .framework.plugin import RowArray
from .framework.podinfo import PodInfo
from .framework.queued import QueuedPodInfo
from .framework.recorder import ERROR, SCHEDULED, UNSCHEDULABLE, Attempt, AttemptRecorder
from .framework.runtime import Framework, Services
from .framework.state import CycleState
from .framework.status import Code, Status
from .framework.waiting import WaitingPod
from .handlers import PODS, EventHandlers
from .metrics import Metrics
from .podstatus import SCHEDULER_ERROR, StatusWriter, Word
from .podstatus import UNSCHEDULABLE as UNSCHEDULABLE_REASON
from .profiles import SchedulerSpec
from .queue.nominator import PodNominator
from .queue.scheduling_queue import SchedulingQueue
from .snapshot.snapshot import Snapshot

MAX_BINDINGS = 64
"""Bind requests at a time. The choice of nodes is quicker than binding; beyond this it would only run ahead on old
news. Pods that wait for a permit or for PreBind (a volume that is being provisioned) do not count."""
SLICE = 0.002
"""How long cycles follow each other before the event loop gets its turn, in seconds."""
log = logging.getLogger(__name__)


class Scheduler:
    """Finds nodes for the pods of its profiles."""

    def __init__(
        self,
        client: Client,
        informers: InformerFactory,
        spec: SchedulerSpec,
        clock: Clock,
        *,
        metrics: Metrics | None = None,
        rng: random.Random | None = None,
        recorder: AttemptRecorder | None = None,
        expire_assumed_after: float = 0.0,
        telling: tuple[float, int] = (QPS, BURST),
    ) -> None:
        """`telling`: events per second, and burst, for reports of unschedulable pods."""
        if not spec.profiles:
            raise ValueError("at least one profile is required")
        self.spec = spec
        self.client = client
        self.informers = informers
        self.clock = clock
        self.metrics = metrics or Metrics()
        self.recorder = recorder
        """Records every attempt; may be set any time."""
        self.snapshot = Snapshot()
        self.cache = Cache(self.snapshot, clock, expire_assumed_after)
        self.events = EventSink(client, clock)
        self.status = StatusWriter(client, clock)
        self.failures = Failures(clock, self.cache.is_assumed, *telling)
        self.algorithm = Algorithm(spec.percentage_of_nodes_to_score)
        self.frameworks: dict[str, Framework] = {}
        nominator = PodNominator()
        self._services = Services(
            snapshot=self.snapshot,
            client=client,
            clock=clock,
            informer=lambda kind: informers.informer(kind, field_selector=PODS if kind is Pod else ""),
            recorder=self.events.recorder,
            nominator=nominator,
            activate=lambda pods: self.queue.activate(pods),
            extenders=spec.extenders,
            random=rng or random.Random(),
            metrics=self.metrics,
        )
        for profile in spec.profiles:
            if profile.scheduler_name in self.frameworks:
                raise ValueError(f"duplicate profile with scheduler name {profile.scheduler_name!r}")
            self.frameworks[profile.scheduler_name] = Framework(profile, self._services)
        first = next(iter(self.frameworks.values()))
        self.queue = SchedulingQueue(
            clock,
            first.queue_sort.sort_key,
            events={name: each.events_to_register() for name, each in self.frameworks.items()},
            pre_enqueues={name: each.pre_enqueues for name, each in self.frameworks.items()},
            metrics=self.metrics,
            nominator=nominator,
            initial_backoff=spec.pod_initial_backoff_seconds,
            max_backoff=spec.pod_max_backoff_seconds,
            max_in_unschedulable=spec.pod_max_in_unschedulable_seconds,
        )
        self.metrics.count_cache(self.cache.sizes)
        self._bindings: set[asyncio.Task[None]] = set()
        self._binding_now = 0
        self._room = asyncio.Event()
        self.handlers = EventHandlers(self)
        self.started = asyncio.Event()
        """Set when caches are filled and pods are being placed."""

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """A pod that waits for a permit."""
        return self._services.waiting.get(uid)

    # -- running

    async def run(self) -> None:
        """Place pods until cancelled."""
        try:
            self.handlers.add()
            self.informers.start()
            await self.informers.wait_synced()
            self.started.set()
            await self._place_pods()
        finally:
            await self.close()

    async def close(self) -> None:
        """End all that runs beside."""
        self.queue.close()
        bindings = list(self._bindings)
        for task in bindings:
            task.cancel()
        if bindings:
            await asyncio.wait(bindings)
        await self.failures.close()
        await self.status.close()
        await self.events.close()
        await self.informers.stop()

    async def _place_pods(self) -> None:
        since = time.monotonic()
        while True:
            queued = self.queue.pop_now()
            if queued is None:
                queued = await self.queue.pop()
                since = time.monotonic()
            try:
                await self.schedule_one(queued)
            except Exception:  # a mistake of ours must not end the scheduler, nor lose the pod
                log.exception("placing pod %s failed", queued.info.key)
                self._retry_later(queued)
            while self._binding_now >= MAX_BINDINGS:
                self._room.clear()
                await self._room.wait()
                since = time.monotonic()
            if time.monotonic() - since > SLICE:
                await asyncio.sleep(0)
                since = time.monotonic()

    def _retry_later(self, queued: QueuedPodInfo) -> None:
        """An attempt ended with an error of ours: the pod is tried again after its back-off."""
        tasks.failures["scheduling cycle"] += 1
        self.cache.forget(queued.info.uid)
        pod = self._unplaced(queued.info.pod)
        if pod is None:
            self.queue.done(queued.info.uid)
            return
        queued.unschedulable_plugins = set()
        queued.pending_plugins = set()
        self.queue.add_unschedulable(queued)

    # -- the scheduling cycle

    async def schedule_one(self, queued: QueuedPodInfo) -> None:
        """Try to place one pod."""
        pod = queued.info
        framework = self.frameworks.get(pod.spec.scheduler_name or "")
        if framework is None or self._skips(framework, pod):
            self.queue.done(pod.uid)
            return
        klog.info(log, 4, "About to try and schedule pod", pod=pod.key)
        causes, queued.causes = queued.causes, []
        with recorder.span("schedule", causes) as span:
            span.set("object", str(pod.key))
            span.set("attempt", queued.attempts)
            await self._schedule(framework, queued, span)
            if span.span is not None:
                queued.causes = [span.span]  # of the next attempt, if there is one

    async def _schedule(self, framework: Framework, queued: QueuedPodInfo, span: recorder.Active) -> None:
        pod = queued.info
        started, begun = self.clock.now(), time.perf_counter()
        state = CycleState()
        with self.handlers.paused():
            result = await self.algorithm.schedule(framework, state, pod)
            nominated: str | None = ""
            if result.diagnosis is not None:
                nominated = await self._post_filter(framework, state, pod, result.diagnosis)
            self.metrics.algorithm_seconds.observe(time.perf_counter() - begun)
            if span.span is not None:
                _describe(span, result)
            if self.recorder is not None:
                self._record(framework, state, queued, result, started, begun, nominated)
            if not result.node_name:
                status = result.status or Status(Code.UNSCHEDULABLE)
                self._failed(framework, queued, status, result.diagnosis, nominated, begun)
                return
            self._assume(framework, state, queued, result.node_name, begun)

    def _skips(self, framework: Framework, pod: PodInfo) -> bool:
        assert pod.pod.metadata is not None
        if pod.pod.metadata.deletion_timestamp:
            message = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
            framework.recorder.event(pod.pod, WARNING, "FailedScheduling", message)
            return True
        return self.cache.is_assumed(pod.uid)

    async def _post_filter(
        self, framework: Framework, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> str | None:
        if not framework.post_filters:
            return ""
        begun = time.perf_counter()
        result, status = await framework.run_post_filters(state, pod, diagnosis)
        framework.observe("PostFilter", begun, status)
        diagnosis.post_filter_message = status.message if status is not None else ""
        return None if result is None else result.nominated_node_name

    def _assume(
        self, framework: Framework, state: CycleState, queued: QueuedPodInfo, node_name: str, begun: float
    ) -> None:
        pod = queued.info
        try:
            assumed = self.cache.assume(pod, node_name)
        except ValueError as error:
            self._failed(framework, queued, Status.of_error(error), None, "", begun)
            return
        self.queue.nominator.remove(pod.uid)
        since = time.perf_counter()
        status = framework.run_reserves(state, assumed, node_name)
        framework.observe("Reserve", since, status)
        waits: dict[str, float] = {}
        if status is None and framework.permits:
            since = time.perf_counter()
            waits, status = framework.run_permits(state, assumed, node_name)
            framework.observe("Permit", since, status)
        if status is not None:
            self._unreserve(framework, state, assumed, node_name)
            self._failed(framework, queued, status, self._single(status, node_name), "", begun)
            return
        waiting = None
        if waits:
            waiting = WaitingPod(assumed, node_name, waits, self.clock)
            self._services.waiting[pod.uid] = waiting
        else:
            self.queue.done(pod.uid)
        at_once = waiting is None and not framework.will_pre_bind(state, assumed, node_name)
        self._count_bindings(int(at_once))
        task = asyncio.get_running_loop().create_task(
            self._bind(framework, state, queued, assumed, node_name, waiting, begun, counted=at_once)
        )
        self._bindings.add(task)
        task.add_done_callback(self._bindings.discard)

    def _single(self, status: Status, node_name: str) -> Diagnosis | None:
        """Why the one node that was chosen was refused after all."""
        if not status.rejected:
            return None
        row = self.snapshot.row_of.get(node_name)
        diagnosis = Diagnosis(1, self.snapshot.size)
        rows: RowArray = _one(0 if row is None else row)
        diagnosis.refuse(status, rows)
        return diagnosis

    # -- the binding cycle

    async def _bind(
        self,
        framework: Framework,
        state: CycleState,
        queued: QueuedPodInfo,
        pod: PodInfo,
        node_name: str,
        waiting: WaitingPod | None,
        begun: float,
        *,
        counted: bool,
    ) -> None:
        try:
            if not counted:
                self.status.say(Word(queued.info.pod, nominated=node_name))
            if waiting is not None:
                since = time.perf_counter()
                status = await binding.wait_on_permit(waiting)
                result = "Success" if status is None else status.code.camel
                self.metrics.permit_wait_seconds.observe(time.perf_counter() - since, result)
                self._services.waiting.pop(pod.uid, None)
                if status is not None:
                    self._binding_failed(framework, state, queued, pod, node_name, status, begun)
                    return
                self.queue.done(pod.uid)
            since = time.perf_counter()
            with recorder.child("pre-bind") as preparing:
                status = await framework.run_pre_binds(state, pod, node_name)
                preparing.discard_if_quick()
            framework.observe("PreBind", since, status)
            if status is None:
                if not counted:
                    self._count_bindings(1)
                    counted = True
                since = time.perf_counter()
                with recorder.child("bind", node=node_name):
                    status = await binding.bind(framework, state, pod, node_name)
                framework.observe("Bind", since, status)
            if status is None:
                self._bound(framework, state, queued, pod, node_name, begun)
            else:
                self._binding_failed(framework, state, queued, pod, node_name, status, begun)
        except binding.Outcome as outcome:
            log.info("pod %s: %s", pod.key, outcome)
            self._unreserve(framework, state, pod, node_name)
            self.queue.move_all(ASSIGNED_POD_DELETE, pod.pod, None)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # ours, not a plugin's
            log.exception("binding pod %s failed", pod.key)
            self._binding_failed(framework, state, queued, pod, node_name, Status.of_error(error), begun)
        finally:
            self._services.waiting.pop(pod.uid, None)
            if counted:
                self._count_bindings(-1)
                self._room.set()

    def _count_bindings(self, by: int) -> None:
        self._binding_now += by
        self.metrics.goroutines.set(self._binding_now, "binding")

    def _bound(
        self, framework: Framework, state: CycleState, queued: QueuedPodInfo, pod: PodInfo, node_name: str, begun: float
    ) -> None:
        self.cache.binding_finished(pod.uid)
        message = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
        framework.recorder.event(queued.info.pod, NORMAL, "Scheduled", message, action="Binding")
        metrics = self.metrics
        metrics.attempts.inc(SCHEDULED, framework.profile_name)
        metrics.attempt_seconds.observe(time.perf_counter() - begun, SCHEDULED, framework.profile_name)
        metrics.pod_attempts.observe(queued.attempts)
        if queued.initial_attempt_timestamp is not None:
            tries = str(queued.attempts) if queued.attempts < 15 else "15+"
            metrics.pod_sli_seconds.observe(self.queue.now() - queued.initial_attempt_timestamp, tries)
        if queued.was_flushed_from_unschedulable:
            metrics.after_flush.inc()
        framework.run_post_binds(state, pod, node_name)
        if self.recorder is not None:
            self.recorder.bound(queued.info, node_name, None)

    def _binding_failed(
        self,
        framework: Framework,
        state: CycleState,
        queued: QueuedPodInfo,
        pod: PodInfo,
        node_name: str,
        status: Status,
        begun: float,
    ) -> None:
        self._unreserve(framework, state, pod, node_name)
        if self.recorder is not None:
            self.recorder.bound(queued.info, node_name, status)
        # What the pod had is free again. That does not undo its own rejection, so the event comes after it was
        # requeued.
        if status.rejected:
            self._failed(framework, queued, status, self._single(status, node_name), "", begun)
            self.queue.move_all(ASSIGNED_POD_DELETE, pod.pod, None, lambda other: other.uid != pod.uid)
        else:
            self.queue.move_all(ASSIGNED_POD_DELETE, pod.pod, None)
            self._failed(framework, queued, status, None, "", begun)

    def _unreserve(self, framework: Framework, state: CycleState, pod: PodInfo, node_name: str) -> None:
        framework.run_unreserves(state, pod, node_name)
        self.handlers.soon(self.cache.forget, pod.uid)

    # -- failure

    def _failed(
        self,
        framework: Framework,
        queued: QueuedPodInfo,
        status: Status,
        diagnosis: Diagnosis | None,
        nominated: str | None,
        begun: float,
    ) -> None:
        """Back into the queue, with an event and a condition that say why."""
        rejected = status.rejected
        result = UNSCHEDULABLE if rejected else ERROR
        self.metrics.attempts.inc(result, framework.profile_name)
        self.metrics.attempt_seconds.observe(time.perf_counter() - begun, result, framework.profile_name)
        message = status.message if diagnosis is None else diagnosis.message()
        queued.unschedulable_plugins = set(diagnosis.unschedulable_plugins) if diagnosis else set()
        queued.pending_plugins = set(diagnosis.pending_plugins) if diagnosis else set()
        if not rejected:
            klog.error(log, message, "Error scheduling pod; retrying", pod=queued.info.key)
        elif not self.snapshot.size:
            text = "Unable to schedule pod; no nodes are registered to the cluster; waiting"
            klog.info(log, 2, text, pod=queued.info.key)
        else:
            klog.info(log, 2, "Unable to schedule pod; no fit; waiting", pod=queued.info.key, err=message)
        pod = self._unplaced(queued.info.pod)
        if pod is None:
            self.queue.done(queued.info.uid)
            return
        if pod is not queued.info.pod:
            queued.info = PodInfo(pod)
        self.queue.add_unschedulable(queued)
        self.queue.nominator.add(queued.info, nominated)
        before = (pod.status.nominated_node_name if pod.status else None) or ""
        word = Word(pod, UNSCHEDULABLE_REASON if rejected else SCHEDULER_ERROR, message, nominated)
        at_once = nominated not in (None, before)
        self.failures.tell(queued.info.uid, partial(self._tell, framework, word), at_once=at_once)

    def _tell(self, framework: Framework, word: Word) -> None:
        pod = self._unplaced(word.pod)
        if pod is not None:
            word.pod = pod
            framework.recorder.event(pod, WARNING, "FailedScheduling", word.message)
            self.status.say(word)

    def _unplaced(self, pod: Pod) -> Pod | None:
        """A pod as it is now; None if it is gone, another of the same name, or bound by another scheduler."""
        live = self.handlers.pod(key_of(pod))
        if live is None or live.spec is None or live.spec.node_name:
            return None
        assert live.metadata is not None
        assert pod.metadata is not None
        return live if live.metadata.uid == pod.metadata.uid else None

    # -- explaining

    def _record(
        self,
        framework: Framework,
        state: CycleState,
        queued: QueuedPodInfo,
        result: Result,
        started: float,
        begun: float,
        nominated: str | None,
    ) -> None:
        assert self.recorder is not None
        attempt = Attempt(
            pod=queued.info,
            framework=framework,
            state=state,
            number=queued.attempts,
            started=started,
            seconds=time.perf_counter() - begun,
            result=SCHEDULED if result.node_name else ERROR if result.status else UNSCHEDULABLE,
            node_name=result.node_name,
            nominated_node_name=nominated or "",
            status=result.status,
            names=self.snapshot.names,
            size=self.snapshot.size,
            alive=self.snapshot.alive,
            masks=result.masks,
            diagnosis=result.diagnosis,
            feasible=result.feasible,
            scores_at=result.scores_at,
            weights=framework.weights,
            total=result.total,
        )
        try:
            self.recorder.record(attempt)
        except Exception:
            log.exception("an attempt could not be recorded")


def _describe(span: recorder.Active, result: Result) -> None:
    """Describe the result in the span: how many nodes fit, the chosen one, or why there is none."""
    span.set("nodes that fit", result.num_feasible)
    if result.node_name:
        span.set("node", result.node_name)
    elif result.diagnosis is not None:
        span.mark("no node fits", result.diagnosis.message())


def _one(row: int) -> RowArray:
    return np.array([row], dtype=np.intp)
