"""The books of a Job: how pods that have ended come to be counted exactly once.

In this order, each step safe to repeat if the controller dies after it:
1. `enter`: the uids of ended pods go into `status.uncountedTerminatedPods`, and the status is written;
2. the pods' tracking finalizers are removed: only now can the pods disappear;
3. `settle`: uids whose pods have no finalizer any more are taken out of the lists and added to the counters;
4. `conclude`: when nothing is left to count and no pod is left to end, the Job gets its final condition.
Indexed Jobs need no list for successes: `completedIndexes` cannot count an index twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec

from pybernetes.api.batch.v1 import JobCondition, JobStatus, UncountedTerminatedPods
from pybernetes.api.core.v1.pod import Pod
from pybernetes.client.keys import uid_of

from ..common.meta import is_deleting
from ..common.pods import phase_of
from . import conditions, pods
from .policies import judge_failure
from .survey import Survey, is_indexed, spec_of

MAX_UNCOUNTED_PODS: Final = 500
"""Keeps the status below some 20 KB, and one sync from taking for ever."""


class Entry(NamedTuple):
    """The outcome of the first step."""

    status: JobStatus
    changed: bool
    release: list[Pod]
    """The pods that lose their finalizer once the status is written."""
    full: bool
    """There are more pods than fit into the lists: the Job must not finish yet."""
    actions: Counter[str]
    """How many failures each action of the failure policy has handled."""


def enter(survey: Survey, status: JobStatus, verdict: JobCondition | None) -> Entry:
    """Write ended pods into the lists of the status; with a verdict, all pods of the Job are taken as ended."""
    job, spec = survey.job, spec_of(survey.job)
    indexed, completions = is_indexed(job), spec.completions or 0
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    succeeded, failed = list(uncounted.succeeded or ()), list(uncounted.failed or ())
    known_succeeded, known_failed = set(succeeded), set(failed)
    gives_up = verdict is not None and verdict.type != conditions.SUCCESS_CRITERIA_MET
    new_indexes = 0
    release: list[Pod] = []
    actions: Counter[str] = Counter()
    full = False
    for pod in sorted(survey.pods, key=_by_index) if indexed else survey.pods:
        if not survey.tracked(pod):
            continue
        is_failed = pods.is_failed(pod, job)
        if not _may_release(survey, pod, is_failed, verdict):
            continue
        release.append(pod)
        uid = uid_of(pod)
        index = pods.valid_index(pod, completions)
        if phase_of(pod) == "Succeeded" and uid not in known_failed:
            if not indexed:
                if uid not in known_succeeded:
                    succeeded.append(uid)
            elif index is not None and index not in survey.counted_indexes:
                new_indexes += 1
        elif (is_failed or gives_up) and uid not in known_failed and (not indexed or index is not None):
            failure = judge_failure(spec.pod_failure_policy, pod)
            if failure.action is not None:
                actions[failure.action] += 1
            if failure.counts:
                failed.append(uid)
        if new_indexes + len(succeeded) + len(failed) >= MAX_UNCOUNTED_PODS:
            full = True
            break
    lists = UncountedTerminatedPods(succeeded=succeeded or None, failed=failed or None)
    new = msgspec.structs.replace(status, uncounted_terminated_pods=lists)
    changed = len(succeeded) > len(known_succeeded) or len(failed) > len(known_failed) or new_indexes > 0
    if indexed:
        new.succeeded = len(survey.succeeded_indexes)
        new.completed_indexes = str(survey.succeeded_indexes) or None
        new.failed_indexes = None if survey.failed_indexes is None else str(survey.failed_indexes)
        changed = changed or (new.completed_indexes or "") != (status.completed_indexes or "")
        changed = changed or new.failed_indexes != status.failed_indexes
    return Entry(new, changed, release, full, actions)


def _by_index(pod: Pod) -> int:
    index = pods.completion_index(pod)
    return -1 if index is None else index


def _may_release(survey: Survey, pod: Pod, is_failed: bool, verdict: JobCondition | None) -> bool:
    """Whether the pod may lose its finalizer: it has ended, or the whole Job has; unless its successor needs it."""
    if is_deleting(survey.job) or verdict is not None or phase_of(pod) == "Succeeded":
        return True
    if not is_failed:
        return False
    index = pods.completion_index(pod)
    return index is None or index not in survey.held or uid_of(survey.held[index]) != uid_of(pod)


def settle(status: JobStatus, with_finalizer: Collection[str]) -> tuple[JobStatus, bool]:
    """Count the uncounted pods that have no finalizer any more; whether there were any."""
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    succeeded = [uid for uid in uncounted.succeeded or () if uid in with_finalizer]
    failed = [uid for uid in uncounted.failed or () if uid in with_finalizer]
    new_succeeded = len(uncounted.succeeded or ()) - len(succeeded)
    new_failed = len(uncounted.failed or ()) - len(failed)
    new = msgspec.structs.replace(
        status,
        uncounted_terminated_pods=UncountedTerminatedPods(succeeded=succeeded or None, failed=failed or None),
        succeeded=(status.succeeded or 0) + new_succeeded,
        failed=(status.failed or 0) + new_failed,
    )
    return new, bool(new_succeeded or new_failed)


def announce(status: JobStatus, verdict: JobCondition | None) -> tuple[JobStatus, bool]:
    """The verdict as the first of the two conditions of a Job's end; whether it is news."""
    if verdict is None or verdict.type not in (conditions.FAILURE_TARGET, conditions.SUCCESS_CRITERIA_MET):
        return status, False
    if any(each.type == verdict.type and each.status == "True" for each in status.conditions or ()):
        return status, False
    return msgspec.structs.replace(status, conditions=[*(status.conditions or ()), verdict]), True


def conclude(
    status: JobStatus, verdict: JobCondition | None, terminating: int, now: float
) -> tuple[JobStatus, JobCondition] | None:
    """The final status and condition, if all pods have ended and are counted."""
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    if verdict is None or terminating or uncounted.succeeded or uncounted.failed:
        return None
    kind = conditions.COMPLETE if verdict.type == conditions.SUCCESS_CRITERIA_MET else conditions.FAILED
    final = conditions.new_condition(kind, "True", verdict.reason or "", verdict.message or "", now)
    new = msgspec.structs.replace(
        status, conditions=conditions.with_condition(status.conditions, final) or status.conditions
    )
    if kind == conditions.COMPLETE:
        new.completion_time = final.last_transition_time
    return new, final
