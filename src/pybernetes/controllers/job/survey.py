"""Counts a Job's pods at one moment, and decides whether the Job has ended.

No pod is counted twice: a pod counts as new only while it has the tracking finalizer, its uid is not among the
uncounted ones of the status, and the controller has not removed the finalizer already (`released`: the cache may lag).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from pybernetes.api.batch.v1 import Job, JobCondition, JobSpec, JobStatus, UncountedTerminatedPods
from pybernetes.api.core.v1.pod import Pod
from pybernetes.client.keys import uid_of

from ..common.meta import seconds
from ..common.pods import is_active, is_ready, is_terminating, phase_of
from . import conditions, pods
from .backoff import BackoffRecord
from .indexes import Indexes
from .policies import judge_failure, judge_success


def spec_of(job: Job) -> JobSpec:
    """The Job's spec."""
    return job.spec or JobSpec()


def is_indexed(job: Job) -> bool:
    """Whether each completion has an index of its own."""
    return spec_of(job).completion_mode == "Indexed"


@dataclass(slots=True, kw_only=True)
class Survey:
    """A Job's pods, sorted and counted."""

    job: Job
    pods: Sequence[Pod]
    released: Collection[str]
    active: list[Pod]
    terminating: list[Pod]
    ready: int
    succeeded: int
    failed: int
    backoff: BackoffRecord
    counted_indexes: Indexes
    """The succeeded indexes that the status knew before."""
    succeeded_indexes: Indexes
    failed_indexes: Indexes | None
    """None if the Job has no limit for each index."""
    held: dict[int, Pod]
    """The last failed pod of each index that waits for its next one, which takes over its count of failures."""

    def tracked(self, pod: Pod) -> bool:
        """Whether the pod's end has yet to be accounted for."""
        return pods.has_tracking_finalizer(pod) and uid_of(pod) not in self.released


def survey(job: Job, all_pods: Sequence[Pod], *, released: Collection[str], backoff: BackoffRecord) -> Survey:
    """Sort and count a Job's pods."""
    spec, status = spec_of(job), job.status or JobStatus()
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    known_succeeded, known_failed = set(uncounted.succeeded or ()), set(uncounted.failed or ())
    completions = spec.completions or 0
    indexed = is_indexed(job)

    def countable(pod: Pod, known: set[str]) -> bool:
        uid = uid_of(pod)
        if not pods.has_tracking_finalizer(pod) or uid in known or uid in released:
            return False
        return not indexed or pods.valid_index(pod, completions) is not None

    succeeded = [pod for pod in all_pods if phase_of(pod) == "Succeeded" and countable(pod, known_succeeded)]
    failed = [pod for pod in all_pods if pods.is_failed(pod, job) and countable(pod, known_failed)]
    active = [pod for pod in all_pods if is_active(pod)]
    result = Survey(
        job=job,
        pods=all_pods,
        released=released,
        active=active,
        terminating=[pod for pod in all_pods if is_terminating(pod)],
        ready=sum(map(is_ready, active)),
        succeeded=(status.succeeded or 0) + len(succeeded) + len(known_succeeded),
        failed=(status.failed or 0)
        + sum(judge_failure(spec.pod_failure_policy, pod).counts for pod in failed)
        + len(known_failed),
        backoff=backoff.after(succeeded, failed),
        counted_indexes=Indexes(),
        succeeded_indexes=Indexes(),
        failed_indexes=None,
        held={},
    )
    if indexed:
        _survey_indexes(result, completions, partial(countable, known=set()))
    return result


def _survey_indexes(result: Survey, completions: int, countable: Callable[[Pod], bool]) -> None:
    job = result.job
    status = job.status or JobStatus()
    indexes = [
        (pod, index)
        for pod in result.pods
        if pods.has_tracking_finalizer(pod) and (index := pods.valid_index(pod, completions)) is not None
    ]
    result.counted_indexes = Indexes.parse(status.completed_indexes, completions)
    new = Indexes.of(index for pod, index in indexes if phase_of(pod) == "Succeeded")
    result.succeeded_indexes = result.counted_indexes | new
    result.succeeded = len(result.succeeded_indexes)
    limit = spec_of(job).backoff_limit_per_index
    if limit is None:
        return
    failed = Indexes.of(index for pod, index in indexes if _fails_index(job, pod, limit))
    result.failed_indexes = Indexes.parse(status.failed_indexes, completions) | failed
    over = result.succeeded_indexes | result.failed_indexes | indexes_of(result.active)
    for pod, index in indexes:
        if index in over or not countable(pod) or not pods.is_failed(pod, job):
            continue
        before = result.held.get(index)
        if before is None or _is_later(pod, before):
            result.held[index] = pod


def indexes_of(some: Sequence[Pod]) -> Indexes:
    """The indexes that pods run."""
    return Indexes.of(index for pod in some if (index := pods.completion_index(pod)) is not None)


def _fails_index(job: Job, pod: Pod, limit: int) -> bool:
    if not pods.is_failed(pod, job):
        return False
    failure = judge_failure(spec_of(job).pod_failure_policy, pod)
    return failure.action == "FailIndex" or (failure.counts and pods.index_failure_count(pod) >= limit)


def _is_later(pod: Pod, other: Pod) -> bool:
    return pods.index_failures(other) <= pods.index_failures(pod) and pods.finished_at(other) <= pods.finished_at(pod)


def verdict(survey: Survey, now: float) -> JobCondition | None:
    """The condition with which the Job ends, if its end is certain by now.

    What an earlier verdict said stands; then failures are looked for, then the success policy. That all completions are
    reached is not seen here but after pods were made and deleted: see `is_complete`.
    """
    job = survey.job
    met = conditions.find(job, conditions.SUCCESS_CRITERIA_MET)
    if met is not None:
        return met
    target = conditions.find(job, conditions.FAILURE_TARGET)
    if target is not None:
        return conditions.new_condition(conditions.FAILED, "True", target.reason or "", target.message or "", now)
    failure = _failure(survey, now)
    if failure is not None:
        return conditions.new_condition(conditions.FAILURE_TARGET, "True", *failure, now)
    if is_indexed(job):
        spec = spec_of(job)
        why = judge_success(spec.success_policy, spec.completions or 0, survey.succeeded_indexes)
        if why is not None:
            return conditions.new_condition(conditions.SUCCESS_CRITERIA_MET, "True", "SuccessPolicy", why, now)
    return None


def _failure(survey: Survey, now: float) -> tuple[str, str] | None:
    """Reason and message of the Job's failure."""
    job, spec = survey.job, spec_of(survey.job)
    if spec.pod_failure_policy is not None:
        for pod in survey.pods:
            why = judge_failure(spec.pod_failure_policy, pod).fails_job if pods.is_failed(pod, job) else None
            if why is not None:
                return "PodFailurePolicy", why
    limit = _backoff_limit(spec)
    if survey.failed > limit or _restarted_too_often(survey, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    deadline = seconds_to_deadline(job, now)
    if deadline is not None and deadline <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    failed = survey.failed_indexes
    if failed is not None:
        if spec.max_failed_indexes is not None and len(failed) > spec.max_failed_indexes:
            return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
        if failed and len(failed) + survey.succeeded >= (spec.completions or 0):
            return "FailedIndexes", "Job has failed indexes"
    return None


def _backoff_limit(spec: JobSpec) -> int:
    return 6 if spec.backoff_limit is None else spec.backoff_limit


def _restarted_too_often(survey: Survey, limit: int) -> bool:
    """Containers that are started again in their pod count too, if the pods say OnFailure."""
    template = spec_of(survey.job).template
    if template is None or template.spec is None or template.spec.restart_policy != "OnFailure":
        return False
    restarts = sum(pods.restarts(pod) for pod in survey.pods if phase_of(pod) in ("Running", "Pending"))
    return restarts >= max(limit, 1)


def seconds_to_deadline(job: Job, now: float) -> float | None:
    """Seconds until the Job has been active for as long as it may; None if it may be for ever."""
    limit = spec_of(job).active_deadline_seconds
    start = job.status.start_time if job.status else None
    if limit is None or start is None or conditions.is_suspended(job):
        return None
    return seconds(start) + limit - now


def is_complete(survey: Survey, active: int) -> bool:
    """Whether enough pods have succeeded and none runs any more; without a number, one success is enough."""
    completions = spec_of(survey.job).completions
    wanted = 1 if completions is None else completions
    return active == 0 and survey.succeeded >= wanted
