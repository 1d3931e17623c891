"""Counters and histograms of admission: numbers in dicts, made into metrics at each scrape."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Labels = tuple[str, ...]
MOST = 4096
"""Sets of labels of one metric; the oldest goes first. Some are names of policies and webhooks, which come and go."""


class Counter:
    """How often, by labels."""

    def __init__(self, name: str, help: str, labels: Labels) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._counts: dict[Labels, int] = {}

    def add(self, *labels: str, times: int = 1) -> None:
        """Once more, or several times."""
        if labels not in self._counts and len(self._counts) >= MOST:
            del self._counts[next(iter(self._counts))]
        self._counts[labels] = self._counts.get(labels, 0) + times

    def collect(self) -> Iterator[Metric]:
        """The family, for the library."""
        from prometheus_client.core import CounterMetricFamily, UntypedMetricFamily

        # The library ends every counter's name in _total; some of upstream's do not, and their names are what counts.
        total = self.name.endswith("_total")
        make = CounterMetricFamily if total else UntypedMetricFamily
        family = make(self.name.removesuffix("_total"), self.help, labels=self.labels)
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        yield family


class Series:
    """How long, for one set of labels."""

    __slots__ = ("buckets", "counts", "total")

    def __init__(self, buckets: tuple[float, ...]) -> None:
        self.buckets = buckets
        self.counts = [0] * (len(buckets) + 1)
        self.total = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        """It took so long, once or several times."""
        self.counts[bisect_left(self.buckets, seconds)] += times
        self.total += seconds * times

    def add_all(self, seconds: list[float]) -> None:
        """It took so long each time. Quick if all belong to the first bucket, as most do."""
        if max(seconds, default=0.0) <= self.buckets[0]:
            self.counts[0] += len(seconds)
            self.total += sum(seconds)
        else:
            for each in seconds:
                self.add(each)


class Histogram:
    """How long, by labels."""

    def __init__(self, name: str, help: str, labels: Labels, buckets: tuple[float, ...]) -> None:
        self.name, self.help, self.labels, self.buckets = name, help, labels, buckets
        self._series: dict[Labels, Series] = {}

    def series(self, *labels: str) -> Series:
        """The series of some labels, for callers that count often with the same labels."""
        found = self._series.get(labels)
        if found is None:
            if len(self._series) >= MOST:
                del self._series[next(iter(self._series))]
            found = self._series[labels] = Series(self.buckets)
        return found

    def observe(self, seconds: float, *labels: str) -> None:
        """It took so long."""
        self.series(*labels).add(seconds)

    def collect(self) -> Iterator[Metric]:
        """The family, for the library."""
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for labels, series in self._series.items():
            running, buckets = 0, []
            for limit, count in zip((*map(repr, map(float, self.buckets)), "+Inf"), series.counts, strict=True):
                running += count
                buckets.append((limit, running))
            if running:
                family.add_metric(labels, buckets, series.total)
        yield family
