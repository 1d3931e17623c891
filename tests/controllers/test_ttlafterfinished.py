"""Finished Jobs go away when their time has come, and not before."""

from __future__ import annotations

import pytest

from pybernetes.api.batch.v1 import Job, JobCondition, JobSpec, JobStatus
from pybernetes.api.core.v1 import Container, PodSpec, PodTemplateSpec
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.times import rfc3339
from pybernetes.controllers.ttlafterfinished import expires_at

NOW = 1_700_000_000.0


def job(name: str, namespace: str, ttl: int | None) -> Job:
    spec = PodSpec(restart_policy="Never", containers=[Container(name="main", image="busybox")])
    return Job(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=JobSpec(ttl_seconds_after_finished=ttl, template=PodTemplateSpec(spec=spec)),
    )


def finished(kind: str, at: float, status: str = "True") -> JobStatus:
    return JobStatus(conditions=[JobCondition(type=kind, status=status, last_transition_time=rfc3339(at))])


@pytest.mark.parametrize(
    ("ttl", "status", "expected"),
    [
        (10, finished("Complete", NOW), NOW + 10),
        (0, finished("Failed", NOW), NOW),
        (10, finished("Complete", NOW, "False"), None),
        (10, finished("Suspended", NOW), None),
        (10, None, None),
        (None, finished("Complete", NOW), None),
    ],
)
def test_a_job_expires_when_it_has_finished_and_has_a_ttl(
    ttl: int | None, status: JobStatus | None, expected: float | None
) -> None:
    one = job("a", "b", ttl)
    one.status = status
    assert expires_at(one) == expected


def test_a_job_that_is_being_deleted_does_not_expire_again() -> None:
    one = job("a", "b", 0)
    one.status = finished("Complete", NOW)
    one.metadata.deletion_timestamp = rfc3339(NOW)
    assert expires_at(one) is None


async def test_a_finished_job_is_deleted_after_its_ttl_and_a_running_one_stays(harness) -> None:
    async with harness("ttl-after-finished-controller", kubelet=False) as h:
        for name in ("done", "running"):
            await h.client.create(job(name, h.namespace, 3600))
        done = await h.get(Job, "done")
        now = rfc3339(h.clock.now())
        conditions = [
            JobCondition(type=kind, status="True", last_transition_time=now, last_probe_time=now)
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        done.status = JobStatus(succeeded=1, start_time=now, completion_time=now, conditions=conditions)
        await h.client.update_status(done)
        queue = h.controller("ttl-after-finished-controller").queue
        await h.until(lambda: queue.delayed == 1, "the Job waits for its end")
        assert await h.get(Job, "done")
        h.clock.advance(3601)

        async def gone() -> bool:
            found = await h.get(Job, "done")
            return found is None or found.metadata.deletion_timestamp is not None

        await h.until(gone, "the Job is deleted")
        assert (await h.get(Job, "running")).metadata.deletion_timestamp is None
