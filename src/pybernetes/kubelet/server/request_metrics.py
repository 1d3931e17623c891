"""Counts and times the requests of the kubelet's server, by upstream's names. Unknown paths are counted as `other`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from pybernetes.client.metrics import Registry

_LABELS = ("method", "path", "server_type", "long_running")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # Prometheus's own
_METHODS = frozenset(("OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"))
_LONG = frozenset(("exec", "attach", "portforward", "debug"))
_PATHS = frozenset(
    (
        *("attach", "checkpoint", "configz", "containerLogs", "debug", "exec", "healthz", "logs", "metrics"),
        *(
            "metrics/cadvisor",
            "metrics/probes",
            "metrics/resource",
            "metrics/slis",
            "pods",
            "portForward",
            "run",
            "runningpods",
            "stats",
        ),
        *("flagz", "statusz"),
    )
)


class RequestMetrics:
    """The metrics of one server; those of several share a registry."""

    def __init__(self, registry: Registry, *, read_only: bool = False) -> None:
        self._type = "readonly" if read_only else "readwrite"
        self._total = registry.counter(
            "kubelet_http_requests_total",
            "[ALPHA] Number of the http requests received since the server started",
            _LABELS,
        )
        self._seconds = registry.histogram(
            "kubelet_http_requests_duration_seconds",
            "[ALPHA] Duration in seconds to serve http requests",
            _SECONDS,
            _LABELS,
        )
        self._inflight = registry.gauge(
            "kubelet_http_inflight_requests", "[ALPHA] Number of the inflight http requests", _LABELS
        )

    @contextmanager
    def counted(self, method: str, path: str) -> Iterator[None]:
        """Around a request."""
        bucket = path_bucket(path)
        long = "true" if bucket in _LONG else "false"
        labels = (method if method in _METHODS else "other", bucket, self._type, long)
        self._total.inc(*labels)
        self._inflight.inc(*labels)
        started = perf_counter()
        try:
            yield
        finally:
            self._inflight.inc(*labels, by=-1.0)
            self._seconds.observe(perf_counter() - started, *labels)


def path_bucket(path: str) -> str:
    """The label under which a path is counted."""
    parts = path.lstrip("/").split("/", 2)
    root = "/".join(parts[:2]) if parts[0] == "metrics" and len(parts) > 1 else parts[0]
    return root if root in _PATHS else "other"
