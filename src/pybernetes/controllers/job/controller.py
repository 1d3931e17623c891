"""Runs pods until enough of them have succeeded.

Woken by: its Job, pods that it controls, orphans that match. Writes: pods, their tracking finalizers, its own status.
Pods of a Job end in quick succession: their events are gathered for a moment, so that the status is written once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pybernetes.api import errors, labels
from pybernetes.api.batch.v1 import Job, JobCondition, JobStatus, UncountedTerminatedPods
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.times import rfc3339
from pybernetes.client.backoff import ItemBackoff
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.keys import Key, controller_of, controller_reference, key_of, uid_of
from pybernetes.client.workqueue import WorkQueue

from ..base import Controller
from ..common.consistency import CHECK_AGAIN, Consistency
from ..common.meta import generation_of, is_deleting, labels_of
from ..common.ownership import claim
from ..common.pod_control import PodControl, first_failure, is_namespace_terminating, slow_start
from ..common.pods import is_ready
from . import accounting, conditions
from .backoff import BackoffRecord
from .metrics import JobMetrics
from .planning import plan, pod_for
from .pods import TRACKING_FINALIZER, has_tracking_finalizer
from .survey import Survey, is_complete, seconds_to_deadline, spec_of, survey, verdict
from .tracking import Orphan, OrphanCleaner, Releases, managed_by_another, orphans_of, remove_finalizer

BATCH_PERIOD: Final = 0.1
"""Seconds for which events of pods are gathered. Upstream waits 1 s, which short Jobs notice."""
API_BACKOFF: Final = (1.0, 60.0)
"""Seconds to wait when the server refuses, at first and at most."""


@dataclass(slots=True)
class _Sync:
    """One look at a Job: what is found, what was done, what will be written."""

    key: Key
    found: Survey
    status: JobStatus
    active: int
    ready: int
    terminating: int
    action: str = "reconciling"
    again: float | None = None
    failure: Exception | None = None

    def gone(self, deleted: Sequence[Pod]) -> None:
        """These pods were deleted."""
        self.active -= len(deleted)
        self.ready -= sum(map(is_ready, deleted))
        self.terminating += len(deleted)


class JobController(Controller[Job]):
    """Keeps Jobs going until they are done."""

    name = "job-controller"
    kind = Job

    def setup(self) -> None:
        """Hear of Jobs and pods."""
        self.workers = self.options.concurrent_job_syncs
        self.pods = self.informer(Pod)
        self.pods.add_handler(self._pod_added, self._pod_updated, self._pod_deleted)
        self.own.add_handler(self._job_added, self._job_updated, self._job_deleted)
        self.control = PodControl(self.client, self.recorder)
        self.releases = Releases(self.client)
        self.written = Consistency()
        self.numbers = JobMetrics(self.context.metrics)
        self._backoffs: dict[Key, BackoffRecord] = {}
        self._orphans: WorkQueue[Orphan] = self.new_queue("job_orphan_pod")
        self._cleaner = OrphanCleaner(self.client, self.pods, self._job_of)

    def new_queue(self, name: str) -> WorkQueue[Any]:
        """A queue that is as patient as upstream's."""
        return WorkQueue(name, self.clock, backoff=ItemBackoff(*API_BACKOFF), metrics=self.context.metrics)

    async def run(self) -> None:
        """Work on Jobs, and on pods that have lost theirs."""
        await self.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.work(self.queue, self.reconcile, self.workers))
            group.create_task(self.work(self._orphans, self._cleaner.clean, self.workers))

    # -- being woken

    def concerns(self, old: Job | None, new: Job | None) -> bool:
        """At once for what users change; what the status says can wait a moment."""
        return old is None or new is None or generation_of(old) != generation_of(new)

    def _job_added(self, job: Job) -> None:
        manager = managed_by_another(job)
        if manager is not None:
            self.numbers.left_to(manager)

    def _job_updated(self, old: Job, new: Job) -> None:
        if conditions.is_finished(new):
            self._orphans.add(orphans_of(new))
        else:
            self.enqueue(new, BATCH_PERIOD)

    def _job_deleted(self, job: Job) -> None:
        self._forget(key_of(job))
        self._orphans.add(orphans_of(job))

    def _job_of(self, pod: Pod) -> Job | None:
        key = self.owner_key(pod)
        return self.own.get(key) if key else None

    def _pod_added(self, pod: Pod) -> None:
        if is_deleting(pod):
            self._pod_leaving(pod, gone=False)
            return
        if controller_of(pod) is None:
            self._orphan_pod(pod)
            return
        key = self.owner_key(pod)
        if key is not None:
            self.expectations.creation_observed(key)
            self.enqueue(key, BATCH_PERIOD)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if uid_of(old) != uid_of(new):
            self._pod_leaving(old, gone=True)
            self._pod_added(new)
            return
        if is_deleting(new):
            self._pod_leaving(new, gone=False)
            return
        for key in {self.owner_key(old), self.owner_key(new)}:
            if key is not None:
                if not has_tracking_finalizer(new):
                    self.releases.observed(key, uid_of(new))
                self.enqueue(key, BATCH_PERIOD)
        if controller_of(new) is None and (controller_of(old) is not None or labels_of(old) != labels_of(new)):
            self._orphan_pod(new)

    def _pod_deleted(self, pod: Pod) -> None:
        self._pod_leaving(pod, gone=True)

    def _pod_leaving(self, pod: Pod, *, gone: bool) -> None:
        key = self.owner_key(pod)
        job = self.own.get(key) if key else None
        if key is None or job is None or conditions.is_finished(job):
            if not gone and has_tracking_finalizer(pod):
                self._orphans.add(Orphan(*key_of(pod)))
            return
        self.expectations.deletion_observed(key, uid_of(pod))
        if gone or not has_tracking_finalizer(pod):
            self.releases.observed(key, uid_of(pod))
        self.enqueue(key, BATCH_PERIOD)

    def _orphan_pod(self, pod: Pod) -> None:
        if has_tracking_finalizer(pod):
            self._orphans.add(Orphan(*key_of(pod)))
        for job in self.selecting(pod):
            self.enqueue(job, BATCH_PERIOD)

    # -- working

    async def reconcile(self, key: Key) -> float | None:
        """Bring the Job a step further."""
        job = self.own.get(key)
        if job is None or conditions.is_finished(job):
            self._forget(key)
            return None
        if managed_by_another(job) is not None:
            return None
        if not self.written.ready(key):
            return CHECK_AGAIN
        if spec_of(job).completion_mode not in (None, "NonIndexed", "Indexed"):
            message = "Skipped Job sync because completion mode is unknown"
            self.recorder.event(job, WARNING, "UnknownCompletionMode", message)
            return None
        began, failed, sync = self.clock.monotonic(), True, None
        try:
            sync = await self._look(key, job)
            await self._sync(sync)
            failed = False
        except errors.Conflict:
            return BATCH_PERIOD  # the cache is behind, and will have caught up
        finally:
            action = sync.action if sync else "reconciling"
            self.numbers.synced(job, self.clock.monotonic() - began, action, failed=failed)
        return sync.again

    def _forget(self, key: Key) -> None:
        self._backoffs.pop(key, None)
        self.expectations.forget(key)
        self.releases.forget(key)
        self.written.forget(key)

    async def _look(self, key: Key, job: Job) -> _Sync:
        chosen = labels.from_label_selector(spec_of(job).selector)
        pods = await claim(
            self.client,
            job,
            [*self.pods.controlled_by(job), *self.pods.orphans(key.namespace)],
            lambda pod: chosen.matches(labels_of(pod)),
            finalizers=[TRACKING_FINALIZER],
        )
        status = msgspec.structs.replace(job.status or JobStatus())
        status.uncounted_terminated_pods = status.uncounted_terminated_pods or UncountedTerminatedPods()
        if status.start_time is None and not conditions.is_suspended(job):
            status.start_time = rfc3339(self.clock.now())
        job = msgspec.structs.replace(job, status=status)
        backoff = self._backoffs.get(key, BackoffRecord())
        found = survey(job, pods, released=self.releases.of(key), backoff=backoff)
        return _Sync(key, found, status, len(found.active), found.ready, len(found.terminating))

    async def _sync(self, sync: _Sync) -> None:
        found, now = sync.found, self.clock.now()
        job = found.job
        satisfied = self.expectations.satisfied(sync.key)
        before = sync.status
        ending = verdict(found, now)
        if ending is not None:
            deleted = await self._end_pods(sync)
            if not deleted or not satisfied:
                ending = None  # there may be pods that are not seen yet
        else:
            sync.again = seconds_to_deadline(job, now)
            managed = satisfied and not is_deleting(job)
            if managed:
                await self._manage(sync)
            if is_complete(found, sync.active):
                ending = conditions.new_condition(
                    conditions.SUCCESS_CRITERIA_MET,
                    "True",
                    "CompletionsReached",
                    "Reached expected number of succeeded pods",
                    now,
                )
            elif managed:
                self._tell_suspension(sync)
        sync.status = msgspec.structs.replace(
            sync.status, active=sync.active, ready=sync.ready, terminating=sync.terminating
        )
        changed = sync.status.conditions is not before.conditions
        changed = changed or (before.active or 0, before.ready, before.terminating) != (
            sync.active,
            sync.ready,
            sync.terminating,
        )
        await self._account(sync, ending, changed)
        if sync.failure is not None:
            raise sync.failure

    async def _end_pods(self, sync: _Sync) -> bool:
        """Delete all active pods; whether that worked. Their finalizers stay until they are accounted for."""
        job = sync.found.job
        deleted: list[Pod] = []

        async def one(pod: Pod) -> None:
            try:
                await self.control.delete(pod, job)
            except errors.NotFound:
                pass
            deleted.append(pod)

        results = await asyncio.gather(*map(one, sync.found.active), return_exceptions=True)
        sync.gone(deleted)
        sync.failure = first_failure(results)
        return sync.active == 0

    async def _manage(self, sync: _Sync) -> None:
        """Make and delete pods."""
        step = plan(sync.found, self.clock.now())
        if step.wait is not None:
            wait = max(step.wait, BATCH_PERIOD)
            sync.again = wait if sync.again is None else min(wait, sync.again)
        if step.delete:
            sync.action = "pods_deleted"
            await self._delete_pods(sync, step.delete)
        elif step.create:
            sync.action = "pods_created"
            await self._create_pods(sync, step.create)
        else:
            sync.action = "tracking"

    async def _delete_pods(self, sync: _Sync, pods: Sequence[Pod]) -> None:
        key, job = sync.key, sync.found.job
        deleted: list[Pod] = []
        self.expectations.expect_deletions(key, map(uid_of, pods))

        async def one(pod: Pod) -> None:
            try:
                await remove_finalizer(self.client, pod)
                await self.control.delete(pod, job)
            except errors.NotFound:
                self.expectations.deletion_observed(key, uid_of(pod))
            except Exception:
                self.expectations.deletion_observed(key, uid_of(pod))
                raise
            deleted.append(pod)

        results = await asyncio.gather(*map(one, pods), return_exceptions=True)
        sync.gone(deleted)
        sync.failure = first_failure(results)

    async def _create_pods(self, sync: _Sync, indexes: Sequence[int | None]) -> None:
        key, job = sync.key, sync.found.job
        self.expectations.expect_creations(key, len(indexes))
        owner = controller_reference(job)

        async def one(number: int) -> None:
            pod = pod_for(sync.found, indexes[number])
            assert pod.metadata is not None
            pod.metadata.namespace = key.namespace
            pod.metadata.owner_references = [owner]
            await self.control.create(pod, job)

        made, failure = await slow_start(len(indexes), one)
        # Those that failed and those that were not tried will never be seen.
        self.expectations.creation_observed(key, len(indexes) - made)
        sync.active += made
        if failure is not None and not is_namespace_terminating(failure):
            sync.failure = failure
        self.numbers.created(
            job,
            failures=sync.found.failed,
            terminating=sync.terminating,
            succeeded=made,
            failed=int(failure is not None),
        )

    def _tell_suspension(self, sync: _Sync) -> None:
        """Say whether the Job rests; when it wakes up, its deadline counts from then."""
        job, now = sync.found.job, self.clock.now()
        rests = conditions.is_suspended(job)
        words = ("JobSuspended", "Job suspended") if rests else ("JobResumed", "Job resumed")
        condition = conditions.new_condition(conditions.SUSPENDED, "True" if rests else "False", *words, now)
        told = conditions.with_condition(sync.status.conditions, condition)
        if told is None:
            return
        start = None if rests else rfc3339(now)
        sync.status = msgspec.structs.replace(sync.status, conditions=told, start_time=start)
        self.recorder.event(job, NORMAL, "Suspended" if rests else "Resumed", words[1])

    async def _account(self, sync: _Sync, ending: JobCondition | None, changed: bool) -> None:
        """The steps of `accounting`: list, release, count, conclude."""
        found, key = sync.found, sync.key
        before = found.job.status or JobStatus()
        with_finalizer = {uid_of(pod) for pod in found.pods if found.tracked(pod)}
        status, counted = accounting.settle(sync.status, with_finalizer)
        entry = accounting.enter(found, status, ending)
        status, announced = accounting.announce(entry.status, ending)
        job = found.job
        if changed or counted or entry.changed or announced:
            job = await self._write(key, job, status)
            self.numbers.counted(job, before, status)
            self._backoffs[key] = found.backoff
            before = status = job.status or JobStatus()
        self.numbers.handled(entry.actions)
        released, failure = await self.releases.release(key, entry.release) if entry.release else (set(), None)
        status, counted = accounting.settle(status, with_finalizer - released)
        concluded = None
        if failure is None and not entry.full:
            concluded = accounting.conclude(status, ending, sync.terminating, self.clock.now())
        if concluded is not None:
            status = concluded[0]
        if counted or concluded is not None:
            job = await self._write(key, job, status)
            self.numbers.counted(job, before, status)
        if concluded is not None:
            self._tell_end(job, concluded[1])
        if failure is not None:
            raise failure

    async def _write(self, key: Key, job: Job, status: JobStatus) -> Job:
        written = await self.client.update_status(msgspec.structs.replace(job, status=status))
        self.written.wrote(key, self.own, written)
        return written

    def _tell_end(self, job: Job, condition: JobCondition) -> None:
        self.numbers.finished(job, condition)
        if condition.type != conditions.COMPLETE:
            self.recorder.event(job, WARNING, condition.reason or "", condition.message or "")
            return
        completions = spec_of(job).completions
        if completions is not None and job.status is not None and (job.status.succeeded or 0) > completions:
            message = "Too many succeeded pods running after completion count reached"
            self.recorder.event(job, WARNING, "TooManySucceededPods", message)
        self.recorder.event(job, NORMAL, "Completed", "Job completed")
