"""Metrics of webhooks, with upstream's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...counters import Counter, Histogram
from ...metrics import COLLECTORS

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_PREFIX = "apiserver_admission_"


class WebhookMetrics:
    """Calls, how they went, how long they took."""

    def __init__(self) -> None:
        self._durations = Histogram(
            f"{_PREFIX}webhook_admission_duration_seconds",
            "How long webhooks took.",
            ("name", "type", "operation", "rejected"),
            (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25),
        )
        self._requests = Counter(
            f"{_PREFIX}webhook_request_total",
            "Calls of webhooks.",
            ("name", "type", "operation", "code", "rejected"),
        )
        self._rejections = Counter(
            f"{_PREFIX}webhook_rejection_count",
            "Requests that were refused by a webhook or because of one.",
            ("name", "type", "operation", "error_type", "rejection_code"),
        )
        self._open = Counter(
            f"{_PREFIX}webhook_fail_open_count",
            "Calls that failed and were ignored.",
            ("name", "type"),
        )
        labels = ("name", "kind", "type", "operation")
        self._exclusions = Counter(
            f"{_PREFIX}match_condition_exclusions_total",
            "Requests that match conditions excluded.",
            labels,
        )
        self._errors = Counter(
            f"{_PREFIX}match_condition_evaluation_errors_total",
            "Match conditions that failed.",
            labels,
        )
        self._evaluations = Histogram(
            f"{_PREFIX}match_condition_evaluation_seconds",
            "How long match conditions took.",
            labels,
            (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25),
        )

    def called(self, name: str, kind: str, operation: str, rejected: bool, code: int, seconds: float) -> None:
        """A call is over."""
        word = "true" if rejected else "false"
        self._durations.observe(seconds, name, kind, operation, word)
        self._requests.add(name, kind, operation, str(min(code, 600)), word)

    def rejected(self, name: str, kind: str, operation: str, error: str, code: int) -> None:
        """A request was refused."""
        self._rejections.add(name, kind, operation, error, str(min(code, 600)))

    def failed_open(self, name: str, kind: str) -> None:
        """A call failed, and its webhook's policy is to go on."""
        self._open.add(name, kind)

    def conditions(self, kind: str, operation: str, name: str, seconds: float, holds: bool, error: str) -> None:
        """Match conditions were evaluated."""
        labels = (name, "webhook", kind, operation)
        self._evaluations.observe(seconds, *labels)
        if error:
            self._errors.add(*labels)
        elif not holds:
            self._exclusions.add(*labels)

    def collect(self) -> Iterator[Metric]:
        """All families, for the library."""
        for each in (
            self._durations,
            self._requests,
            self._rejections,
            self._open,
            self._exclusions,
            self._errors,
            self._evaluations,
        ):
            yield from each.collect()


METRICS = WebhookMetrics()
COLLECTORS.append(METRICS.collect)
