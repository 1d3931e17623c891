"""Labels of /metrics come from closed sets: what clients send does not make it grow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybernetes.api import scheme
from pybernetes.apiserver.metrics import Metrics
from pybernetes.apiserver.requestinfo import request_info


def observed(*requests: tuple[str, str, int], registry: Any = None) -> Metrics:
    metrics = Metrics()
    metrics.registry = registry
    metrics.paths = lambda: ("/healthz", "/version", "/openapi/v2")
    for method, path, code in requests:
        request: Any = SimpleNamespace(head=None, info=request_info(method, path, ""))
        metrics.observe(request, code, 0.001)
    return metrics


def verbs(metrics: Metrics) -> set[str]:
    return {key[0] for key in metrics._series}


def test_methods_that_are_none_of_https_are_counted_together() -> None:
    metrics = observed(*[(f"M{number}", path, 200) for number in range(500) for path in ("/version", "/api/v1/pods")])
    assert verbs(metrics) == {"OTHER"}
    assert len(metrics._series) == 2


@pytest.mark.parametrize("code", [200, 301, 401, 403, 404, 500, 503])
def test_paths_that_are_not_served_are_counted_together_whatever_the_answer(code: int) -> None:
    metrics = observed(*[("GET", f"/nonsense/{number}", code) for number in range(500)])
    assert len(metrics._series) == 1
    assert len(observed(("GET", "/healthz", code), ("GET", "/version", code))._series) == 2


@pytest.mark.parametrize(
    "path", ["/apis/g{}/v1/pods", "/api/w{}/pods", "/api/v1/r{}", "/api/v1/namespaces/a/pods/b/s{}"]
)
def test_resources_that_are_not_served_are_counted_together(path: str) -> None:
    assert len(observed(*[("GET", path.format(number), 404) for number in range(500)])._series) == 1


def test_names_and_namespaces_do_not_count() -> None:
    requests = [("GET", f"/api/v1/namespaces/n{number}/pods/p{number}", 200) for number in range(500)]
    assert len(observed(*requests)._series) == 1


def test_definitions_that_come_and_go_leave_nothing_behind() -> None:
    pods = scheme.resource("", "v1", "pods")
    served: dict[tuple[str, str, str], Any] = {}
    registry = SimpleNamespace(generation=0, served=lambda *name: served.get(name))
    metrics = observed(registry=registry)
    for number in range(100):
        served.clear()
        served[f"g{number}", "v1", "things"] = pods
        registry.generation += 1
        request: Any = SimpleNamespace(head=None, info=request_info("GET", f"/apis/g{number}/v1/things", ""))
        metrics.observe(request, 200, 0.001)
    assert len(metrics._series) == 1
