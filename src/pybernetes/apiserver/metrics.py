"""The server's metrics, with upstream's names.

Counting is on the path of every request and therefore only adds to numbers in dicts; the library that knows
Prometheus's format is imported at the first scrape of `/metrics`.

All labels come from closed sets, as clients could fill the memory otherwise: verbs that are known, paths and resources
that are served.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pybernetes.api import scheme
from pybernetes.component import tasks

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from pybernetes.component.watchdog import LoopWatchdog
    from pybernetes.net.http import Request

    from .filters.max_in_flight import MaxInFlight
    from .filters.priority_and_fairness import PriorityAndFairness
    from .flowcontrol.controller import FlowController
    from .registry.registry import Registry
    from .requestinfo import RequestInfo

BUCKETS = (
    0.005,
    0.025,
    0.05,
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    1.25,
    1.5,
    2,
    3,
    4,
    5,
    6,
    8,
    10,
    15,
    20,
    30,
    45,
    60,
)  # upstream's apiserver_request_duration_seconds
_WIDTH = len(BUCKETS) + 1
_LABELS = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
_OTHER = "OTHER"
"""The verb of unknown methods; upstream's word. Clients may send any."""
_METHODS = frozenset(("get", "head", "post", "put", "patch", "delete", "options", "connect", "trace"))
_UNKNOWN = ("", "", "", "", "")
"""Group, version, resource, subresource and scope of what is not there."""
_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}


COLLECTORS: list[Callable[[], Iterable[Metric]]] = []
"""Collectors of other parts of the server; they add themselves when they are first used."""


class _Series:
    __slots__ = ("buckets", "codes", "named", "timed", "total")

    def __init__(self, named: bool, timed: bool) -> None:
        self.named = named  # or else it is for all that is not there
        self.timed = timed
        self.buckets = [0] * _WIDTH
        self.codes: dict[int, int] = {}
        self.total = 0.0


class Metrics:
    """The server's counters."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, ...], _Series] = {}
        self.registry: Registry | None = None
        self.paths: Callable[[], Container[str]] = tuple
        """The paths that are served and are no resources; requests to others are counted together."""
        self._paths: tuple[int, Container[str]] | None = None
        self._cleaned = 0
        """The generation of what is served by which series were dropped last."""
        self.in_flight: MaxInFlight | PriorityAndFairness | None = None
        self.flows: FlowController | None = None
        self.watchdog: LoopWatchdog | None = None
        self.disabled: frozenset[str] = frozenset()
        """Names of disabled metrics."""

    def observe(self, request: Request, code: int, seconds: float) -> None:
        """Count a request; what it asked for is known."""
        head = request.head
        series: _Series | None = head.series if head is not None else None
        if series is None:
            series = self._series_of(request.info)
            if head is not None and series.named:
                head.series = series
        series.codes[code] = series.codes.get(code, 0) + 1
        if series.timed:
            series.buckets[bisect_left(BUCKETS, seconds)] += 1
            series.total += seconds

    def _series_of(self, info: RequestInfo) -> _Series:
        scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
        dry_run = "All" if info.query and info.query.get("dryRun") == "All" else ""
        resource, subresource = (info.resource, info.subresource) if info.is_resource else ("", info.path)
        if not info.is_resource:
            scope = ""
        verb = info.verb if info.verb in _VERBS or info.verb in _METHODS else _OTHER
        key = (verb, dry_run, info.group, info.version, resource, subresource, scope)
        series = self._series.get(key)
        if series is None:
            if not self._exists(info):  # a client that asks for nonsense must not fill the memory
                key = (verb, dry_run, *_UNKNOWN)
            elif info.is_resource and self.registry is not None and self._cleaned != self.registry.generation:
                self._forget_what_is_not_served(self.registry)
            series = self._series.setdefault(key, _Series(any(key[2:]), info.verb != "watch"))
        return series

    def _exists(self, info: RequestInfo) -> bool:
        """Whether there is what was asked for: a path that is served by itself, or a resource."""
        if not info.is_resource:
            generation = self.registry.generation if self.registry is not None else 0
            if self._paths is None or self._paths[0] != generation:
                self._paths = generation, self.paths()
            return info.path in self._paths[1]
        return _is_served(self.registry, info.group, info.version, info.resource, info.subresource)

    def _forget_what_is_not_served(self, registry: Registry) -> None:
        """Drop the series of custom resources that are gone; otherwise definitions that come and go would gather."""
        self._cleaned = registry.generation
        gone = [key for key in self._series if key[4] and not _is_served(registry, *key[2:6])]
        for key in gone:
            del self._series[key]

    def render(self) -> bytes:
        """Everything in Prometheus's text format."""
        from prometheus_client.gc_collector import GCCollector
        from prometheus_client.platform_collector import PlatformCollector
        from prometheus_client.process_collector import ProcessCollector

        return text_of(self, registering=(ProcessCollector, PlatformCollector, GCCollector))

    def collect(self) -> Iterator[Metric]:
        """The metric families, for the library."""
        for family in self._families():
            # The library keeps counters without the end that all their names have.
            if not self.disabled & {family.name, f"{family.name}_total" if family.type == "counter" else family.name}:
                yield family

    def _families(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily(
            "apiserver_request", "Requests by verb, resource and code.", labels=(*_LABELS, "code")
        )
        durations = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "How long requests took, watches left out.", labels=_LABELS
        )
        for key, series in self._series.items():
            verb, dry_run, *rest = key
            labels = (_VERBS.get(verb, verb.upper()), dry_run, *rest, "apiserver")
            for code, count in series.codes.items():
                requests.add_metric((*labels, str(code)), count)
            running, buckets = 0, []
            for limit, count in zip((*BUCKETS, None), series.buckets, strict=True):
                running += count
                buckets.append((_number(limit), running))
            if running:
                durations.add_metric(labels, buckets, series.total)
        yield requests
        yield durations
        yield from self._gauges(GaugeMetricFamily)
        if self.flows:
            yield from self.flows.collect()
        for collect in COLLECTORS:
            yield from collect()

    def _gauges(self, family: Any) -> Iterator[Metric]:
        if self.in_flight:
            gauge = family("apiserver_current_inflight_requests", "Requests being served.", labels=("request_kind",))
            for reading, name in ((True, "readOnly"), (False, "mutating")):
                gauge.add_metric((name,), self.in_flight.running[reading])
            yield gauge
        if self.registry:
            watchers = family("apiserver_longrunning_requests", "Watches being served.", labels=("verb", "resource"))
            objects = family("apiserver_storage_objects", "Objects in the store.", labels=("resource",))
            for prefix, partition in self.registry.cache.partitions.items():
                name = prefix.removeprefix("/registry/").strip("/")
                objects.add_metric((name,), len(partition.items))
                if partition.watchers:
                    watchers.add_metric(("WATCH", name), len(partition.watchers))
            yield watchers
            yield objects
            revision = family("apiserver_storage_revision", "The revision the cache has seen.")
            revision.add_metric((), self.registry.cache.revision)
            yield revision
        yield from self._process(family)
        yield family("apiserver_process_id", "The process that answers.", value=os.getpid())

    def _process(self, family: Any) -> Iterator[Metric]:
        """How this process's long-lived tasks and its event loop do."""
        from prometheus_client.core import CounterMetricFamily

        failed = CounterMetricFamily("pybernetes_task_failures", "Failures of long-lived tasks.", labels=("task",))
        for name, count in sorted(tasks.failures.items()):
            failed.add_metric((name,), count)
        yield failed
        if self.watchdog:
            lag = "Largest lag of the event loop since it was last asked for."
            yield family("pybernetes_event_loop_lag_seconds", lag, value=self.watchdog.take_max_lag())
            stalls = "How often the event loop was blocked for more than a second."
            yield CounterMetricFamily("pybernetes_event_loop_stalls", stalls, value=self.watchdog.stalls)


def text_of(*collectors: Any, registering: Iterable[Callable[..., object]] = ()) -> bytes:
    """The collectors' metrics in Prometheus's text format; classes of the library register themselves."""
    from prometheus_client import generate_latest
    from prometheus_client.core import CollectorRegistry

    registry = CollectorRegistry()
    for each in collectors:
        registry.register(each)
    for collector in registering:
        collector(registry=registry)
    text: bytes = generate_latest(registry)
    return text


def _is_served(registry: Registry | None, group: str, version: str, plural: str, subresource: str) -> bool:
    resource = scheme.resource(group, version, plural)
    if resource is None and registry is not None:
        resource = registry.served(group, version, plural)
    return resource is not None and (not subresource or resource.subresource(subresource) is not None)


def _number(limit: float | None) -> str:
    return "+Inf" if limit is None else repr(float(limit))
