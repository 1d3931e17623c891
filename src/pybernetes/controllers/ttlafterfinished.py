"""Deletes finished Jobs when their `ttlSecondsAfterFinished` has passed.

Woken by: Jobs. Writes: deletes Jobs, and what belongs to them with them.
The cache may be old, and the user may have given the Job more time: before it is deleted it is read again.
"""

from __future__ import annotations

from pybernetes.api import errors
from pybernetes.api.batch.v1 import Job
from pybernetes.api.times import parse_time
from pybernetes.client.keys import Key

from .base import Controller


class TTLAfterFinishedController(Controller[Job]):
    """Makes finished Jobs go away."""

    name = "ttl-after-finished-controller"
    kind = Job

    def setup(self) -> None:
        """Count what is deleted late."""
        self.workers = self.options.concurrent_ttl_after_finished_syncs
        self._late = self.context.metrics.histogram(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "The time it took to delete the job since it became eligible for deletion",
            tuple(0.1 * 2**power for power in range(14)),
        )

    def queue_name(self) -> str:
        """Upstream's name of the queue."""
        return "ttl_jobs_to_delete"

    def concerns(self, old: Job | None, new: Job | None) -> bool:
        """Only Jobs that will go."""
        return new is not None and expires_at(new) is not None

    async def reconcile(self, key: Key) -> float | None:
        """Delete the Job, or say when."""
        job = self.own.get(key)
        expiry = expires_at(job) if job else None
        if expiry is None:
            return None
        if expiry > self.clock.now():
            return expiry - self.clock.now()
        try:
            fresh = await self.client.get(Job, key.name, key.namespace)
        except errors.NotFound:
            return None
        expiry = expires_at(fresh)
        if expiry is None:
            return None
        if expiry > self.clock.now():
            return expiry - self.clock.now()
        assert fresh.metadata is not None
        self.log.info("Cleaning up Job %s", key)
        try:
            await self.client.delete(
                Job, key.name, key.namespace, propagation_policy="Foreground", uid=fresh.metadata.uid
            )
        except errors.NotFound:
            return None
        self._late.observe(self.clock.now() - expiry)
        return None


def expires_at(job: Job) -> float | None:
    """When a Job is to be deleted; None if it has not finished, shall stay, or is already going."""
    ttl = job.spec.ttl_seconds_after_finished if job.spec else None
    if ttl is None or job.metadata is None or job.metadata.deletion_timestamp is not None:
        return None
    for condition in (job.status.conditions if job.status else None) or ():
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            if condition.last_transition_time is None:
                raise ValueError(f"the Job's condition {condition.type} has no lastTransitionTime")
            return parse_time(condition.last_transition_time) + ttl
    return None
