"""The Ingress controller's metrics. Series of an Ingress go with it; statuses are counted by class (`2xx`)."""

from __future__ import annotations

from collections.abc import Callable

from pybernetes.client.metrics import GaugeFunction, Registry

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")


class Metrics:
    """The counters; `ingress` is `namespace/name`, empty for requests that no Ingress is for."""

    def __init__(self) -> None:
        registry = self.registry = Registry()
        prefix = "pybernetes_ingress"
        self.requests = registry.counter(f"{prefix}_requests_total", "Requests by Ingress.", ("ingress", "status"))
        self.duration = registry.histogram(
            f"{prefix}_request_duration_seconds", "Seconds until the answer was passed on.", _BUCKETS, ("ingress",)
        )
        self.retries = registry.counter(
            f"{prefix}_retries_total", "Requests sent to another endpoint after one failed.", ("ingress",)
        )
        self.failures = registry.counter(
            f"{prefix}_endpoint_failures_total", "Endpoints that could not be reached or gave no answer.", ("ingress",)
        )
        self.refused = registry.counter(f"{prefix}_refused_total", "What was no valid request.", ("status",))

    def gauge(self, name: str, help: str, read: Callable[[], int]) -> None:
        """A number that is read at each scrape."""
        self.registry.add(GaugeFunction(f"pybernetes_ingress_{name}", help, (), lambda: [((), float(read()))]))

    def answered(self, label: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self.requests.inc(label, f"{status // 100}xx")
        self.duration.observe(seconds, label)

    def forget(self, label: str) -> None:
        """An Ingress is gone."""
        for status in CLASSES:
            self.requests.values.pop((label, status), None)
        self.duration.remove(label)
        for counter in (self.retries, self.failures):
            counter.values.pop((label,), None)
