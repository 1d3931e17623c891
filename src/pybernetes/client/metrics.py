"""Counters, gauges and histograms in Prometheus's text format.

Counting is a number in a dict. The usual library costs 5 MB and 50 ms of import for what 100 lines do.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

LATENCY_BUCKETS = (1e-8, 1e-7, 1e-6, 9.999999999999999e-06, 9.999999999999999e-05, 0.001, 0.01, 0.1, 1.0, 10.0)
"""The buckets of client-go's work queues: powers of ten from 10 ns to 10 s, as Go prints them."""

Labels = tuple[str, ...]
log = logging.getLogger(__name__)


class Counter:
    """A number that only grows, for each combination of labels."""

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:
        self.name, self.help, self.labels = name, help, labels
        self.values: dict[Labels, float] = {} if labels else {(): 0.0}

    def inc(self, *labels: str, by: float = 1.0) -> None:
        """Count."""
        self.values[labels] = self.values.get(labels, 0.0) + by

    def value(self, *labels: str) -> float:
        """The count so far."""
        return self.values.get(labels, 0.0)

    def lines(self) -> Iterator[str]:
        """The samples."""
        for values, number in self.values.items():
            yield f"{self.name}{_text(self.labels, values)} {_number(number)}"


class Gauge(Counter):
    """A number that goes up and down: set, or computed at each scrape."""

    kind = "gauge"

    def set(self, number: float, *labels: str) -> None:
        """Put the number."""
        self.values[labels] = number


class GaugeFunction:
    """Numbers that are computed at each scrape: (labels, number) each."""

    kind = "gauge"

    def __init__(
        self, name: str, help: str, labels: Labels, read: Callable[[], Iterable[tuple[Labels, float]]]
    ) -> None:
        self.name, self.help, self.labels, self._read = name, help, labels, read

    def lines(self) -> Iterator[str]:
        """The samples."""
        for values, number in self._read():
            yield f"{self.name}{_text(self.labels, values)} {_number(number)}"


class CounterFunction(GaugeFunction):
    """Numbers that only grow and are kept elsewhere, read at each scrape."""

    kind = "counter"


class Histogram:
    """How often a measure fell below each bound, for each combination of labels."""

    kind = "histogram"

    def __init__(self, name: str, help: str, buckets: tuple[float, ...], labels: Labels = ()) -> None:
        self.name, self.help, self.buckets, self.labels = name, help, buckets, labels
        self._values: dict[Labels, list[float]] = {}  # a count for each bucket, one above them, and the sum

    def observe(self, measure: float, *labels: str) -> None:
        """Count a measure."""
        values = self._values.get(labels)
        if values is None:
            values = self._values[labels] = [0.0] * (len(self.buckets) + 2)
        values[bisect_left(self.buckets, measure)] += 1
        values[-1] += measure

    def remove(self, *labels: str) -> None:
        """Forget what was counted for these labels."""
        self._values.pop(labels, None)

    def lines(self) -> Iterator[str]:
        """The samples."""
        for values, numbers in self._values.items():
            total = 0.0
            for bound, number in zip((*map(_number, self.buckets), "+Inf"), numbers, strict=False):
                total += number
                yield f"{self.name}_bucket{_text((*self.labels, 'le'), (*values, bound))} {_number(total)}"
            yield f"{self.name}_sum{_text(self.labels, values)} {_number(numbers[-1])}"
            yield f"{self.name}_count{_text(self.labels, values)} {_number(total)}"


Metric = Counter | Gauge | GaugeFunction | Histogram


class Registry:
    """All metrics of a process."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self.attachments: dict[str, object] = {}
        """Objects from which collectors compute metrics."""

    def counter(self, name: str, help: str, labels: Labels = ()) -> Counter:
        """The counter of this name."""
        found = self._metrics.setdefault(name, Counter(name, help, labels))
        assert isinstance(found, Counter)
        return found

    def gauge(self, name: str, help: str, labels: Labels = ()) -> Gauge:
        """The gauge of this name."""
        found = self._metrics.setdefault(name, Gauge(name, help, labels))
        assert isinstance(found, Gauge)
        return found

    def histogram(
        self, name: str, help: str, buckets: tuple[float, ...] = LATENCY_BUCKETS, labels: Labels = ()
    ) -> Histogram:
        """The histogram of this name."""
        found = self._metrics.setdefault(name, Histogram(name, help, buckets, labels))
        assert isinstance(found, Histogram)
        return found

    def add(self, metric: Metric) -> None:
        """Another metric."""
        self._metrics[metric.name] = metric

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        lines: list[str] = []
        for name, metric in sorted(self._metrics.items()):
            try:
                lines += (f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}", *metric.lines())
            except Exception as error:  # what cannot be read now must not take the others along
                log.warning("metric %s cannot be read: %s", name, error)
        return "\n".join([*lines, ""]).encode()


def _text(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
