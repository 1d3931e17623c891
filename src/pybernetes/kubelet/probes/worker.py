"""Probes one container for as long as its pod lives: the waiting around `probing.Probing`."""

from __future__ import annotations

import asyncio
import logging
import random

from pybernetes.api.core.v1 import PodStatus
from pybernetes.client.clock import Clock
from pybernetes.client.metrics import Registry
from pybernetes.trace import recorder

from .prober import Prober
from .probing import Next, Probing
from .results import Result

log = logging.getLogger(__name__)

_NAMES = {Result.SUCCESS: "successful", Result.FAILURE: "failed", Result.UNKNOWN: "unknown"}
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # Prometheus's own


class ProberMetrics:
    """Metrics of the node's probes."""

    def __init__(self, registry: Registry) -> None:
        self.total = registry.counter(
            "prober_probe_total",
            "[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result.",
            ("container", "namespace", "pod", "pod_uid", "probe_type", "result"),
        )
        self.duration = registry.histogram(
            "prober_probe_duration_seconds",
            "[ALPHA] Duration in seconds for a probe response.",
            _BUCKETS,
            ("container", "namespace", "pod", "probe_type"),
        )

    def count(self, probing: Probing, result: Result, seconds: float) -> None:
        """Count one answer."""
        container, namespace, pod, uid = self._of(probing)
        self.total.inc(container, namespace, pod, uid, str(probing.type), _NAMES[result])
        if result is not Result.FAILURE:
            self.duration.observe(seconds, container, namespace, pod, str(probing.type))

    def forget(self, probing: Probing) -> None:
        """A probe that has ended is not counted any more."""
        container, namespace, pod, uid = self._of(probing)
        for name in _NAMES.values():
            self.total.values.pop((container, namespace, pod, uid, str(probing.type), name), None)
        self.duration.remove(container, namespace, pod, str(probing.type))

    @staticmethod
    def _of(probing: Probing) -> tuple[str, str, str, str]:
        metadata = probing.pod.metadata
        assert metadata is not None
        return probing.container.name or "", metadata.namespace or "", metadata.name or "", metadata.uid or ""


class ProbeWorker:
    """A task that waits and probes."""

    def __init__(self, probing: Probing, prober: Prober, clock: Clock, metrics: ProberMetrics) -> None:
        self.probing = probing
        self._prober = prober
        self._clock = clock
        self._metrics = metrics
        self._status: PodStatus | None = None
        self._seen: object = None
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._supervise())

    def stop(self) -> None:
        """End at once; what a probe under way finds is not kept."""
        if self._task is not None:
            self._task.cancel()
        self.probing.forget()
        self._metrics.forget(self.probing)

    def see(self, status: PodStatus) -> None:
        """The pod is like this now."""
        self._status = status
        name = self.probing.container.name
        statuses = [*(status.container_statuses or ()), *(status.init_container_statuses or ())]
        seen = (
            status.phase in ("Failed", "Succeeded"),
            next(
                (
                    (each.container_id, each.state is not None and each.state.running is not None, each.started)
                    for each in statuses
                    if each.name == name
                ),
                None,
            ),
        )
        if seen != self._seen:
            self._seen = seen
            self._news.set()

    async def _supervise(self) -> None:
        """Probe until there is nothing more to probe; a mistake in one look does not end all later ones."""
        while True:
            try:
                return await self._run()
            except Exception:
                log.exception("%s probe of %s", self.probing.type, self.probing.container_id)
                await self._clock.sleep(self.probing.period)

    async def _run(self) -> None:
        probing, clock = self.probing, self._clock
        due = 0.0
        container = ""
        while True:
            step = probing.look(self._status, clock.now())
            if step is Next.END:
                return
            if step is Next.PROBE and not probing.on_hold:
                if container != probing.container_id:
                    container = probing.container_id
                    # All probes of a node would begin in one moment when its kubelet does.
                    due = clock.monotonic() + random.random() * probing.period if probing.was_running else 0.0
                if not await self._news_before(max(due, clock.monotonic() + self._initial_delay())):
                    began = clock.monotonic()
                    await self._probe(began)
                    due = began + probing.period
                continue
            due = 0.0
            await self._news.wait()
            self._news.clear()

    def _initial_delay(self) -> float:
        """Seconds until the first probe of a container may be made; a clock that was set back does not make it long."""
        left = self.probing.not_before - self._clock.now()
        return min(max(0.0, left), 1.0 + (self.probing.spec.initial_delay_seconds or 0))

    async def _news_before(self, due: float) -> bool:
        """Whether the container's state changes before that time (monotonic); returns then, or at that time."""
        wait = due - self._clock.monotonic()
        if wait > 0:
            timer = self._clock.call_later(wait, self._wake)
            self._woken = False
            try:
                await self._news.wait()
            finally:
                timer.cancel()
            self._news.clear()
            return not self._woken
        self._news.clear()
        return False

    def _wake(self) -> None:
        self._woken = True
        self._news.set()

    async def _probe(self, began: float) -> None:
        probing = self.probing
        assert self._status is not None
        container_id = probing.container_id
        with recorder.span(f"{probing.type} probe".lower()) as span:
            try:
                result = await self._prober.probe(
                    probing.type, probing.spec, probing.pod, probing.container, container_id, self._status.pod_ip or ""
                )
            except Exception:
                log.exception("%s probe of %s", probing.type, container_id)
                span.discard()
                return
            if result is not None and container_id == probing.container_id:
                self._metrics.count(probing, result, self._clock.monotonic() - began)
                probing.answer(result)
                span.set("result", str(result))
            span.done(f"container {probing.container.name}")  # kept only if it woke the pod's worker
