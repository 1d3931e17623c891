"""HorizontalPodAutoscalers on a real API server; metrics come from the test."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.apps.v1 import ReplicaSet
from pybernetes.api.autoscaling.v2 import HorizontalPodAutoscaler
from pybernetes.api.core.v1 import Pod
from pybernetes.controllers.horizontalpodautoscaler.replicas import PodMetric

NAME = "horizontal-pod-autoscaler-controller"
LABELS = {"app": "web"}


def replica_set(h: Any, replicas: int, name: str = "web") -> ReplicaSet:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    return msgspec.convert({"metadata": {"name": name, "namespace": h.namespace}, "spec": spec}, ReplicaSet)


def autoscaler(h: Any, target: str = "web", name: str = "auto", **spec: Any) -> HorizontalPodAutoscaler:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": target}
    whole = {
        "metadata": {"name": name, "namespace": h.namespace},
        "spec": {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 10, **spec},
    }
    return msgspec.convert(whole, HorizontalPodAutoscaler)


class Metrics:
    """Every pod uses the same."""

    def __init__(self, h: Any, used: int) -> None:
        self.h, self.used = h, used
        h.controller(NAME).evaluator._metrics = self

    async def resource(self, resource: str, namespace: str, selector: Any, container: str) -> dict[str, PodMetric]:
        now = self.h.clock.now()
        return {pod.metadata.name: PodMetric(self.used, now, 1) for pod in self.h.live(Pod, namespace=namespace)}


async def look(h: Any) -> None:
    """Let the next period pass; pods have been there for long."""
    h.clock.advance(600)


async def conditions(h: Any) -> dict[str, tuple[str, str]]:
    found = await h.get(HorizontalPodAutoscaler, "auto")
    return {each.type: (each.status, each.reason) for each in found.status.conditions or ()}


async def test_replicas_follow_the_utilization_up_and_down(harness) -> None:
    async with harness(NAME, "replicaset-controller") as h:
        metrics = Metrics(h, 900)
        await h.client.create(replica_set(h, 2))
        await h.until(lambda: [pod.status.phase for pod in h.live(Pod)] == ["Running"] * 2, "two pods")
        await h.client.create(autoscaler(h))
        await h.until(lambda: h.cached(HorizontalPodAutoscaler), "it is seen")
        h.clock.advance(400)  # the pods' start is over
        await h.until(lambda: len(h.live(Pod)) == 3, "90 % of 80 %: three pods")
        found = await h.until(lambda: _scaled(h), "it is written down")
        assert (found.status.current_replicas, found.status.desired_replicas) == (2, 3)
        (told,) = found.status.current_metrics
        assert (told.resource.name, told.resource.current.average_utilization) == ("cpu", 90)
        assert told.resource.current.average_value == "900m"
        said = await conditions(h)
        assert said["AbleToScale"] == ("True", "SucceededRescale")
        assert said["ScalingActive"] == ("True", "ValidMetricFound")
        (event,) = await h.events("SuccessfulRescale")
        assert event.message == "New size: 3; reason: cpu resource utilization (percentage of request) above target"
        metrics.used = 100
        h.clock.advance(16)

        async def stabilized() -> bool:
            return (await conditions(h))["AbleToScale"] == ("True", "ScaleDownStabilized")

        await h.until(stabilized, "it waits before it scales down")
        assert len(h.live(Pod)) == 3
        h.clock.advance(400)
        await h.until(lambda: len(h.live(Pod)) == 1, "and then does")


async def _scaled(h: Any) -> Any:
    found = await h.get(HorizontalPodAutoscaler, "auto")
    return found if found.status.last_scale_time else None


async def test_bounds_hold_without_any_metric(harness) -> None:
    async with harness(NAME, "replicaset-controller") as h:
        await h.client.create(replica_set(h, 5))
        await h.client.create(autoscaler(h, maxReplicas=3))
        await h.until(lambda: h.cached(HorizontalPodAutoscaler), "it is seen")
        await look(h)
        await h.until(lambda: len(h.live(Pod)) == 3, "not more than three")
        (event,) = await h.until(lambda: h.events("SuccessfulRescale"), "it is reported")
        assert event.message == "New size: 3; reason: Current number of replicas above Spec.MaxReplicas"


async def test_targets_scaled_to_zero_are_left_alone(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(replica_set(h, 0))
        await h.client.create(autoscaler(h))
        await h.until(lambda: h.cached(HorizontalPodAutoscaler), "it is seen")
        await look(h)

        async def disabled() -> bool:
            return (await conditions(h)).get("ScalingActive") == ("False", "ScalingDisabled")

        await h.until(disabled, "it says so")


async def test_errors_are_reported_by_conditions_and_events(harness) -> None:
    async with harness(NAME, "replicaset-controller") as h:
        await h.client.create(autoscaler(h))
        await h.until(lambda: h.cached(HorizontalPodAutoscaler), "it is seen")
        await look(h)

        async def says(kind: str, reason: str) -> bool:
            return (await conditions(h)).get(kind) == ("False", reason)

        await h.until(lambda: says("AbleToScale", "FailedGetScale"), "there is no target")
        await h.client.create(replica_set(h, 1))
        await h.until(lambda: h.live(Pod), "a pod")
        await look(h)
        await h.until(lambda: says("ScalingActive", "FailedGetResourceMetric"), "there are no metrics")
        found = await h.get(HorizontalPodAutoscaler, "auto")
        message = next(each.message for each in found.status.conditions if each.type == "ScalingActive")
        assert message.startswith(
            "the HPA was unable to compute the replica count: failed to get cpu utilization: "
            "unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: "
        )
        assert await h.events("FailedComputeMetricsReplicas")


async def test_two_autoscalers_of_the_same_pods_do_nothing(harness) -> None:
    async with harness(NAME, "replicaset-controller") as h:
        Metrics(h, 2000)
        await h.client.create(replica_set(h, 1))
        await h.until(lambda: h.live(Pod), "a pod")
        for name in ("auto", "other"):
            await h.client.create(autoscaler(h, name=name))
        await h.until(lambda: len(h.cached(HorizontalPodAutoscaler)) == 2, "they are seen")
        await look(h)
        await h.until(lambda: h.events("AmbiguousSelector"), "it is reported")
