"""What is counted of authorization, in upstream's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..admission.counting import Counter, Histogram
from .authorizer import ALLOW, DENY, Authorizer, Decision

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_BUCKETS = tuple(0.001 * 2**each for each in range(15))  # upstream's
_DURATIONS = Histogram("authorization_duration_seconds", "How long deciding took.", ("result",), _BUCKETS)
_ALLOWED, _DENIED, _UNKNOWN, _ERROR = (_DURATIONS.series(each) for each in ("allowed", "denied", "no-opinion", "error"))

_allowed: dict[Authorizer, int] = {}
_denied: dict[Authorizer, int] = {}
"""How often an authorizer had the last word. That of system:masters is nobody's, as upstream."""


def decided(authorizer: Authorizer, decision: Decision) -> None:
    """Count who had the last word."""
    counts = _allowed if decision is ALLOW else _denied
    counts[authorizer] = counts.get(authorizer, 0) + 1


def attempted(decision: Decision, error: str, seconds: float) -> None:
    """Count a request."""
    if decision is ALLOW:
        _ALLOWED.add(seconds)
    elif error:
        _ERROR.add(seconds)
    else:
        (_DENIED if decision is DENY else _UNKNOWN).add(seconds)


def collect() -> Iterator[Metric]:
    """The families, for the library."""
    decisions = Counter(
        "apiserver_authorization_decisions_total",
        "Decisions by the authorizer that made them.",
        ("type", "name", "decision"),
    )
    for word, counts in (("allowed", _allowed), ("denied", _denied)):
        for authorizer, count in counts.items():
            if authorizer.kind:
                decisions.add(authorizer.kind, authorizer.name, word, times=count)
    attempts = Counter("authorization_attempts_total", "Requests by what was decided.", ("result",))
    results = {"allowed": _ALLOWED, "denied": _DENIED, "no-opinion": _UNKNOWN, "error": _ERROR}
    for result, series in results.items():
        if any(series.counts):
            attempts.add(result, times=sum(series.counts))
    for each in (decisions, attempts, _DURATIONS):
        yield from each.collect()
