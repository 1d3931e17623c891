"""Metrics of flows, with upstream's names: by priority level and flow schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ..counters import Series

if TYPE_CHECKING:
    from prometheus_client.core import HistogramMetricFamily, Metric

    from .levels import Level

_PREFIX = "apiserver_flowcontrol_"
_SECONDS = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)  # upstream's
_SEATS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)  # upstream's


class Counts:
    """Of the requests of one flow schema on one level. Most wait for nothing: they cost two additions."""

    __slots__ = ("at_once", "by_seats", "executed", "refused", "waited", "watched")

    def __init__(self) -> None:
        self.by_seats: defaultdict[int, int] = defaultdict(int)
        """How many were let in, by the seats they take."""
        self.at_once = 0
        """How many of them found seats that were free."""
        self.waited, self.refused = Series(_SECONDS), Series(_SECONDS)
        """How long others had waited who were let in, and those who were not."""
        self.executed, self.watched = Series(_SECONDS), Series(_SECONDS)
        """How long the work took; of watches, until they had sent their initial events."""

    @property
    def dispatched(self) -> int:
        """How many were let in."""
        return sum(self.by_seats.values())

    @property
    def seats(self) -> Series:
        """The seats they take."""
        found = Series(_SEATS)
        for width, times in self.by_seats.items():
            found.add(width, times)
        return found

    @property
    def waits(self) -> Series:
        """How long all waited who were let in."""
        found = Series(_SECONDS)
        found.counts, found.total = [*self.waited.counts], self.waited.total
        found.add(0.0, self.at_once)
        return found


def collect(levels: Iterable[Level]) -> Iterator[Metric]:
    """The families, for the library."""
    yield from _of_levels(levels)
    yield from _of_schemas(levels)
    yield from _histograms(levels)


def _of_levels(levels: Iterable[Level]) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    values: list[tuple[str, str, Callable[[Level], float]]] = [
        ("nominal_limit_seats", "Seats by the shares.", lambda level: level.bounds.nominal),
        ("lower_limit_seats", "Seats that are never lent.", lambda level: level.bounds.least),
        ("upper_limit_seats", "Seats with all that may be borrowed.", lambda level: level.bounds.most),
        ("current_limit_seats", "Seats that may be taken now.", lambda level: level.limit),
        ("demand_seats_high_watermark", "Most seats wanted in the last period.", lambda level: level.high),
        ("demand_seats_smoothed", "Seats that are usually wanted.", lambda level: level.smoothed),
    ]
    for name, help, value in values:
        gauge = GaugeMetricFamily(_PREFIX + name, help, labels=("priority_level",))
        for level in levels:
            gauge.add_metric((level.name,), value(level))
        yield gauge


def _of_schemas(levels: Iterable[Level]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    labels = ("priority_level", "flow_schema")
    dispatched = CounterMetricFamily(f"{_PREFIX}dispatched_requests", "Requests that were served.", labels=labels)
    rejected = CounterMetricFamily(
        f"{_PREFIX}rejected_requests", "Requests that were refused.", labels=(*labels, "reason")
    )
    executing = GaugeMetricFamily(f"{_PREFIX}current_executing_requests", "Requests being served.", labels=labels)
    taken = GaugeMetricFamily(f"{_PREFIX}current_executing_seats", "Seats that are taken.", labels=labels)
    waiting = GaugeMetricFamily(f"{_PREFIX}current_inqueue_requests", "Requests that wait.", labels=labels)
    wanted = GaugeMetricFamily(f"{_PREFIX}current_inqueue_seats", "Seats that are waited for.", labels=labels)
    for level in levels:
        for schema, counts in level.counts.items():
            names = (level.name, schema)
            running = [each.estimate.width for each in level.running if each.schema == schema]
            queued = [each.estimate.width for each in level.waiting.values() if each.schema == schema]
            dispatched.add_metric(names, counts.dispatched)
            executing.add_metric(names, len(running))
            taken.add_metric(names, sum(running))
            waiting.add_metric(names, len(queued))
            wanted.add_metric(names, sum(queued))
        for (schema, reason), count in level.rejected.items():
            rejected.add_metric((level.name, schema, reason), count)
    yield from (dispatched, rejected, executing, taken, waiting, wanted)


def _histograms(levels: Iterable[Level]) -> Iterator[Metric]:
    from prometheus_client.core import HistogramMetricFamily

    labels = ("priority_level", "flow_schema")
    waits = HistogramMetricFamily(
        f"{_PREFIX}request_wait_duration_seconds", "How long requests waited.", labels=(*labels, "execute")
    )
    work = HistogramMetricFamily(
        f"{_PREFIX}request_execution_seconds", "How long requests were worked on.", labels=(*labels, "type")
    )
    seats = HistogramMetricFamily(
        f"{_PREFIX}work_estimated_seats", "Seats that requests were taken to need.", labels=labels
    )
    for level in levels:
        for schema, counts in level.counts.items():
            names = (level.name, schema)
            _add(waits, (*names, "true"), counts.waits)
            _add(waits, (*names, "false"), counts.refused)
            _add(work, (*names, "regular"), counts.executed)
            _add(work, (*names, "watch"), counts.watched)
            _add(seats, names, counts.seats)
    yield from (waits, work, seats)


def _add(family: HistogramMetricFamily, labels: tuple[str, ...], series: Series) -> None:
    running, buckets = 0, []
    for limit, count in zip((*map(repr, series.buckets), "+Inf"), series.counts, strict=True):
        running += count
        buckets.append((limit, running))
    if running:
        family.add_metric(labels, buckets, series.total)
