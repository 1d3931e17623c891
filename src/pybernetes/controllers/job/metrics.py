"""The numbers of the Job controller, in upstream's names."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pybernetes.api.batch.v1 import Job, JobCondition, JobStatus
from pybernetes.client.metrics import Registry

from .indexes import Indexes
from .survey import is_indexed, spec_of

_SYNC_BUCKETS = tuple(0.004 * 2**power for power in range(15))


class JobMetrics:
    """Metrics of syncs, Jobs, pods and indexes."""

    def __init__(self, registry: Registry) -> None:
        labels = ("completion_mode", "result", "action")
        prefix = "job_controller_"
        self._durations = registry.histogram(
            prefix + "job_sync_duration_seconds", "How long a look at a Job took.", _SYNC_BUCKETS, labels
        )
        self._syncs = registry.counter(prefix + "job_syncs_total", "Looks at Jobs.", labels)
        self._finished = registry.counter(
            prefix + "jobs_finished_total", "Finished Jobs.", ("completion_mode", "result", "reason")
        )
        self._pods = registry.counter(
            prefix + "job_pods_finished_total",
            "Ended pods that are fully accounted for.",
            ("completion_mode", "result"),
        )
        self._indexes = registry.counter(
            prefix + "job_finished_indexes_total", "Finished indexes.", ("status", "backoffLimit")
        )
        self._actions = registry.counter(
            prefix + "pod_failures_handled_by_failure_policy_total",
            "Failed pods that a rule of a pod failure policy matched.",
            ("action",),
        )
        self._created = registry.counter(
            prefix + "job_pods_creation_total", "Pods made for Jobs, by why.", ("reason", "status")
        )
        self._external = registry.counter(
            prefix + "jobs_by_external_controller_total",
            "Jobs that another controller looks after.",
            ("controller_name",),
        )

    def synced(self, job: Job, seconds: float, action: str, *, failed: bool) -> None:
        """A look at a Job has ended."""
        labels = (_mode(job), "error" if failed else "success", action)
        self._durations.observe(seconds, *labels)
        self._syncs.inc(*labels)

    def finished(self, job: Job, condition: JobCondition) -> None:
        """A Job has got its last condition."""
        result = "succeeded" if condition.type == "Complete" else "failed"
        self._finished.inc(_mode(job), result, condition.reason or "")

    def counted(self, job: Job, before: JobStatus, after: JobStatus) -> None:
        """The counters of a Job were written."""
        succeeded = (after.succeeded or 0) - (before.succeeded or 0)
        if is_indexed(job):
            completions = spec_of(job).completions or 0
            succeeded = _more(before.completed_indexes, after.completed_indexes, completions)
            limit = "global" if spec_of(job).backoff_limit_per_index is None else "perIndex"
            self._count(self._indexes, succeeded, "succeeded", limit)
            failed = _more(before.failed_indexes, after.failed_indexes, completions)
            self._count(self._indexes, failed, "failed", limit)
        self._count(self._pods, succeeded, _mode(job), "succeeded")
        self._count(self._pods, (after.failed or 0) - (before.failed or 0), _mode(job), "failed")

    def created(self, job: Job, *, failures: int, terminating: int, succeeded: int, failed: int) -> None:
        """Pods were made, or could not be."""
        reason = "new"
        if spec_of(job).pod_replacement_policy == "Failed" and failures:
            reason = "recreate_failed"
        elif failures or terminating:
            reason = "recreate_terminating_or_failed"
        self._count(self._created, succeeded, reason, "succeeded")
        self._count(self._created, failed, reason, "failed")

    def handled(self, actions: Counter[str]) -> None:
        """Rules of a pod failure policy matched."""
        for action, number in actions.items():
            self._actions.inc(action, by=number)

    def left_to(self, controller: str) -> None:
        """A Job was made that another controller looks after."""
        self._external.inc(controller)

    @staticmethod
    def _count(counter: Any, number: int, *labels: str) -> None:
        if number > 0:
            counter.inc(*labels, by=number)


def _mode(job: Job) -> str:
    return "Indexed" if is_indexed(job) else "NonIndexed"


def _more(before: str | None, after: str | None, completions: int) -> int:
    return len(Indexes.parse(after, completions)) - len(Indexes.parse(before, completions))
