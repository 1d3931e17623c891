"""Jobs on a real API server; pods end as their annotations tell the fake kubelet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pybernetes.api.batch.v1 import Job
from pybernetes.api.core.v1 import Pod
from pybernetes.client.keys import Key

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
EXIT_CODE = "fake-kubelet/exit-code"
NAME = "job-controller"


def job(h: Any, name: str = "work", exit_code: int | None = None, annotations: Any = None, **spec: Any) -> Job:
    template = {
        "metadata": {
            "annotations": {**({EXIT_CODE: str(exit_code)} if exit_code is not None else {}), **(annotations or {})}
        },
        "spec": {"restartPolicy": "Never", "nodeName": "node", "containers": [{"name": "main", "image": "busybox"}]},
    }
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": h.namespace}, "spec": {"template": template, **spec}}, Job
    )


async def until(h: Any, condition: Callable[[Job], Any], what: str, name: str = "work") -> Job:
    async def holds() -> Job | None:
        found = await h.get(Job, name)
        return found if found is not None and condition(found) else None

    return await h.until(holds, what)


def told(found: Job) -> list[tuple[str, str]]:
    return [(each.type, each.reason) for each in found.status.conditions or () if each.status == "True"]


def is_over(found: Job) -> bool:
    return any(kind in ("Complete", "Failed") for kind, _ in told(found))


def active(number: int) -> Callable[[Job], bool]:
    return lambda found: (found.status.active or 0) == number


async def finish(h: Any, pod: Pod, code: int = 0) -> None:
    patch = {"metadata": {"annotations": {EXIT_CODE: str(code)}}}
    await h.client.patch(Pod, pod.metadata.name, patch, h.namespace)


async def test_as_many_pods_succeed_as_asked_for_and_each_counts_once(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, exit_code=0, completions=7, parallelism=3))
        done = await until(h, is_over, "the Job is over")
        assert told(done) == [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
        status = done.status
        assert (status.succeeded, status.active, status.failed, status.ready, status.terminating) == (
            7,
            None,
            None,
            0,
            0,
        )
        assert status.start_time <= status.completion_time
        assert status.uncounted_terminated_pods is not None
        assert not status.uncounted_terminated_pods.succeeded
        pods = await h.list(Pod)
        assert len(pods) == 7
        assert not any(pod.metadata.finalizers for pod in pods)
        assert all(pod.metadata.name.startswith("work-") for pod in pods)
        (owner,) = pods[0].metadata.owner_references
        assert (owner.api_version, owner.kind, owner.uid) == ("batch/v1", "Job", done.metadata.uid)
        (event,) = await h.until(lambda: h.events("Completed"), "the event of its end is there")
        assert event.message == "Job completed"
        assert await h.events("SuccessfulCreate")


async def test_without_completions_one_success_is_enough(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, parallelism=2))
        await until(h, lambda found: found.status.ready == 2, "two pods are ready")
        first, second = await h.list(Pod)
        await finish(h, first)
        await until(h, lambda found: found.status.succeeded == 1 and found.status.active == 1, "the other goes on")
        await finish(h, second, 1)
        done = await until(h, is_over, "the Job is over")
        assert told(done)[-1][0] == "Complete"
        assert (done.status.succeeded, done.status.failed) == (1, 1)


async def test_indexed_pods_know_their_index(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, exit_code=0, completionMode="Indexed", completions=5, parallelism=2))
        done = await until(h, is_over, "the Job is over")
        assert (done.status.completed_indexes, done.status.succeeded) == ("0-4", 5)
        pods = await h.list(Pod)
        assert [pod.metadata.annotations[INDEX] for pod in pods] == list("01234")
        assert [pod.metadata.labels[INDEX] for pod in pods] == list("01234")
        assert [pod.spec.hostname for pod in pods] == [f"work-{index}" for index in range(5)]
        assert all(pod.metadata.name.startswith(f"work-{index}-") for index, pod in enumerate(pods))
        assert pods[0].spec.containers[0].env[0].name == "JOB_COMPLETION_INDEX"


async def test_failed_pods_are_replaced_later_and_later_until_the_limit(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, exit_code=1, backoffLimit=2))
        await until(h, lambda found: found.status.failed == 1, "one failure")
        assert len(await h.list(Pod)) == 1
        h.clock.advance(11)
        await until(h, lambda found: found.status.failed == 2, "another one after 10 s")
        h.clock.advance(11)
        await h.settled()
        assert len(await h.list(Pod)) == 2
        h.clock.advance(10)
        done = await until(h, is_over, "the third ends it")
        reason = "BackoffLimitExceeded"
        assert told(done) == [("FailureTarget", reason), ("Failed", reason)]
        assert done.status.failed == 3
        assert done.status.completion_time is None
        (event,) = await h.until(lambda: h.events(reason), "the event of its end is there")
        assert (event.type, event.message) == ("Warning", "Job has reached the specified backoff limit")


async def test_deadline_ends_the_job_and_its_pods(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, parallelism=2, activeDeadlineSeconds=600))
        await until(h, lambda found: found.status.ready == 2, "two pods are ready")
        h.clock.advance(601)
        done = await until(h, is_over, "the Job is over")
        assert told(done) == [("FailureTarget", "DeadlineExceeded"), ("Failed", "DeadlineExceeded")]
        assert (done.status.failed, done.status.active) == (2, None)
        await h.until(lambda: not h.cached(Pod), "its pods are gone")


async def test_no_verdict_while_pods_may_have_been_made_that_are_not_seen(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, activeDeadlineSeconds=100))
        await until(h, lambda found: found.status.ready == 1, "a pod")
        controller, key = h.controller(NAME), Key(h.namespace, "work")
        controller.expectations.expect_creations(key, 1)
        h.clock.advance(101)
        await until(h, lambda found: not found.status.active, "the pods that are seen are deleted")
        assert told(await h.get(Job, "work")) == []
        controller.expectations.creation_observed(key)
        controller.enqueue(key)
        done = await until(h, is_over, "the Job is over")
        assert told(done)[0] == ("FailureTarget", "DeadlineExceeded")


async def test_last_condition_waits_until_the_last_pod_has_ended(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, annotations={"fake-kubelet/stuck": "true"}, activeDeadlineSeconds=600))
        await until(h, lambda found: found.status.ready == 1, "the pod is ready")
        h.clock.advance(601)
        ending = await until(h, lambda found: found.status.terminating == 1, "the pod is on its way out")
        assert told(ending) == [("FailureTarget", "DeadlineExceeded")]
        (pod,) = h.cached(Pod)
        await h.until(lambda: h.cached(Pod)[0].metadata.finalizers is None, "it is counted, and nothing holds it")
        await h.client.patch(
            Pod, pod.metadata.name, {"metadata": {"annotations": {"fake-kubelet/stuck": None}}}, h.namespace
        )
        done = await until(h, is_over, "the Job is over")
        assert done.status.terminating == 0


async def test_suspended_jobs_rest_and_wake_up(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, parallelism=2, suspend=True, activeDeadlineSeconds=600))
        asleep = await until(h, told, "it says that it rests")
        assert told(asleep) == [("Suspended", "JobSuspended")]
        assert asleep.status.start_time is None
        assert await h.list(Pod) == []
        h.clock.advance(700)
        await h.client.patch(Job, "work", {"spec": {"suspend": False}}, h.namespace)
        awake = await until(h, active(2), "two pods run")
        assert told(awake) == []
        assert awake.status.start_time is not None
        await h.client.patch(Job, "work", {"spec": {"suspend": True}}, h.namespace)
        await until(h, lambda found: told(found) and not found.status.active, "it rests again")
        await h.until(lambda: not h.live(Pod), "its pods are gone")
        assert {"Suspended", "Resumed"} <= {event.reason for event in await h.events()}


async def test_parallelism_follows_the_spec(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, parallelism=3, completions=10))
        await until(h, active(3), "three pods")
        await h.client.patch(Job, "work", {"spec": {"parallelism": 1}}, h.namespace)
        await until(h, active(1), "one pod")
        await h.until(lambda: len(h.live(Pod)) == 1, "the others are deleted")
        await h.client.patch(Job, "work", {"spec": {"parallelism": 4}}, h.namespace)
        found = await until(h, active(4), "four pods")
        assert found.status.failed is None


async def test_deleted_pods_are_replaced_and_count_as_failed(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h))
        await until(h, lambda found: found.status.ready == 1, "a pod")
        (pod,) = h.live(Pod)
        await h.client.delete(Pod, pod.metadata.name, h.namespace)
        await until(h, lambda found: found.status.failed == 1, "its deletion is counted")
        h.clock.advance(11)
        await h.until(lambda: h.live(Pod), "there is another one")
        await until(h, active(1), "it is active")


async def test_replacement_can_wait_for_the_end_of_the_old_pod(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(
            job(h, podReplacementPolicy="Failed", annotations={"fake-kubelet/stuck": "true"}, backoffLimit=9)
        )
        await until(h, lambda found: found.status.ready == 1, "a pod")
        (pod,) = h.live(Pod)
        await h.client.delete(Pod, pod.metadata.name, h.namespace)
        found = await until(h, lambda found: found.status.terminating == 1, "it is on its way out")
        h.clock.advance(60)
        await h.settled()
        assert (found.status.failed, len(h.cached(Pod))) == (None, 1)


async def test_pod_failure_policy_ends_or_ignores(harness) -> None:
    async with harness(NAME) as h:
        rules = [
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
            {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
        ]
        await h.client.create(job(h, podFailurePolicy={"rules": rules}, backoffLimit=0))
        await until(h, lambda found: found.status.ready == 1, "a pod")
        (first,) = h.live(Pod)
        await finish(h, first, 7)
        await until(h, lambda found: not found.status.active, "the failure is seen")
        h.clock.advance(11)
        await until(h, lambda found: found.status.ready == 1, "it did not count")
        second = next(pod for pod in h.live(Pod) if pod.status.phase == "Running")
        await finish(h, second, 42)
        done = await until(h, is_over, "the Job is over")
        assert told(done) == [("FailureTarget", "PodFailurePolicy"), ("Failed", "PodFailurePolicy")]
        assert done.status.conditions[-1].message == (
            f"Container main for pod {h.namespace}/{second.metadata.name} "
            "failed with exit code 42 matching FailJob rule at index 0"
        )


async def test_each_index_has_a_limit_of_its_own(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1))
        await until(h, lambda found: found.status.ready == 2, "two pods")
        bad, good = h.live(Pod)
        await finish(h, good)
        await finish(h, bad, 1)
        await until(h, lambda found: found.status.completed_indexes == "1" and not found.status.active, "both ended")
        h.clock.advance(11)
        await until(h, active(1), "the failed index is tried again")
        again = next(pod for pod in h.live(Pod) if pod.status.phase in ("Pending", "Running"))
        assert again.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] == "1"
        await finish(h, again, 1)
        done = await until(h, is_over, "the Job is over")
        assert told(done)[-1] == ("Failed", "FailedIndexes")
        status = done.status
        assert (status.completed_indexes, status.failed_indexes, status.failed, status.succeeded) == ("1", "0", 2, 1)


async def test_success_policy_ends_the_job_early(harness) -> None:
    async with harness(NAME) as h:
        policy = {"rules": [{"succeededIndexes": "1"}]}
        await h.client.create(job(h, completionMode="Indexed", completions=3, parallelism=3, successPolicy=policy))
        await until(h, lambda found: found.status.ready == 3, "three pods")
        await finish(h, h.live(Pod)[1])
        done = await until(h, is_over, "the Job is over")
        assert told(done) == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]
        assert (done.status.completed_indexes, done.status.failed) == ("1", None)
        await h.until(lambda: len(h.cached(Pod)) == 1, "the others are gone")


async def test_jobs_of_other_controllers_are_left_alone(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, name="theirs", managedBy="example.com/other"))
        await h.client.create(job(h, exit_code=0))
        await until(h, is_over, "ours is over")
        theirs = await h.get(Job, "theirs")
        assert theirs.status.start_time is None


async def test_matching_orphans_are_adopted_and_others_lose_their_finalizer(harness) -> None:
    async with harness(NAME) as h:
        labels = {"app": "manual"}
        own = job(h, manualSelector=True, selector={"matchLabels": labels})
        own.spec.template.metadata.labels = labels
        for name, theirs in (("stranger", {}), ("lost", labels)):
            pod = Pod(metadata=type(own.metadata)(name=name, namespace=h.namespace), spec=own.spec.template.spec)
            pod.metadata.labels = dict(theirs)
            pod.metadata.finalizers = [TRACKING] if name == "stranger" else None
            await h.client.create(pod)
        await h.caught_up()
        await h.client.create(own)

        async def adopted() -> bool:
            pod = await h.get(Pod, "lost")
            return bool(pod.metadata.owner_references) and pod.metadata.finalizers == [TRACKING]

        await h.until(adopted, "the pod that matches is adopted")

        async def free() -> bool:
            return (await h.get(Pod, "stranger")).metadata.finalizers is None

        await h.until(free, "the one that does not is freed")
        await until(h, active(1), "no pod was made")
        assert len(await h.list(Pod)) == 2


async def test_pods_of_a_deleted_job_can_go(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, parallelism=2))
        await until(h, active(2), "two pods")
        await h.client.delete(Job, "work", h.namespace, propagation_policy="Background")

        async def free() -> bool:
            return not any(pod.metadata.finalizers for pod in await h.list(Pod))

        await h.until(free, "no finalizer holds them")


async def test_a_controller_that_starts_anew_counts_nothing_twice(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(job(h, exit_code=0, completions=40, parallelism=8))
        await until(h, lambda found: (found.status.succeeded or 0) > 4, "some have succeeded")
        namespace = h.namespace
    async with harness(NAME) as h:
        h.namespace = namespace
        done = await until(h, is_over, "the Job is over")
        assert done.status.succeeded == 40
        assert len(await h.list(Pod)) == 40
