"""Metrics of authorization, with upstream's names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..counters import Counter, Histogram
from .authorizer import ALLOW, DENY, Authorizer, Decision

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_BUCKETS = tuple(0.001 * 2**each for each in range(15))  # upstream's
_DURATIONS = Histogram("authorization_duration_seconds", "How long deciding took.", ("result",), _BUCKETS)
_RESULTS = ("allowed", "denied", "no-opinion", "error")
_WHEN_ALLOWED, _WHEN_DENIED, _WHEN_UNKNOWN, _WHEN_FAILED = map(_DURATIONS.series, _RESULTS)

_NAMED, _TYPED = ("name", "result"), ("type", "name")
_PROMETHEUS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # the library's
WEBHOOKS = Counter("apiserver_authorization_webhook_evaluations_total", "Questions to webhooks.", _NAMED)
WEBHOOK_DURATIONS = Histogram(
    "apiserver_authorization_webhook_duration_seconds", "How long a webhook took.", _NAMED, _PROMETHEUS
)
FAILED_OPEN = Counter(
    "apiserver_authorization_webhook_evaluations_fail_open_total", "No opinion because a webhook failed.", _NAMED
)
EXCLUSIONS = Counter(
    "apiserver_authorization_match_condition_exclusions_total", "Webhooks that conditions left out.", _TYPED
)
CONDITION_ERRORS = Counter(
    "apiserver_authorization_match_condition_evaluation_errors_total", "Conditions that failed.", _TYPED
)
CONDITION_DURATIONS = Histogram(
    "apiserver_authorization_match_condition_evaluation_seconds",
    "How long the conditions of a webhook took.",
    _TYPED,
    (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25),
)

ALLOWED: defaultdict[Authorizer, int] = defaultdict(int)
DENIED: defaultdict[Authorizer, int] = defaultdict(int)
"""How often an authorizer decided. Decisions for system:masters are not counted, as upstream."""

_RETIRED = 256  # counts of authorizers of earlier configurations that are kept
_KEPT = 256  # times that are kept, to be counted at once
_kept: list[float] = []
"""How long it took lately to allow something."""


_retired: dict[tuple[str, str, str], int] = {}
"""The counts of authorizers that are no longer configured, by kind, name and decision."""


def retire(authorizer: Authorizer) -> None:
    """Keep the counts of an authorizer that is no more in the configuration, and not the authorizer."""
    for word, counts in (("allowed", ALLOWED), ("denied", DENIED)):
        labels = (authorizer.kind, authorizer.name, word)
        _retired[labels] = _retired.get(labels, 0) + counts.pop(authorizer, 0)
        if len(_retired) > _RETIRED:
            del _retired[next(iter(_retired))]


def attempted(decision: Decision, error: str, seconds: float) -> None:
    """Count a request."""
    if decision is ALLOW:
        _kept.append(seconds)
        if len(_kept) >= _KEPT:
            _settle()
    elif error:
        _WHEN_FAILED.add(seconds)
    else:
        (_WHEN_DENIED if decision is DENY else _WHEN_UNKNOWN).add(seconds)


def _settle() -> None:
    """Count what was kept."""
    _WHEN_ALLOWED.add_all(_kept)
    _kept.clear()


def collect() -> Iterator[Metric]:
    """The families, for the library."""
    _settle()
    decisions = Counter(
        "apiserver_authorization_decisions_total",
        "Decisions by the authorizer that made them.",
        ("type", "name", "decision"),
    )
    for labels, count in _retired.items():
        if count:
            decisions.add(*labels, times=count)
    for word, counts in (("allowed", ALLOWED), ("denied", DENIED)):
        for authorizer, count in counts.items():
            if authorizer.kind:
                decisions.add(authorizer.kind, authorizer.name, word, times=count)
    attempts = Counter("authorization_attempts_total", "Requests by what was decided.", ("result",))
    for result in _RESULTS:
        series = _DURATIONS.series(result)
        if any(series.counts):
            attempts.add(result, times=sum(series.counts))
    webhooks = (WEBHOOKS, WEBHOOK_DURATIONS, FAILED_OPEN, EXCLUSIONS, CONDITION_ERRORS, CONDITION_DURATIONS)
    for each in (decisions, attempts, _DURATIONS, *webhooks):
        yield from each.collect()
