"""CronJobs on a real API server; time jumps."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.batch.v1 import CronJob, Job
from pybernetes.api.times import parse_time

NAME = "cronjob-controller"


def cron_job(h: Any, schedule: str = "*/10 * * * *", **spec: Any) -> CronJob:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    whole = {
        "metadata": {"name": "tick", "namespace": h.namespace},
        "spec": {
            "schedule": schedule,
            "jobTemplate": {"metadata": {"labels": {"made": "so"}}, "spec": {"template": template}},
            **spec,
        },
    }
    return msgspec.convert(whole, CronJob)


async def seen(h: Any) -> None:
    await h.until(lambda: h.cached(CronJob), "it is seen")
    await h.settled()


async def current(h: Any) -> CronJob:
    found = await h.get(CronJob, "tick")
    assert found is not None
    return found


async def jobs(h: Any, number: int) -> list[Job]:
    return await h.until(lambda: found if len(found := h.live(Job)) == number else None, f"{number} Jobs")


async def recorded(h: Any, number: int) -> CronJob:
    async def holds() -> CronJob | None:
        found = await current(h)
        return found if len(found.status.active or ()) == number else None

    return await h.until(holds, f"{number} Jobs in the status")


async def finish(h: Any, job: Job, good: bool = True) -> None:
    fresh = await h.get(Job, job.metadata.name)
    now = fresh.metadata.creation_timestamp
    kinds = ("SuccessCriteriaMet", "Complete") if good else ("FailureTarget", "Failed")
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now} for kind in kinds]
    status = {"startTime": now, "conditions": conditions, **({"completionTime": now, "succeeded": 1} if good else {})}
    await h.client.patch(Job, job.metadata.name, {"status": status}, h.namespace, subresource="status")


async def test_a_job_is_made_when_it_is_due_and_written_down(harness) -> None:
    async with harness(NAME, kubelet=False) as h:
        await h.client.create(cron_job(h))
        await seen(h)
        assert h.live(Job) == []
        h.clock.advance(600)
        (job,) = await jobs(h, 1)
        cron = await recorded(h, 1)
        (active,) = cron.status.active
        assert (active.kind, active.name, active.uid) == ("Job", job.metadata.name, job.metadata.uid)
        due = parse_time(cron.status.last_schedule_time)
        assert due % 600 == 0
        assert job.metadata.name == f"tick-{int(due) // 60}"
        assert job.metadata.labels == {"made": "so"}
        assert "batch.kubernetes.io/cronjob-scheduled-timestamp" in job.metadata.annotations
        assert job.metadata.owner_references[0].kind == "CronJob"
        (event,) = await h.events("SuccessfulCreate")
        assert event.message == f"Created job {job.metadata.name}"
        h.clock.advance(600)
        await jobs(h, 2)
        await recorded(h, 2)


async def test_forbid_waits_for_the_job_before(harness) -> None:
    async with harness(NAME, kubelet=False) as h:
        await h.client.create(cron_job(h, concurrencyPolicy="Forbid"))
        await seen(h)
        h.clock.advance(600)
        (job,) = await jobs(h, 1)
        await recorded(h, 1)
        h.clock.advance(600)
        await h.until(lambda: h.events("JobAlreadyActive"), "the event is there")
        assert len(h.live(Job)) == 1
        await finish(h, job)
        await jobs(h, 2)  # the time that was missed is made up for

        async def succeeded() -> bool:
            return (await current(h)).status.last_successful_time is not None

        await h.until(succeeded, "the success is written down")
        assert await h.events("SawCompletedJob")


async def test_replace_ends_the_job_before(harness) -> None:
    async with harness(NAME, kubelet=False) as h:
        await h.client.create(cron_job(h, concurrencyPolicy="Replace"))
        await seen(h)
        h.clock.advance(600)
        (first,) = await jobs(h, 1)
        await recorded(h, 1)
        h.clock.advance(600)
        await h.until(lambda: [each for each in h.live(Job) if each.metadata.uid != first.metadata.uid], "another Job")
        await jobs(h, 1)

        async def replaced() -> bool:
            (active,) = (await current(h)).status.active or (None,)
            return active is not None and active.uid != first.metadata.uid

        await h.until(replaced, "the new one is written down")


async def test_suspended_ones_make_nothing(harness) -> None:
    async with harness(NAME, kubelet=False) as h:
        await h.client.create(cron_job(h, suspend=True))
        await seen(h)
        h.clock.advance(6000)
        await h.settled()
        assert h.live(Job) == []
        await h.client.patch(CronJob, "tick", {"spec": {"suspend": False}}, h.namespace)
        await jobs(h, 1)


async def test_history_is_cut(harness) -> None:
    async with harness(NAME, kubelet=False) as h:
        await h.client.create(cron_job(h, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0))
        await seen(h)
        names = set()
        for good in (True, True, False):
            h.clock.advance(600)
            new = await h.until(
                lambda: [each for each in h.live(Job) if each.metadata.name not in names], "another Job"
            )
            names.add(new[0].metadata.name)
            await recorded(h, 1)
            await finish(h, new[0], good)
            await recorded(h, 0)
        (left,) = await jobs(h, 1)
        assert left.metadata.name == sorted(names)[1]


async def test_a_job_made_but_not_written_down_is_not_made_again(harness) -> None:
    async with harness(NAME, kubelet=False) as h:
        await h.client.create(cron_job(h))
        await seen(h)
        h.clock.advance(600)
        (job,) = await jobs(h, 1)
        cron = await recorded(h, 1)
        cron.status = None
        await h.client.update_status(cron)
        cron = await recorded(h, 1)
        assert [each.metadata.uid for each in h.live(Job)] == [job.metadata.uid]
        assert cron.status.active[0].uid == job.metadata.uid
