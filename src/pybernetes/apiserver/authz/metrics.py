"""What is counted of authorization, in upstream's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..admission.counting import Counter, Histogram
from .authorizer import Authorizer, Decision

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_BUCKETS = tuple(0.001 * 2**each for each in range(15))  # upstream's
_RESULTS = {Decision.ALLOW: "allowed", Decision.DENY: "denied", Decision.NO_OPINION: "no-opinion"}

DECISIONS = Counter(
    "apiserver_authorization_decisions_total",
    "Decisions by the authorizer that made them.",
    ("type", "name", "decision"),
)
_ATTEMPTS = Counter("authorization_attempts_total", "Requests by what was decided.", ("result",))
_DURATIONS = Histogram("authorization_duration_seconds", "How long deciding took.", ("result",), _BUCKETS)


def decided(authorizer: Authorizer, decision: Decision) -> None:
    """Count who had the last word. That of system:masters is nobody's, as upstream."""
    kind = authorizer.kind
    if kind:
        DECISIONS.add(kind, authorizer.name, _RESULTS[decision])


def attempted(decision: Decision, error: str, seconds: float) -> None:
    """Count a request."""
    result = "error" if error and decision is not Decision.ALLOW else _RESULTS[decision]
    _ATTEMPTS.add(result)
    _DURATIONS.observe(seconds, result)


def collect() -> Iterator[Metric]:
    """The families, for the library."""
    for each in (DECISIONS, _ATTEMPTS, _DURATIONS):
        yield from each.collect()
