"""From a kubelet's /stats/summary to the metrics of its node and pods. Pure.

A pod is left out while one of its containers has no rate of CPU yet: half a pod would make autoscalers scale down. The
time that a rate was measured over is the kubelet's interval, or the age of what is younger than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.metrics.v1beta1 import ContainerMetrics, NodeMetrics, PodMetrics
from pybernetes.api.quantity import BINARY_SI, Quantity
from pybernetes.api.times import format_duration, parse_time, rfc3339

INTERVAL: Final = 10
"""Seconds that a kubelet measures rates over."""

Json = Mapping[str, Any]


def node_metrics(node: Node, summary: Json, now: float) -> NodeMetrics | None:
    """A node's metrics; None if the kubelet has not measured long enough."""
    stats = summary.get("node") or {}
    usage = _usage(stats)
    if usage is None:
        return None
    return NodeMetrics(
        metadata=_metadata(node, now),
        timestamp=stats["cpu"]["time"],
        window=_window(stats),
        usage=usage,
    )


def pod_metrics(pod: Pod, summary: Json, now: float) -> PodMetrics | None:
    """A pod's metrics; None if the kubelet does not know the pod (long enough)."""
    assert pod.metadata is not None
    for stats in summary.get("pods") or ():
        reference = stats.get("podRef") or {}
        if reference.get("uid") == pod.metadata.uid or _is_mirror_of(pod, reference):
            break
    else:
        return None
    containers, oldest, window = [], "", INTERVAL
    for each in stats.get("containers") or ():
        usage = _usage(each)
        if usage is None:
            return None
        containers.append(ContainerMetrics(name=each["name"], usage=usage))
        oldest = min(oldest or each["cpu"]["time"], each["cpu"]["time"])
        window = min(window, _seconds(each))
    if not containers:
        return None
    return PodMetrics(
        metadata=_metadata(pod, now), timestamp=oldest, window=format_duration(window * 10**9), containers=containers
    )


def _usage(stats: Json) -> dict[str, Any] | None:
    cpu, memory = stats.get("cpu") or {}, stats.get("memory") or {}
    rate, working_set = cpu.get("usageNanoCores"), memory.get("workingSetBytes")
    if rate is None or working_set is None:
        return None
    return {"cpu": str(Quantity(rate, -9)), "memory": str(Quantity(working_set, 0, BINARY_SI))}


def _window(stats: Json) -> str:
    return format_duration(_seconds(stats) * 10**9)


def _seconds(stats: Json) -> int:
    age = parse_time(stats["cpu"]["time"]) - parse_time(stats["startTime"])
    return max(1, min(INTERVAL, int(age)))


def _is_mirror_of(pod: Pod, reference: Json) -> bool:
    """A static pod has another uid in the kubelet than its mirror has here."""
    assert pod.metadata is not None
    annotations = pod.metadata.annotations or {}
    return annotations.get("kubernetes.io/config.mirror") == reference.get("uid") and bool(reference.get("uid"))


def _metadata(of: Node | Pod, now: float) -> ObjectMeta:
    assert of.metadata is not None
    return ObjectMeta(
        name=of.metadata.name,
        namespace=of.metadata.namespace,
        labels=of.metadata.labels,
        creation_timestamp=rfc3339(now),
    )
