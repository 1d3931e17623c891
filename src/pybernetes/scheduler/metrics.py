"""The scheduler's metrics, under upstream's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pybernetes.client.metrics import GaugeFunction, Registry

from .framework.queued import QueuedPodInfo


def _exponential(start: float, factor: float, number: int) -> tuple[float, ...]:
    return tuple(start * factor**power for power in range(number))


class Metrics:
    """All metrics of a scheduler."""

    def __init__(self, registry: Registry | None = None) -> None:
        registry = self.registry = registry or Registry()
        self.attempts = registry.counter(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result: scheduled, unschedulable or error.",
            ("result", "profile"),
        )
        self.attempt_seconds = registry.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Duration of an attempt, the choice of a node and its binding, in seconds.",
            _exponential(0.001, 2, 15),
            ("result", "profile"),
        )
        self.algorithm_seconds = registry.histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Duration of the choice of a node, in seconds.",
            _exponential(0.001, 2, 15),
        )
        self.preemption_victims = registry.histogram(
            "scheduler_preemption_victims", "Number of pods that one preemption ends.", _exponential(1, 2, 7)
        )
        self.preemption_attempts = registry.counter(
            "scheduler_preemption_attempts_total", "Number of preemptions that were tried."
        )
        self.preemption_seconds = registry.histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "Duration of the eviction of the victims of one preemption, in seconds.",
            _exponential(0.01, 2, 20),
            ("result",),
        )
        self.preemptions = registry.counter(
            "scheduler_preemption_goroutines_execution_total",
            "Number of preemptions whose victims were evicted, or not, by the result.",
            ("result",),
        )
        self.pod_sli_seconds = registry.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from a pod's coming into the queue to its binding, over all attempts, in seconds.",
            _exponential(0.01, 2, 20),
            ("attempts",),
        )
        self.pod_attempts = registry.histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts until a pod was bound.",
            _exponential(1, 2, 5),
        )
        self.after_flush = registry.counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Number of pods that were bound after having waited too long for an event that helps.",
        )
        self.extension_point_seconds = registry.histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Duration of all plugins of an extension point, in seconds.",
            _exponential(0.0001, 2, 12),
            ("extension_point", "status", "profile"),
        )
        self.queue_incoming = registry.counter(
            "scheduler_queue_incoming_pods_total",
            "Number of pods that came into a queue, by event and queue.",
            ("queue", "event"),
        )
        self.unschedulable = registry.gauge(
            "scheduler_unschedulable_pods",
            "Number of pods that a plugin has refused.",
            ("plugin", "profile"),
        )
        self.permit_wait_seconds = registry.histogram(
            "scheduler_permit_wait_duration_seconds",
            "How long pods waited for a permit, in seconds.",
            _exponential(0.001, 2, 15),
            ("result",),
        )
        self.goroutines = registry.gauge(
            "scheduler_goroutines", "Number of things that run beside the scheduling cycle.", ("operation",)
        )

    def incoming(self, queue: str, event: str) -> None:
        """A pod came into a queue."""
        self.queue_incoming.inc(queue, event)

    def refused(self, queued: QueuedPodInfo, by: int) -> None:
        """A refused pod waits (1) or waits no more (-1)."""
        profile = queued.info.spec.scheduler_name or ""
        for plugin in queued.unschedulable_plugins | queued.pending_plugins:
            self.refused_by(plugin, profile, by)

    def refused_by(self, plugin: str, profile: str, by: int) -> None:
        """A pod that this plugin refused waits, or waits no more."""
        self.unschedulable.inc(plugin, profile, by=by)

    def count_pending(self, read: Callable[[], Mapping[str, int]]) -> None:
        """Where the numbers of pods in queues come from."""
        self.registry.add(
            GaugeFunction(
                "scheduler_pending_pods",
                "Number of pods that wait, by queue.",
                ("queue",),
                lambda: [((queue,), float(number)) for queue, number in read().items()],
            )
        )

    def count_cache(self, read: Callable[[], Mapping[str, int]]) -> None:
        """Where the numbers of things in the cache come from."""
        self.registry.add(
            GaugeFunction(
                "scheduler_cache_size",
                "Number of nodes, pods and assumed pods that the scheduler knows.",
                ("type",),
                lambda: [((kind,), float(number)) for kind, number in read().items()],
            )
        )
