from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pybernetes.api import errors, labels
from pybernetes.api.autoscaling.v2 import CrossVersionObjectReference
from pybernetes.api.times import parse_time
from pybernetes.controllers.common.scales import Scales
from pybernetes.controllers.horizontalpodautoscaler.metrics import MetricsClient
from pybernetes.controllers.horizontalpodautoscaler.replicas import MetricError, PodMetric

TIME = "2024-06-03T10:00:00Z"
SELECTOR = labels.parse("app=web")


class Server:
    """Answers by path, and keeps what it was asked."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def call(self, method: str, target: str, body: Any = None) -> Any:
        self.asked.append(target)
        found = self.answers.get(urlsplit(target).path)
        if found is None:
            raise errors.from_status(
                {"reason": "NotFound", "code": 404, "message": "the server could not find the requested resource"}
            )
        return found


def client(answers: dict[str, Any]) -> tuple[MetricsClient, Server]:
    server = Server(answers)
    scales: Any = Scales(server)  # type: ignore[arg-type]
    return MetricsClient(server, scales), server  # type: ignore[arg-type]


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


def usage(name: str, *containers: tuple[str, dict[str, str]]) -> dict[str, Any]:
    told = [{"name": container, "usage": amounts} for container, amounts in containers]
    return {"metadata": {"name": name}, "timestamp": TIME, "window": "30s", "containers": told}


def test_resource_metrics_are_summed_over_containers() -> None:
    items = [
        usage("one", ("a", {"cpu": "100m"}), ("b", {"cpu": "1"})),
        usage("half", ("a", {"cpu": "5m"}), ("b", {"memory": "1Mi"})),
        usage("empty"),
    ]
    metrics, server = client({"/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods": {"items": items}})
    assert run(metrics.resource("cpu", "ns", SELECTOR, "")) == {"one": PodMetric(1100, parse_time(TIME), 30)}
    assert parse_qs(urlsplit(server.asked[0]).query) == {"labelSelector": ["app=web"]}
    assert {name: each.value for name, each in run(metrics.resource("cpu", "ns", SELECTOR, "a")).items()} == {
        "one": 100,
        "half": 5,
    }


def test_missing_metrics_servers_get_upstreams_error() -> None:
    metrics, _ = client({})
    with pytest.raises(MetricError) as resource:
        run(metrics.resource("cpu", "ns", SELECTOR, ""))
    assert str(resource.value) == (
        "unable to fetch metrics from resource metrics API: "
        "the server could not find the requested resource (get pods.metrics.k8s.io)"
    )
    with pytest.raises(MetricError, match="unable to fetch metrics from custom metrics API"):
        run(metrics.pods("m", "ns", SELECTOR, labels.Selector()))
    with pytest.raises(MetricError, match="unable to fetch metrics from external metrics API"):
        run(metrics.external("m", "ns", labels.Selector()))


def test_custom_metrics_of_pods_and_objects() -> None:
    group = "/apis/custom.metrics.k8s.io"
    value = {"describedObject": {"name": "one"}, "timestamp": TIME, "value": "2500m"}
    metrics, server = client(
        {
            group: {"versions": [{"version": "v1beta1"}, {"version": "v1beta2"}]},
            f"{group}/v1beta2/namespaces/ns/pods/*/qps": {"items": [value]},
            f"{group}/v1beta2/namespaces/ns/ingresses.networking.k8s.io/main/qps": {"items": [value]},
            f"{group}/v1beta2/namespaces/ns/metrics/qps": {"items": [value, value]},
            "/apis/networking.k8s.io": {"versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
            "/apis/networking.k8s.io/v1": {"resources": [{"name": "ingresses", "kind": "Ingress", "namespaced": True}]},
        }
    )
    assert run(metrics.pods("qps", "ns", SELECTOR, labels.parse("verb=get"))) == {
        "one": PodMetric(2500, parse_time(TIME), 60)
    }
    assert parse_qs(urlsplit(server.asked[-1]).query) == {
        "labelSelector": ["app=web"],
        "metricLabelSelector": ["verb=get"],
    }
    ingress = CrossVersionObjectReference(api_version="networking.k8s.io/v1", kind="Ingress", name="main")
    assert run(metrics.object("qps", "ns", ingress, labels.Selector())) == 2500
    with pytest.raises(MetricError, match="returned 2 results when we asked for exactly one"):
        run(metrics.object("qps", "ns", CrossVersionObjectReference(kind="Namespace", name="x"), labels.Selector()))


def test_external_metrics_are_summed() -> None:
    items = [{"value": "1"}, {"value": "500m"}]
    metrics, _ = client({"/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/queue": {"items": items}})
    assert run(metrics.external("queue", "ns", labels.Selector())) == 1500
