"""From metrics to a number of replicas.

The rule is simple: as many as would bring the metric to its target. The rest is caution about pods that say nothing
or cannot be trusted: pods without metrics count as if they argued against the change (idle when scaling up, at the
target when scaling down), pods that are not ready do not call for more, and no correction may turn the direction.
All amounts are in thousandths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from pybernetes.api.core.podresources import aggregate_container_requests, is_sidecar, quantity
from pybernetes.api.core.v1.pod import Pod, PodSpec

from ..common.meta import is_deleting, name_of, seconds
from ..common.pods import is_ready, phase_of, ready_condition

MAX_INT32: Final = (1 << 31) - 1
MAX_INT64: Final = (1 << 63) - 1


class MetricError(Exception):
    """Why a metric says nothing."""


class PodMetric(NamedTuple):
    """The measured value of one pod, when it was measured, and over how many seconds."""

    value: int
    timestamp: float = 0.0
    window: float = 0.0


class Tolerances(NamedTuple):
    """How far the ratio of usage and target may be off without a change."""

    down: float = 0.1
    up: float = 0.1

    def within(self, ratio: float) -> bool:
        """Whether the ratio is near enough to 1."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Initialization(NamedTuple):
    """How long young pods are not believed, in seconds."""

    cpu_period: float = 300.0
    readiness_delay: float = 30.0


class Groups(NamedTuple):
    """Pods by what their metrics are worth, the last three by name."""

    ready: int
    unready: set[str]
    missing: set[str]
    ignored: set[str]


class Usage(NamedTuple):
    """The ratio of usage and target, and what the status tells about it."""

    ratio: float
    average: int
    utilization: int | None = None


class Proposal(NamedTuple):
    """How many replicas a metric asks for, and what it was when asked."""

    replicas: int
    usage: Usage


def group_pods(
    pods: Sequence[Pod], metrics: Mapping[str, PodMetric], resource: str, young: Initialization, now: float
) -> Groups:
    """Sort pods by what their metrics are worth."""
    result = Groups(0, set(), set(), set())
    ready = 0
    for pod in pods:
        name = name_of(pod)
        if is_deleting(pod) or phase_of(pod) == "Failed":
            result.ignored.add(name)
        elif phase_of(pod) == "Pending":
            result.unready.add(name)
        elif name not in metrics:
            result.missing.add(name)
        elif resource == "cpu" and not _cpu_counts(pod, metrics[name], young, now):
            result.unready.add(name)
        else:
            ready += 1
    return result._replace(ready=ready)


def _cpu_counts(pod: Pod, metric: PodMetric, young: Initialization, now: float) -> bool:
    """Whether a pod's use of CPU is that of its work and not of its start."""
    condition = ready_condition(pod)
    started = pod.status.start_time if pod.status else None
    if condition is None or started is None:
        return False
    turned = seconds(condition.last_transition_time)
    if seconds(started) + young.cpu_period > now:
        return condition.status != "False" and metric.timestamp >= turned + metric.window
    # Later, only those do not count that have never been ready.
    return condition.status != "False" or seconds(started) + young.readiness_delay <= turned


def requests_of(pods: Sequence[Pod], container: str, resource: str) -> dict[str, int]:
    """The request of each pod, or of one container of it. Raises MetricError."""
    return {name_of(pod): _request(pod, pod.spec or PodSpec(), container, resource) for pod in pods}


def _request(pod: Pod, spec: PodSpec, container: str, resource: str) -> int:
    if not container and spec.resources is not None and spec.resources.requests:
        whole = spec.resources.requests.get(resource) or aggregate_container_requests(spec).get(resource)
        if whole is None:
            raise MetricError(f"missing pod-level request for {resource} in Pod {name_of(pod)}")
        return quantity(whole).milli_value()
    total = 0
    for each in (spec.containers or []) + [each for each in spec.init_containers or () if is_sidecar(each)]:
        if container and container != each.name:
            continue
        wanted = (each.resources.requests if each.resources else None) or {}
        if resource not in wanted:
            raise MetricError(f"missing request for {resource} in container {each.name} of Pod {name_of(pod)}")
        total += quantity(wanted[resource]).milli_value()
        if container:
            return total
    if container:
        raise MetricError(f"container {container} not found in Pod {name_of(pod)}")
    return total


def utilization_replicas(
    metrics: Mapping[str, PodMetric],
    groups: Groups,
    requests: Mapping[str, int],
    *,
    current: int,
    target: int,
    tolerances: Tolerances,
) -> Proposal:
    """By a target in percent of what the pods have requested. Raises MetricError."""

    def usage(values: Mapping[str, int]) -> Usage:
        known = [name for name in values if name in requests]
        requested = sum(requests[name] for name in known)
        if requested == 0:
            raise MetricError("no metrics returned matched known pods")
        used = sum(values[name] for name in known)
        percent = used * 100 // requested
        return Usage(percent / target, used // len(known), percent)

    # Those that say nothing use all they have requested, or what is aimed at if that is more.
    calm = {name: requests[name] * max(100, target) // 100 for name in groups.missing}
    return _propose(metrics, groups, usage, calm, current, tolerances)


def average_replicas(
    metrics: Mapping[str, PodMetric], groups: Groups, *, current: int, target: int, tolerances: Tolerances
) -> Proposal:
    """By a target for the average of all pods. Raises MetricError."""

    def usage(values: Mapping[str, int]) -> Usage:
        average = sum(values.values()) // len(values)
        return Usage(average / target, average)

    return _propose(metrics, groups, usage, dict.fromkeys(groups.missing, target), current, tolerances)


def _propose(
    metrics: Mapping[str, PodMetric],
    groups: Groups,
    measure: Callable[[Mapping[str, int]], Usage],
    calm: Mapping[str, int],
    current: int,
    tolerances: Tolerances,
) -> Proposal:
    values = {
        name: metric.value
        for name, metric in metrics.items()
        if name not in groups.ignored and name not in groups.unready
    }
    if not values:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    usage = measure(values)
    ratio = usage.ratio
    up_with_unready = bool(groups.unready) and ratio > 1.0
    if not up_with_unready and not groups.missing:
        replicas = current if tolerances.within(ratio) else math.ceil(ratio * groups.ready)
        return Proposal(min(replicas, MAX_INT32), usage)
    if ratio < 1.0:
        values.update(calm)
    elif ratio > 1.0:
        values.update(dict.fromkeys(groups.missing, 0))
    if up_with_unready:
        values.update(dict.fromkeys(groups.unready, 0))
    corrected = measure(values).ratio
    if tolerances.within(corrected) or (ratio - 1.0) * (corrected - 1.0) < 0:
        return Proposal(current, usage)
    replicas = math.ceil(corrected * len(values))
    if (corrected < 1.0 and replicas > current) or (corrected > 1.0 and replicas < current):
        return Proposal(current, usage)
    return Proposal(min(replicas, MAX_INT32), usage)


def value_replicas(value: int, pods: Sequence[Pod], *, current: int, target: int, tolerances: Tolerances) -> Proposal:
    """By a target for one value that is not of the pods. Raises MetricError."""
    usage = Usage(value / target, value)
    if current == 0:
        return Proposal(min(math.ceil(usage.ratio), MAX_INT32), usage)
    if tolerances.within(usage.ratio):
        return Proposal(current, usage)
    if not pods:
        raise MetricError(
            "unable to calculate ready pods: no pods returned by selector while calculating replica count"
        )
    ready = sum(phase_of(pod) == "Running" and is_ready(pod) for pod in pods)
    return Proposal(min(math.ceil(usage.ratio * ready), MAX_INT32), usage)


def value_per_pod_replicas(value: int, *, current: int, target: int, tolerances: Tolerances) -> Proposal:
    """By a target for each pod's share of one value; `current` is how many pods there are."""
    ratio = value / (target * current) if current else math.inf
    replicas = current if tolerances.within(ratio) else min(math.ceil(value / target), MAX_INT32)
    share = math.ceil(value / current) if current and value < MAX_INT64 else value
    return Proposal(replicas, Usage(ratio, share))
