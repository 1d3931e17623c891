"""Facts about one pod of a Job: which index it runs, whether it failed, when it ended.

Annotations are not trusted: what cannot be read counts as absent.
"""

from __future__ import annotations

from pybernetes.api.batch.v1 import Job
from pybernetes.api.core.v1.container import ContainerStatus
from pybernetes.api.core.v1.pod import Pod

from ..common.meta import annotations_of, created, is_deleting, seconds
from ..common.pods import is_ready, node_of, phase_of, ready_condition, ready_since

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"

_MAX_INT32 = (1 << 31) - 1


def has_tracking_finalizer(pod: Pod) -> bool:
    """Whether the Job has not finished accounting for this pod."""
    return TRACKING_FINALIZER in ((pod.metadata.finalizers if pod.metadata else None) or ())


def completion_index(pod: Pod) -> int | None:
    """The index that the pod runs."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() and text.isascii() else None


def valid_index(pod: Pod, completions: int) -> int | None:
    """The index that the pod runs, if the Job has such an index."""
    index = completion_index(pod)
    return index if index is not None and index < completions else None


def only_replaces_failed(job: Job) -> bool:
    """Whether a pod gets its successor only when it has ended, not already when it is being deleted."""
    spec = job.spec
    return spec is not None and (spec.pod_replacement_policy == "Failed" or spec.pod_failure_policy is not None)


def is_failed(pod: Pod, job: Job) -> bool:
    """Whether the pod counts as failed; deleted ones do unless the Job waits for their end.

    A pod of a node that is gone is deleted without ever reaching the phase Failed.
    """
    if phase_of(pod) == "Failed":
        return True
    return not only_replaces_failed(job) and is_deleting(pod) and phase_of(pod) != "Succeeded"


def index_failure_count(pod: Pod) -> int:
    """How many pods of the same index had failed, and counted, before this one."""
    return _count(pod, INDEX_FAILURE_COUNT)


def index_ignored_failure_count(pod: Pod) -> int:
    """How many pods of the same index had failed before this one without counting."""
    return _count(pod, INDEX_IGNORED_FAILURE_COUNT)


def index_failures(pod: Pod) -> int:
    """How many pods of the same index had failed before this one, whether they counted or not."""
    return index_failure_count(pod) + index_ignored_failure_count(pod)


def restarts(pod: Pod) -> int:
    """How often the pod's containers were started again, all together."""
    return sum(each.restart_count or 0 for each in _init_statuses(pod) + _statuses(pod))


def finished_at(pod: Pod) -> float:
    """When the pod ended: its last container, else when it ceased to be ready, was deleted, or was created."""
    containers = _last_container_finished_at(pod)
    if containers is not None:
        return containers
    ready = ready_condition(pod)
    if ready is not None and ready.status == "False" and ready.last_transition_time:
        return seconds(ready.last_transition_time)
    metadata = pod.metadata
    if metadata is not None and metadata.deletion_timestamp:
        return seconds(metadata.deletion_timestamp) - (metadata.deletion_grace_period_seconds or 0)
    return created(pod)


def deletion_order(pod: Pod) -> tuple[object, ...]:
    """Sorts pods so that those whose loss costs least come first.

    Not on a node before on a node, pending before unknown before running, not ready before ready, and then ready for a
    shorter time, more restarts, younger.
    """
    return (
        bool(node_of(pod)),
        {"Pending": 0, "Unknown": 1, "Running": 2}.get(phase_of(pod), 0),
        is_ready(pod),
        *_younger_first(ready_since(pod)),
        *_most_restarts(pod),
        *_younger_first(created(pod)),
    )


def _younger_first(moment: float) -> tuple[bool, float]:
    return moment > 0, -moment  # an unknown moment counts as the present


def _most_restarts(pod: Pod) -> tuple[int, int]:
    """Negated, of ordinary containers first and of those that run beside the pod's start second."""
    beside = _restartable_init_containers(pod)
    ordinary = max((each.restart_count or 0 for each in _statuses(pod)), default=0)
    sidecars = max((each.restart_count or 0 for each in _init_statuses(pod) if each.name in beside), default=0)
    return (-ordinary, -sidecars)


def _statuses(pod: Pod) -> list[ContainerStatus]:
    return (pod.status.container_statuses if pod.status else None) or []


def _init_statuses(pod: Pod) -> list[ContainerStatus]:
    return (pod.status.init_container_statuses if pod.status else None) or []


def _restartable_init_containers(pod: Pod) -> set[str | None]:
    containers = (pod.spec.init_containers if pod.spec else None) or ()
    return {each.name for each in containers if each.restart_policy == "Always"}


def _last_container_finished_at(pod: Pod) -> float | None:
    """When the last container ended; None if one still runs or cannot say. Sidecars end after the others."""
    beside = _restartable_init_containers(pod)
    last: float | None = None
    sidecars = [each for each in _init_statuses(pod) if each.name in beside]
    for each in _statuses(pod) + sidecars:
        terminated = each.state.terminated if each.state else None
        if terminated is None or not terminated.finished_at:
            return None
        last = max(last or 0.0, seconds(terminated.finished_at))
    return last


def _count(pod: Pod, annotation: str) -> int:
    text = annotations_of(pod).get(annotation, "")
    value = int(text) if text.isdecimal() and text.isascii() and len(text) < 12 else 0
    return value if value <= _MAX_INT32 else 0
