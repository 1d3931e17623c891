"""Makes Jobs on a schedule.

Woken by: its CronJob, Jobs that it controls, and the schedule. Writes: Jobs, its own status.
A Job is named by the minute it is due, so that a controller that dies between making it and writing that down cannot
make it twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from pybernetes.api import errors
from pybernetes.api.batch.cron import CronError
from pybernetes.api.batch.v1 import CronJob, CronJobSpec, CronJobStatus, Job
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.keys import Key, is_controlled_by, uid_of

from ..base import Controller, owns
from ..common.meta import created, name_of
from ..common.pod_control import is_namespace_terminating
from ..job.conditions import is_finished
from . import planning
from .schedule import local_zone, schedule_of, seconds_to_next

_SKEW_BUCKETS = tuple(float(2**power) for power in range(10))


class CronJobController(Controller[CronJob]):
    """Starts Jobs when they are due."""

    name = "cronjob-controller"
    kind = CronJob
    watches = (owns(Job),)

    def setup(self) -> None:
        """Know the Jobs."""
        self.workers = self.options.concurrent_cron_job_syncs
        self.jobs = self.informer(Job)
        self._zone = local_zone()
        self._skew = self.context.metrics.histogram(
            "cronjob_controller_job_creation_skew_duration_seconds",
            "How much later than due a Job was made.",
            _SKEW_BUCKETS,
        )

    async def reconcile(self, key: Key) -> float | None:
        """Write down what has ended, drop what is too old, start what is due."""
        cron_job = self.own.get(key)
        if cron_job is None:
            return None
        jobs = self.jobs.controlled_by(cron_job)
        before = cron_job.status or CronJobStatus()
        cron_job = msgspec.structs.replace(cron_job, status=msgspec.structs.replace(before))
        try:
            await self._drop(cron_job, planning.superfluous(cron_job, jobs))
            cron_job = await self._see(cron_job, jobs)
            again = await self._start(cron_job)
        finally:
            # What was done before a failure has been done.
            if cron_job.status != before:
                await self.client.update_status(cron_job)
        return again

    async def _drop(self, cron_job: CronJob, jobs: Sequence[Job]) -> None:
        for job in jobs:
            await self._delete(cron_job, job)

    async def _delete(self, cron_job: CronJob, job: Job) -> bool:
        """Delete a Job with its pods and take it off the list; whether that worked."""
        assert job.metadata is not None
        assert cron_job.status is not None
        try:
            await self.client.delete(
                Job, name_of(job), job.metadata.namespace or "", propagation_policy="Background", uid=uid_of(job)
            )
        except (errors.APIError, OSError, TimeoutError) as error:
            self.recorder.event(cron_job, WARNING, "FailedDelete", f"Deleted job: {error}")
            return False
        cron_job.status.active = planning.without(cron_job.status.active, uid_of(job))
        self.recorder.event(cron_job, NORMAL, "SuccessfulDelete", f"Deleted job {name_of(job)}")
        return True

    async def _see(self, cron_job: CronJob, jobs: Sequence[Job]) -> CronJob:
        """Bring the list of running Jobs up to date."""
        status = cron_job.status or CronJobStatus()
        listed = {each.uid for each in status.active or ()}
        for job in jobs:
            if uid_of(job) in listed or is_finished(job):
                continue
            # The cache of CronJobs may be behind that of Jobs.
            fresh = await self.client.get(CronJob, name_of(cron_job), _namespace(cron_job))
            fresh_status = fresh.status or CronJobStatus()
            if any(each.uid == uid_of(job) for each in fresh_status.active or ()):
                cron_job, status = fresh, fresh_status
                listed = {each.uid for each in status.active or ()}
                continue
            message = f"Saw a job that the controller did not create or forgot: {name_of(job)}"
            self.recorder.event(cron_job, WARNING, "UnexpectedJob", message)
        new, events = planning.see_ended(status, jobs)
        for event in events:
            self.recorder.event(cron_job, *event)
        known = {uid_of(job) for job in jobs}
        for reference in new.active or ():
            if reference.uid in known:
                continue
            # The cache may be behind: only the server knows whether the Job is really gone.
            try:
                await self.client.get(Job, reference.name or "", reference.namespace or "")
            except errors.NotFound:
                self.recorder.event(cron_job, NORMAL, "MissingJob", f"Active job went missing: {reference.name}")
                new.active = planning.without(new.active, reference.uid or "")
        return msgspec.structs.replace(cron_job, status=new)

    async def _start(self, cron_job: CronJob) -> float | None:
        """Start the Job that is due, if one is; seconds until the next."""
        now = datetime.fromtimestamp(self.clock.now(), self._zone)
        decision = planning.decide(cron_job, now)
        for event in decision.events:
            self.recorder.event(cron_job, *event)
        if decision.start is None:
            return decision.again
        status = cron_job.status
        assert status is not None
        if cron_job.spec is not None and cron_job.spec.concurrency_policy == "Replace":
            await self._replace(cron_job)
        job = await self._create(cron_job, decision.start)
        if job is None:
            return decision.again
        status.active = [*(status.active or ()), planning.reference_to(job)]
        status.last_schedule_time = planning.written(decision.start)
        return seconds_to_next(cron_job, schedule_of(cron_job), now)

    async def _replace(self, cron_job: CronJob) -> None:
        for reference in (cron_job.status.active if cron_job.status else None) or ():
            try:
                job = await self.client.get(Job, reference.name or "", reference.namespace or "")
            except errors.APIError as error:
                self.recorder.event(cron_job, WARNING, "FailedGet", f"Get job: {error}")
                raise
            if not await self._delete(cron_job, job):
                raise errors.APIError(f"could not replace job {reference.namespace}/{reference.name}")

    async def _create(self, cron_job: CronJob, time: datetime) -> Job | None:
        """Make the Job of a time; None if it is not ours or already listed."""
        wanted = planning.job_for(cron_job, time)
        try:
            job = await self.client.create(wanted)
        except errors.AlreadyExists:
            # Made before, and perhaps not written down.
            job = await self.client.get(Job, name_of(wanted), _namespace(cron_job))
            listed = any(each.uid == uid_of(job) for each in (cron_job.status and cron_job.status.active) or ())
            return None if listed or not is_controlled_by(job, cron_job) else job
        except (errors.APIError, OSError, TimeoutError) as error:
            if not is_namespace_terminating(error):
                self.recorder.event(cron_job, WARNING, "FailedCreate", f"Error creating job: {error}")
            raise
        self._skew.observe(created(job) - time.timestamp())
        self.recorder.event(cron_job, NORMAL, "SuccessfulCreate", f"Created job {name_of(job)}")
        return job

    # -- being woken

    def concerns(self, old: CronJob | None, new: CronJob | None) -> bool:
        """A new schedule is looked at when it is due, everything else now."""
        if old is None or new is None:
            return True
        before, after = old.spec or CronJobSpec(), new.spec or CronJobSpec()
        if (before.schedule, before.time_zone) == (after.schedule, after.time_zone):
            return True
        try:
            times = schedule_of(new)
        except CronError:
            message = f"unparseable schedule for cronjob: {after.schedule}"
            self.recorder.event(new, WARNING, "UnParseableCronJobSchedule", message)
            return False
        again = seconds_to_next(new, times, datetime.fromtimestamp(self.clock.now(), self._zone))
        if again is not None:
            self.enqueue(new, again)
        return again is None


def _namespace(cron_job: CronJob) -> str:
    return (cron_job.metadata.namespace if cron_job.metadata else None) or ""
