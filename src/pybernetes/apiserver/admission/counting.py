"""Counters and histograms of admission: numbers in dicts, made into metrics when somebody asks for them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Labels = tuple[str, ...]


class Counter:
    """How often, by labels."""

    def __init__(self, name: str, help: str, labels: Labels) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._counts: dict[Labels, int] = {}

    def add(self, *labels: str) -> None:
        """Once more."""
        self._counts[labels] = self._counts.get(labels, 0) + 1

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


class Histogram:
    """How long, by labels."""

    def __init__(self, name: str, help: str, labels: Labels, buckets: tuple[float, ...]) -> None:
        self.name, self.help, self.labels, self.buckets = name, help, labels, buckets
        self._series: dict[Labels, tuple[list[int], list[float]]] = {}

    def observe(self, seconds: float, *labels: str) -> None:
        """It took so long."""
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = ([0] * (len(self.buckets) + 1), [0.0])
        series[0][bisect_left(self.buckets, seconds)] += 1
        series[1][0] += seconds

    def collect(self) -> Iterator[Metric]:
        """The family, for the library."""
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for labels, (counts, total) in self._series.items():
            running, buckets = 0, []
            for limit, count in zip((*map(repr, map(float, self.buckets)), "+Inf"), counts, strict=True):
                running += count
                buckets.append((limit, running))
            family.add_metric(labels, buckets, total[0])
        yield family
