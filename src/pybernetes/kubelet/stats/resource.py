"""/metrics/resource: what metrics servers read. CPU and memory of node, pods and containers, and nothing else. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .exposition import Labels, Row, family, text
from .sampler import NodeSample, PodSample, Sample


def resource_metrics(sample: NodeSample | None) -> bytes:
    """The text; without a sample only that there was an error."""
    error: list[Row] = [({}, 0.0 if sample else 1.0, None)]
    note = "1 if there was an error while getting container metrics, 0 otherwise"
    errors = family("resource_scrape_error", f"[STABLE] {note}", "gauge", error)
    if sample is None:
        return text(errors)
    root: list[tuple[Labels, Sample]] = [({}, sample.root)] if sample.root else []
    containers = [
        ({"container": each.container.name, **_pod(pod)}, each.sample) for pod in sample.pods for each in pod.containers
    ]
    pods = [(_pod(pod), pod.sample) for pod in sample.pods if pod.sample is not None]
    starts: list[Row] = [
        ({"container": each.container.name, **_pod(pod)}, each.container.started_at, None)
        for pod in sample.pods
        for each in pod.containers
        if each.container.started_at > 0
    ]
    cpu, memory, swap = _seconds, _working_set, _swap
    return text(
        family(
            "container_cpu_usage_seconds_total",
            "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
            "counter",
            _rows(containers, cpu),
        ),
        family(
            "container_memory_working_set_bytes",
            "[STABLE] Current working set of the container in bytes",
            "gauge",
            _rows(containers, memory),
        ),
        family(
            "container_start_time_seconds",
            "[STABLE] Start time of the container since unix epoch in seconds",
            "gauge",
            starts,
        ),
        family(
            "container_swap_limit_bytes",
            "[ALPHA] Current amount of the container swap limit in bytes. Reported only on non-windows systems",
            "gauge",
            _rows(
                [each for each in containers if each[1].usage.swap_limit is not None],
                lambda each: float(each.usage.swap_limit or 0),
            ),
        ),
        family(
            "container_swap_usage_bytes",
            "[ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows systems",
            "gauge",
            _rows(containers, swap),
        ),
        family(
            "node_cpu_usage_seconds_total",
            "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
            "counter",
            _rows(root, cpu),
        ),
        family(
            "node_memory_working_set_bytes",
            "[STABLE] Current working set of the node in bytes",
            "gauge",
            _rows(root, memory),
        ),
        family(
            "node_swap_usage_bytes",
            "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems",
            "gauge",
            _rows(root, swap),
        ),
        family(
            "pod_cpu_usage_seconds_total",
            "[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
            "counter",
            _rows(pods, cpu),
        ),
        family(
            "pod_memory_working_set_bytes",
            "[STABLE] Current working set of the pod in bytes",
            "gauge",
            _rows(pods, memory),
        ),
        family(
            "pod_swap_usage_bytes",
            "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on non-windows systems",
            "gauge",
            _rows(pods, swap),
        ),
        errors,
        family("scrape_error", f"[ALPHA] (Deprecated since 1.29.0) {note}", "gauge", error),
    )


def _pod(pod: PodSample) -> Labels:
    return {"namespace": pod.pod.ref.namespace, "pod": pod.pod.ref.name}


def _rows(samples: list[tuple[Labels, Sample]], value: Callable[[Sample], float]) -> Iterator[Row]:
    for labels, sample in samples:
        yield labels, value(sample), sample.time


def _seconds(sample: Sample) -> float:
    return sample.usage.cpu / 1e9


def _working_set(sample: Sample) -> float:
    return float(sample.usage.working_set)


def _swap(sample: Sample) -> float:
    return float(sample.usage.swap)
